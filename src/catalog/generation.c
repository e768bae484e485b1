/*
 * Building a generation, one file, definition or tool a step, each adding to
 * one report; and holding it by count.
 */
#include "catalog/generation.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "catalog/definition.h"
#include "catalog/import.h"
#include "json/parse.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

#define TOOLS_FILE_MAX_BYTES 67108864u

/* Under way: the phases below, each for as many steps as it wants. */
struct building {
    struct generation *g;
    struct generation_report *report;
    struct policy_set_loader *loading;
    struct policy_load_errors faults;
    const struct offers *offers;
    struct import *import;
    size_t phase, at;               /* at: the next file, policy or tool of the phase */
    const struct json *definitions; /* of the file being read; NULL: none is */
    struct str file;
    uint32_t definition;
    uint64_t hash, list_hash;
};

struct generation {
    struct arena *arena;
    struct config config;
    struct policy_set *policies;
    struct import_source *sources; /* one for each upstream of the configuration */
    struct tool_list **offers;     /* likewise; held */
    struct map *by_name;
    struct tool **tools; /* sorted by name */
    size_t count, capacity;
    struct str hash;
    uint64_t number, list_hash;
    struct str *warnings;
    size_t warning_count;
    struct generation_cache memo;
    unsigned references;
};

/* ---- tools ---------------------------------------------------------------- */

static void add_tool(struct generation *g, struct tool *tool, struct generation_report *report)
{
    struct tool *other = map_get(g->by_name, tool->name);
    if (other) {
        generation_report_error(report, STR_FMT ": duplicate tool '" STR_FMT "', already defined in " STR_FMT,
                                STR_ARG(tool->origin), STR_ARG(tool->name), STR_ARG(other->origin));
        return;
    }
    if (g->count == g->capacity) {
        size_t capacity = g->capacity ? g->capacity * 2 : 64;
        struct tool **longer = ARENA_ARRAY(g->arena, struct tool *, capacity);
        if (g->count)
            memcpy(longer, g->tools, g->count * sizeof(*longer));
        g->tools = longer;
        g->capacity = capacity;
    }
    map_add(g->by_name, tool->name, tool);
    g->tools[g->count++] = tool;
    for (size_t i = 0; i < tool->warning_count; i++)
        generation_report_warning(report, STR_FMT ": tool '" STR_FMT "': " STR_FMT, STR_ARG(tool->origin),
                                  STR_ARG(tool->name), STR_ARG(tool->warnings[i]));
}

/* A definition that cannot be served is left out and said so: one bad tool must not take the others with it.
 */
static void add_definition(struct generation *g, const struct json *definition, struct str file,
                           struct generation_report *report)
{
    struct tool *tool;
    struct why why;
    struct str name = json_str(json_get_text(definition, "name"));
    enum err err =
        tool_build(g->arena, definition, policy_set_find(g->policies, name), &g->config, file, &tool, &why);
    if (err == OK)
        add_tool(g, tool, report);
    else
        generation_report_warning(report, STR_FMT ": tool '" STR_FMT "' is left out: %s", STR_ARG(file),
                                  STR_ARG(name), why.text);
}

const struct json *generation_tools_in_file(const struct json *file)
{
    const struct json *result = json_get_text(file, "result");
    const struct json *tools = json_get_text(result ? result : file, "tools");
    if (json_is(file, JSON_ARRAY))
        return file;
    return json_is(tools, JSON_ARRAY) ? tools : NULL;
}

/* The file's definitions; NULL where it has none, which is said. */
static const struct json *read_tools_file(struct generation *g, const char *path,
                                          struct generation_report *report)
{
    struct json *file = arena_alloc(g->arena, sizeof(*file));
    struct why why;
    if (json_read_file(g->arena, path, TOOLS_FILE_MAX_BYTES, file, &why) != OK) {
        generation_report_error(report, "%s", why.text);
        return NULL;
    }
    const struct json *definitions = generation_tools_in_file(file);
    if (!definitions)
        generation_report_error(
            report, "%s: expected an array of {name, description, inputSchema} or {\"tools\": […]}, got %s",
            path, json_type_name((enum json_type)file->type));
    return definitions;
}

static void add_policy(struct generation *g, const struct policy *policy, struct generation_report *report)
{
    struct tool *tool = map_get(g->by_name, policy->name), *built;
    struct why why;
    if (tool && tool->policy == policy && tool->definition)
        return; /* it is laid over a definition */
    if (tool_build(g->arena, NULL, policy, &g->config, policy->file, &built, &why) == OK)
        add_tool(g, built, report);
    else
        generation_report_error(report, STR_FMT ": %s", STR_ARG(policy->file), why.text);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp((*(struct tool *const *)a)->name, (*(struct tool *const *)b)->name);
}

/* ---- hashes: two workers on different policies can be told apart ---------- */

static void mix(uint64_t *hash, uint64_t more)
{
    uint64_t both[2] = {*hash, more};
    *hash = hash_stable((struct str){(const char *)both, sizeof(both)}).low;
}

/* As it is listed, so that what a model sees and what is hashed can't differ. */
static uint64_t tool_hash(const struct tool *tool)
{
    struct arena *arena = arena_new();
    struct buf text = {0};
    struct json definition;
    struct why why;
    bool listable = definition_from_tool(arena, tool, &definition, &why) == OK;
    buf_str(&text, tool->name);
    buf_str(&text, tool->target.upstream);
    buf_byte(&text, '/');
    buf_str(&text, tool->target.tool);
    json_write(&text, listable ? &definition : tool->input);
    uint64_t hash = hash_stable(buf_view(&text)).low;
    buf_clear(&text);
    arena_free(arena);
    return hash;
}

/* Who may see what. */
static uint64_t allow_hash(const struct config *config)
{
    struct buf out = {0}, *text = &out;
    for (size_t i = 0; i < config->allow_count; i++) {
        const struct allow_rule *rule = &config->allow[i];
        buf_printf(text, "%d %zu %zu %zu ", rule->everyone, rule->uid_count, rule->gid_count,
                   rule->tool_count);
        buf_add(text, rule->uids, rule->uid_count * sizeof(*rule->uids));
        buf_add(text, rule->gids, rule->gid_count * sizeof(*rule->gids));
        for (size_t k = 0; k < rule->tool_count; k++)
            buf_printf(text, STR_FMT " ", STR_ARG(rule->tools[k]));
    }
    uint64_t hash = hash_stable(buf_view(text)).low;
    buf_clear(text);
    return hash;
}

static bool list_depends_on_code(const struct generation *g)
{
    bool depends = policy_set_has_gateway(g->policies);
    for (size_t i = 0; i < policy_set_count(g->policies); i++)
        depends |= policy_set_at(g->policies, i)->hooks[HOOK_PREPARE];
    return depends;
}

/* ---- the phases, in their order: each says whether it wants another step ---- */

static bool read_policies(struct building *b)
{
    if (policy_set_load_step(b->loading))
        return true;
    enum err err = policy_set_load_end(b->loading, &b->g->policies);
    b->loading = NULL;
    for (size_t i = 0; err && i < b->faults.count; i++)
        generation_report_error(b->report, STR_FMT, STR_ARG(b->faults.list[i]));
    return false;
}

/* File by file, definition by definition. */
static bool read_definitions(struct building *b)
{
    struct generation *g = b->g;
    if (b->definitions && b->definition < b->definitions->len) {
        add_definition(g, &b->definitions->items[b->definition++], b->file, b->report);
        return true;
    }
    if (b->at == g->config.tools.count)
        return false;
    const char *path = g->config.tools.list[b->at++];
    b->file = arena_dup(g->arena, str_of(path));
    b->definitions = read_tools_file(g, path, b->report);
    b->definition = 0;
    return true;
}

/* All at once, so that they are of one moment. */
static bool ask_upstreams(struct building *b)
{
    struct generation *g = b->g;
    size_t count = g->config.upstream_count;
    g->sources = ARENA_ARRAY(g->arena, struct import_source, count);
    g->offers = ARENA_ARRAY(g->arena, struct tool_list *, count);
    for (size_t i = 0; i < count; i++) {
        const struct upstream_spec *spec = g->config.upstreams[i];
        g->offers[i] =
            b->offers && spec->kind != UPSTREAM_REST ? b->offers->of(b->offers->owner, spec->name) : NULL;
        g->sources[i] = (struct import_source){spec, g->offers[i]};
    }
    struct import_request request = {g->arena, &g->config, g->policies, g->by_name, g->sources, b->report};
    b->import = import_begin(&request);
    return false;
}

static bool import_tools(struct building *b)
{
    struct tool *tool;
    bool more = import_step(b->import, &tool);
    if (tool)
        add_tool(b->g, tool, b->report);
    return more;
}

static bool add_policies(struct building *b)
{
    if (b->at == policy_set_count(b->g->policies))
        return false;
    const struct policy *policy = policy_set_at(b->g->policies, b->at++);
    import_check_policy(b->import, policy);
    add_policy(b->g, policy, b->report);
    return true;
}

/* A tool under a name that it used to have; a tool that has the name today goes before. */
static void add_alias(struct generation *g, struct tool *tool, struct str alias,
                      struct generation_report *report)
{
    const struct tool *other = map_get(g->by_name, alias);
    if (map_add(g->by_name, alias, tool))
        return;
    generation_report_error(report,
                            STR_FMT ": aliases: '" STR_FMT "' is %s '" STR_FMT "' (" STR_FMT
                                    "): take it out of one of them",
                            STR_ARG(tool->policy->file), STR_ARG(alias),
                            str_eq(other->name, alias) ? "the name of the tool" : "an alias of",
                            STR_ARG(other->name), STR_ARG(other->origin));
}

static bool add_aliases(struct building *b)
{
    struct generation *g = b->g;
    if (b->at == g->count)
        return false;
    struct tool *tool = g->tools[b->at++];
    for (size_t i = 0; tool->policy && i < tool->policy->alias_count; i++)
        add_alias(g, tool, tool->policy->aliases[i], b->report);
    return true;
}

static bool sort_tools(struct building *b)
{
    struct generation *g = b->g;
    if (g->count)
        qsort(g->tools, g->count, sizeof(*g->tools), by_name);
    return false;
}

static bool hash_tools(struct building *b)
{
    struct generation *g = b->g;
    if (b->at == g->count)
        return false;
    const struct tool *tool = g->tools[b->at++];
    uint64_t hash = tool_hash(tool);
    mix(&b->hash, hash);
    if (tool_is_listed(tool))
        mix(&b->list_hash, hash);
    return true;
}

static bool hash_whole(struct building *b)
{
    struct generation *g = b->g;
    uint64_t policies = policy_set_hash(g->policies), allow = allow_hash(&g->config);
    mix(&b->list_hash, allow);
    if (list_depends_on_code(g))
        mix(&b->list_hash, policies);
    mix(&b->hash, policies);
    mix(&b->hash, allow);
    mix(&b->hash, g->config.hash);
    g->list_hash = b->list_hash;
    g->hash = arena_printf(g->arena, "%016llx", (unsigned long long)b->hash);
    return false;
}

static bool (*const phases[])(struct building *) = {read_policies, read_definitions, ask_upstreams,
                                                    import_tools,  add_policies,     add_aliases,
                                                    sort_tools,    hash_tools,       hash_whole};
#define PHASES (sizeof(phases) / sizeof(phases[0]))

/* ---- the whole ------------------------------------------------------------ */

struct building *generation_build_begin(struct config *config, uint64_t number,
                                        const struct policy_stall *stalls, size_t stall_count,
                                        const struct offers *offers, struct generation_report *report)
{
    struct policy_set_options options = {.deadline_ms = config->limits.policy_ms,
                                         .memory_kb = config->limits.policy_kb,
                                         .stalls = stalls,
                                         .stall_count = stall_count};
    struct arena *arena = arena_new();
    struct building *b = calloc(1, sizeof(*b));
    if (!b)
        abort();
    b->g = ARENA_NEW(arena, struct generation);
    *b->g = (struct generation){
        .arena = arena, .number = number, .references = 1, .config = *config, .by_name = map_new(arena)};
    *config = (struct config){0};
    b->report = report;
    b->offers = offers;
    for (size_t i = 0; i < b->g->config.warning_count; i++)
        generation_report_warning(report, STR_FMT, STR_ARG(b->g->config.warnings[i]));
    b->faults.arena = report->arena;
    b->loading = policy_set_load_begin(b->g->config.policies, &options, &b->faults);
    return b;
}

/* Tools say more about what is wrong, so an error ends it only where there are no policies to lay over them.
 */
bool generation_build_step(struct building *b)
{
    if (b->phase == PHASES)
        return false;
    if (phases[b->phase](b))
        return true;
    b->at = 0;
    b->phase++;
    if (!b->g->policies)
        b->phase = PHASES;
    return b->phase < PHASES;
}

static void keep_warnings(struct generation *g, const struct generation_report *report)
{
    g->warnings = ARENA_ARRAY(g->arena, struct str, report->warning_count);
    g->warning_count = report->warning_count;
    for (size_t i = 0; i < report->warning_count; i++)
        g->warnings[i] = arena_dup(g->arena, report->warnings[i]);
}

enum err generation_build_end(struct building *b, struct generation **out)
{
    struct generation *g = b->g;
    bool whole = b->phase == PHASES && b->report->error_count == 0;
    if (b->loading) /* given up before its end */
        policy_set_load_end(b->loading, &g->policies);
    if (whole)
        keep_warnings(g, b->report);
    else
        generation_unref(g);
    *out = whole ? g : NULL;
    free(b);
    return whole ? OK : ERR_CONFIG;
}

enum err generation_build(struct config *config, uint64_t number, struct generation **out,
                          struct generation_report *report)
{
    struct building *b = generation_build_begin(config, number, NULL, 0, NULL, report);
    while (generation_build_step(b))
        continue;
    return generation_build_end(b, out);
}

struct generation *generation_ref(struct generation *g)
{
    g->references++;
    return g;
}

void generation_unref(struct generation *g)
{
    if (!g || --g->references > 0)
        return;
    if (g->memo.data)
        g->memo.drop(g->memo.data);
    policy_set_free(g->policies);
    for (size_t i = 0; g->offers && i < g->config.upstream_count; i++)
        tool_list_unref(g->offers[i]);
    config_free(&g->config);
    arena_free(g->arena);
}

/* ---- looking at it -------------------------------------------------------- */

const struct config *generation_config(const struct generation *g)
{
    return &g->config;
}

struct policy_set *generation_policies(const struct generation *g)
{
    return g->policies;
}

const struct tool_list *generation_offer(const struct generation *g, struct str upstream)
{
    for (size_t i = 0; i < g->config.upstream_count; i++)
        if (str_eq(g->config.upstreams[i]->name, upstream))
            return g->offers[i];
    return NULL;
}

struct generation_cache *generation_cache(struct generation *g)
{
    return &g->memo;
}

uint64_t generation_number(const struct generation *g)
{
    return g->number;
}

struct str generation_hash(const struct generation *g)
{
    return g->hash;
}

uint64_t generation_list_hash(const struct generation *g)
{
    return g->list_hash;
}

const struct str *generation_warnings(const struct generation *g, size_t *count)
{
    *count = g->warning_count;
    return g->warnings;
}

size_t generation_tool_count(const struct generation *g)
{
    return g->count;
}

const struct tool *generation_tool_at(const struct generation *g, size_t index)
{
    return g->tools[index];
}

const struct tool *generation_find(const struct generation *g, struct str name)
{
    return map_get(g->by_name, name);
}

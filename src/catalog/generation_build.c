/*
 * Builds a generation: the phases in their order, each in steps of one file, definition or tool, all adding
 * to one report.
 *
 *   1 policies       load every policy file
 *   2 definitions    tools of the tools files
 *   3 tool lists     those of all upstreams, at one moment
 *   4 import         tools of upstreams
 *   5 own tools      tools that a policy alone defines
 *   6 aliases
 *   7 example tools  those that only an example of a policy for several tools names
 *   8 unmatched      policies that guard no tool
 *   9 schemas        the operator's response schemas
 *  10 hashes         they distinguish workers with different policies
 */
#include "catalog/plain_name.h"
#include "catalog/generation.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "catalog/definition.h"
#include "catalog/import.h"
#include "catalog/policy_access.h"
#include "catalog/unmatched.h"
#include "config/config.h"
#include "json/parse.h"
#include "json/write.h"
#include "pins/pins_review.h"
#include "policy/policy_set.h"

#include <stdlib.h>

#define TOOLS_FILE_MAX_BYTES 67108864u

struct generation_build {
    struct generation *g;
    struct generation_report *report;
    const struct tool_list_source *tool_lists;
    struct pins *pins;
    struct policy_set_loader *policies;
    struct policy_load_errors policy_errors;
    struct import *import;
    struct unmatched *unmatched;
    bool tools_changed, skip_broken;
    const struct guarded_tool *guarded; /* of the generation before */
    size_t guarded_count;
    size_t phase;
    size_t next; /* file, policy or tool of the phase */
    const struct generation_definitions *given;
    size_t given_count, next_given;
    const struct json *definitions; /* of the tools file that is being read; NULL: none */
    struct str file;
    uint32_t next_definition;
    uint64_t hash, list_hash;
};

static void add_tool(struct generation_build *b, struct tool *tool)
{
    struct generation *g = b->g;
    struct tool *other = map_get(g->by_name, tool->name);
    if (other) {
        generation_report_error(b->report,
                                STR_FMT ": duplicate tool '" STR_FMT "', already defined in " STR_FMT,
                                STR_ARG(tool->origin), STR_ARG(tool->name), STR_ARG(other->origin));
        return;
    }
    if (g->tool_count == g->tool_capacity) {
        size_t capacity = g->tool_capacity ? g->tool_capacity * 2 : 64;
        struct tool **longer = ARENA_ARRAY(g->arena, struct tool *, capacity);
        if (g->tool_count)
            memcpy(longer, g->tools, g->tool_count * sizeof(*longer));
        g->tools = longer;
        g->tool_capacity = capacity;
    }
    map_add(g->by_name, tool->name, tool);
    g->tools[g->tool_count++] = tool;
    for (size_t i = 0; i < tool->warning_count; i++)
        generation_report_warning(b->report, STR_FMT ": tool '" STR_FMT "': " STR_FMT, STR_ARG(tool->origin),
                                  STR_ARG(tool->name), STR_ARG(tool->warnings[i]));
}

static bool load_policies(struct generation_build *b)
{
    if (policy_set_load_step(b->policies))
        return true;
    enum err err = policy_set_load_end(b->policies, &b->g->policies);
    b->policies = NULL;
    for (size_t i = 0; err && i < b->policy_errors.count; i++)
        generation_report_error(b->report, STR_FMT, STR_ARG(b->policy_errors.list[i]));
    return false;
}

static const struct json *read_tools_file(struct generation_build *b, const char *path)
{
    struct json *file = arena_alloc(b->g->arena, sizeof(*file));
    struct why why;
    if (json_read_file(b->g->arena, path, TOOLS_FILE_MAX_BYTES, file, &why) != OK) {
        generation_report_error(b->report, "%s", why.text);
        return NULL;
    }
    const struct json *definitions = generation_tools_in_file(file);
    if (!definitions)
        generation_report_error(
            b->report,
            "%s: expected an array of {name, description, inputSchema} or {\"tools\": […]}, got %s", path,
            json_type_name((enum json_type)file->type));
    return definitions;
}

/* A definition that cannot be served is left out with a warning, so that the others are. */
static void add_definition(struct generation_build *b, const struct json *definition)
{
    struct generation *g = b->g;
    struct tool *tool;
    struct why why;
    struct str name = json_str(json_get_text(definition, "name"));
    struct tool_source source = {.definition = definition,
                                 .policy = policy_set_find(g->policies, name),
                                 .policies = g->policies,
                                 .origin = b->file};
    if (tool_build(g->arena, &g->config, &source, &tool, &why) == OK)
        add_tool(b, tool);
    else
        generation_report_warning(b->report, STR_FMT ": tool '" STR_FMT "' is left out: %s", STR_ARG(b->file),
                                  STR_ARG(name), why.text);
}

static bool read_definitions(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->definitions && b->next_definition < b->definitions->len) {
        add_definition(b, &b->definitions->items[b->next_definition++]);
        return true;
    }
    if (b->next == g->config.tools.count) {
        if (b->next_given == b->given_count)
            return false;
        const struct generation_definitions *given = &b->given[b->next_given++];
        b->file = arena_dup(g->arena, given->origin);
        b->definitions = given->list;
        b->next_definition = 0;
        return true;
    }
    const char *path = g->config.tools.list[b->next++];
    b->file = arena_dup(g->arena, str_of(path));
    b->definitions = read_tools_file(b, path);
    b->next_definition = 0;
    return true;
}

static bool get_tool_lists(struct generation_build *b)
{
    struct generation *g = b->g;
    const struct tool_list_source *source = b->tool_lists;
    g->tool_lists = ARENA_ARRAY(g->arena, struct tool_list *, g->config.upstream_count);
    for (size_t i = 0; source && i < g->config.upstream_count; i++) {
        const struct upstream_spec *spec = g->config.upstreams[i];
        if (spec->kind != UPSTREAM_REST)
            g->tool_lists[i] = source->get(source->owner, spec->name);
    }
    guarded_tools_take(g, b->guarded, b->guarded_count);
    g->pins = pins_review_new(g->arena, b->pins, g->config.pins);
    struct import_request request = {g->arena,      &g->config, g->policies, g->by_name,
                                     g->tool_lists, b->report,  g,           g->pins};
    b->import = import_begin(&request);
    return false;
}

static bool import_tools(struct generation_build *b)
{
    struct tool *tool;
    bool more = import_step(b->import, &tool);
    if (tool)
        add_tool(b, tool);
    return more;
}

static bool add_own_tools(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->next == policy_set_count(g->policies))
        return false;
    const struct policy *policy = policy_set_at(g->policies, b->next++);
    struct tool_source source = {.policy = policy, .policies = g->policies, .origin = policy->file};
    struct tool *tool = map_get(g->by_name, policy->name);
    struct why why;
    if (policy_is_overlay(policy))
        return true;
    import_check_policy(b->import, policy);
    if (tool && tool->policy == policy && tool->definition)
        return true; /* the policy applies to a tool that has a definition */
    if (tool_build(g->arena, &g->config, &source, &tool, &why) == OK)
        add_tool(b, tool);
    else
        generation_report_error(b->report, STR_FMT ": %s", STR_ARG(policy->file), why.text);
    return true;
}

/* So that examples can call a tool that nobody has registered or listed yet. */
static void add_example_tool(struct generation_build *b, const struct policy *policy, struct str name)
{
    struct generation *g = b->g;
    struct tool_source source = {.name = name, .policies = g->policies, .origin = policy->file};
    struct tool *tool;
    struct why why;
    if (map_get(g->by_name, name))
        return;
    if (tool_build(g->arena, &g->config, &source, &tool, &why) == OK) {
        tool->schema_pending = unmatched_waits(b->unmatched);
        add_tool(b, tool);
    } else {
        generation_report_error(b->report, STR_FMT ": example: %s", STR_ARG(policy->file), why.text);
    }
}

static bool add_example_tools(struct generation_build *b)
{
    struct generation *g = b->g;
    if (!b->unmatched)
        b->unmatched = unmatched_begin(g, b->tools_changed, b->report);
    if (b->next == policy_set_count(g->policies))
        return false;
    const struct policy *policy = policy_set_at(g->policies, b->next++);
    for (size_t i = 0; policy_is_overlay(policy) && i < policy->example_count; i++)
        add_example_tool(b, policy, policy->examples[i].tool);
    return true;
}

static bool check_unmatched(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->next == policy_set_count(g->policies))
        return false;
    unmatched_check(b->unmatched, policy_set_at(g->policies, b->next++));
    return true;
}

static bool add_aliases(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->next == g->tool_count)
        return false;
    struct tool *tool = g->tools[b->next++];
    for (size_t i = 0; tool->policy && i < tool->policy->alias_count; i++) {
        struct str alias = tool->policy->aliases[i];
        const struct tool *other = map_get(g->by_name, alias);
        if (!map_add(g->by_name, alias, tool))
            generation_report_error(b->report,
                                    STR_FMT ": aliases: '" STR_FMT "' is %s '" STR_FMT "' (" STR_FMT
                                            "): take it out of one of them",
                                    STR_ARG(tool->policy->file), STR_ARG(alias),
                                    str_eq(other->name, alias) ? "the name of the tool" : "an alias of",
                                    STR_ARG(other->name), STR_ARG(other->origin));
    }
    return true;
}

/* A model knows such a tool by a name that its provider accepts, and calls it so. */
static bool add_plain_names(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->next == g->tool_count)
        return false;
    struct tool *tool = g->tools[b->next++];
    if (plain_name_fits(tool->name) || !tool_name_fits(tool->name))
        return true;
    struct str plain = plain_name(g->arena, tool->name);
    if (map_get(g->by_name, plain))
        plain = plain_name_apart(g->arena, tool->name);
    if (map_add(g->by_name, plain, tool))
        tool->plain_name = plain;
    return true;
}

static bool read_schemas(struct generation_build *b)
{
    static const char *const reserved[] = {RESPONSE_SCHEMA_VERDICT, RESPONSE_SCHEMA_COVERAGE, NULL};
    struct generation *g = b->g;
    response_schemas_load(g->arena, g->config.schemas, reserved, b->report, &g->schemas);
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return str_cmp((*(struct tool *const *)a)->name, (*(struct tool *const *)b)->name);
}

static bool sort_tools(struct generation_build *b)
{
    struct generation *g = b->g;
    guarded_tools_collect(g);
    if (g->tool_count)
        qsort(g->tools, g->tool_count, sizeof(*g->tools), compare_names);
    return false;
}

/* Hashes the definition as tools/list shows it, so that what a model sees and the hash cannot differ. */
static bool hash_tools(struct generation_build *b)
{
    if (b->next == b->g->tool_count)
        return false;
    const struct tool *tool = b->g->tools[b->next++];
    struct arena *arena = arena_new();
    struct buf text = buf_in(arena);
    struct json definition;
    struct why why;
    bool listable = definition_from_tool(arena, tool, &definition, &why) == OK;
    buf_str(&text, tool->name);
    buf_str(&text, tool->target.upstream);
    buf_byte(&text, '/');
    buf_str(&text, tool->target.tool);
    if (tool->held)
        buf_byte(&text, (char)('0' + tool->held));
    json_write(&text, listable ? &definition : tool->input);
    uint64_t hash = hash_stable(buf_view(&text)).low;
    hash_add(&b->hash, hash);
    if (tool_is_listed(tool))
        hash_add(&b->list_hash, hash);
    arena_free(arena);
    return true;
}

static uint64_t hash_allow_rules(const struct config *config)
{
    struct buf text = {0};
    for (size_t i = 0; i < config->allow_count; i++) {
        const struct allow_rule *rule = &config->allow[i];
        buf_printf(&text, "%d %zu %zu %zu ", rule->everyone, rule->uid_count, rule->gid_count,
                   rule->tool_count);
        buf_add(&text, rule->uids, rule->uid_count * sizeof(*rule->uids));
        buf_add(&text, rule->gids, rule->gid_count * sizeof(*rule->gids));
        for (size_t k = 0; k < rule->tool_count; k++)
            buf_printf(&text, STR_FMT " ", STR_ARG(rule->tools[k]));
    }
    uint64_t hash = hash_stable(buf_view(&text)).low;
    buf_clear(&text);
    return hash;
}

static bool hash_generation(struct generation_build *b)
{
    struct generation *g = b->g;
    uint64_t policies = policy_set_hash(g->policies), allow = hash_allow_rules(&g->config);
    bool has_hooks = policy_set_has_gateway(g->policies); /* then the list depends on the policies' code */
    for (size_t i = 0; i < policy_set_count(g->policies); i++)
        has_hooks |= policy_set_at(g->policies, i)->hooks[HOOK_PREPARE];
    hash_add(&b->list_hash, allow);
    if (has_hooks)
        hash_add(&b->list_hash, policies);
    hash_add(&b->hash, policies);
    hash_add(&b->hash, allow);
    hash_add(&b->hash, g->config.hash);
    hash_add(&b->hash, g->schemas.hash);
    hash_add(&b->hash, pins_review_hash(g->pins));
    for (size_t i = 0; i < g->unmatched_count; i++) /* a server without tools changes only these */
        hash_add(&b->hash, g->unmatched[i].why ? 2 * i + 1 : 2 * i);
    g->list_hash = b->list_hash;
    g->hash = arena_printf(g->arena, "%016llx", (unsigned long long)b->hash);
    return false;
}

static bool (*const phases[])(struct generation_build *) = {
    load_policies, read_definitions,  get_tool_lists,  import_tools, add_own_tools,
    add_aliases,   add_example_tools, check_unmatched, sort_tools,   add_plain_names,
    read_schemas,  hash_tools,        hash_generation};
#define PHASE_COUNT (sizeof(phases) / sizeof(phases[0]))

struct generation_build *generation_build_begin(struct config *config, uint64_t number,
                                                const struct generation_build_options *options,
                                                struct generation_report *report)
{
    struct arena *arena = arena_new();
    struct generation *g = ARENA_NEW(arena, struct generation);
    struct generation_build *b = calloc(1, sizeof(*b));
    if (!b)
        abort();
    *g = (struct generation){
        .arena = arena, .number = number, .references = 1, .config = *config, .by_name = map_new(arena)};
    *config = (struct config){0};
    struct policy_set_options policies = {.deadline_ms = g->config.limits.policy_ms,
                                          .memory_kb = g->config.limits.policy_kb,
                                          .stalls = options ? options->stalls : NULL,
                                          .stall_count = options ? options->stall_count : 0,
                                          .skip_broken = options && options->skip_broken};
    b->g = g;
    b->report = report;
    b->tool_lists = options ? options->tool_lists : NULL;
    b->pins = options ? options->pins : NULL;
    b->given = options ? options->given : NULL;
    b->given_count = options ? options->given_count : 0;
    b->tools_changed = options && options->tools_changed;
    b->skip_broken = options && options->skip_broken;
    b->guarded = options ? options->guarded : NULL;
    b->guarded_count = options ? options->guarded_count : 0;
    for (size_t i = 0; i < g->config.warning_count; i++)
        generation_report_warning(report, STR_FMT, STR_ARG(g->config.warnings[i]));
    b->policy_errors.arena = report->arena;
    b->policies = policy_set_load_begin(g->config.policies, &policies, &b->policy_errors);
    return b;
}

/* Errors end the build only if there are no policies: the later phases find more of them. */
bool generation_build_step(struct generation_build *b)
{
    if (b->phase == PHASE_COUNT)
        return false;
    if (phases[b->phase](b))
        return true;
    b->next = 0;
    b->phase = b->g->policies ? b->phase + 1 : PHASE_COUNT;
    return b->phase < PHASE_COUNT;
}

enum err generation_build_end(struct generation_build *b, struct generation **out)
{
    struct generation *g = b->g;
    bool complete = b->phase == PHASE_COUNT && g->policies && (b->skip_broken || b->report->error_count == 0);
    if (b->policies)
        policy_set_load_end(b->policies, &g->policies);
    if (complete) {
        struct str nothing = generation_serves_nothing(g, b->report->arena);
        if (nothing.len && !b->report->error_count)
            generation_report_warning(b->report, STR_FMT, STR_ARG(nothing));
        policy_access_check(g, b->report);
        g->warning_count = b->report->warning_count;
        g->warnings = ARENA_ARRAY(g->arena, struct str, g->warning_count);
        for (size_t i = 0; i < g->warning_count; i++)
            g->warnings[i] = arena_dup(g->arena, b->report->warnings[i]);
    } else {
        generation_unref(g);
    }
    *out = complete ? g : NULL;
    free(b);
    return complete ? OK : ERR_CONFIG;
}

enum err generation_build(struct config *config, uint64_t number, struct generation **out,
                          struct generation_report *report)
{
    struct generation_build *b = generation_build_begin(config, number, NULL, report);
    while (generation_build_step(b))
        continue;
    return generation_build_end(b, out);
}

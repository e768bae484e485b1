/* Building a generation step by step, each step adding to one report, and holding it by count. */
#include "gate/generation.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "gate/definition.h"
#include "json/parse.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

#define TOOLS_FILE_MAX_BYTES 67108864u

struct generation {
    struct arena *arena;
    struct config config;
    struct policies *policies;
    struct map *by_name, *policy_by_name;
    struct tool **tools; /* sorted by name */
    size_t count, capacity;
    struct str hash;
    uint64_t number, list_hash;
    struct str *warnings;
    size_t warning_count;
    struct generation_memo memo;
    unsigned references;
};

/* ---- the report ----------------------------------------------------------- */

void generation_report_init(struct generation_report *report, struct arena *arena)
{
    *report = (struct generation_report){.arena = arena};
}

static void append(struct arena *arena, struct str **list, size_t *count, struct str line)
{
    struct str *longer = ARENA_ARRAY(arena, struct str, *count + 1);
    if (*count)
        memcpy(longer, *list, *count * sizeof(*longer));
    longer[(*count)++] = line;
    *list = longer;
}

void generation_report_error(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->errors, &report->error_count, arena_vprintf(report->arena, format, args));
    va_end(args);
}

void generation_report_warning(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->warnings, &report->warning_count,
           arena_vprintf(report->arena, format, args));
    va_end(args);
}

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
        tool_build(g->arena, definition, map_get(g->policy_by_name, name), &g->config, file, &tool, &why);
    if (err == OK)
        add_tool(g, tool, report);
    else
        generation_report_warning(report, STR_FMT ": tool '" STR_FMT "' is left out: %s", STR_ARG(file),
                                  STR_ARG(name), why.text);
}

/* An array of definitions, a tools/list result, or the whole reply that held it. */
static const struct json *definitions_in(const struct json *file)
{
    const struct json *result = json_get_text(file, "result");
    const struct json *tools = json_get_text(result ? result : file, "tools");
    if (json_is(file, JSON_ARRAY))
        return file;
    return json_is(tools, JSON_ARRAY) ? tools : NULL;
}

static void read_tools_file(struct generation *g, const char *path, struct generation_report *report)
{
    struct json *file = arena_alloc(g->arena, sizeof(*file));
    struct why why;
    if (json_read_file(g->arena, path, TOOLS_FILE_MAX_BYTES, file, &why) != OK) {
        generation_report_error(report, "%s", why.text);
        return;
    }
    const struct json *definitions = definitions_in(file);
    if (!definitions) {
        generation_report_error(
            report, "%s: expected an array of {name, description, inputSchema} or {\"tools\": […]}, got %s",
            path, json_type_name((enum json_type)file->type));
        return;
    }
    struct str name = arena_dup(g->arena, str_of(path));
    for (uint32_t i = 0; i < definitions->len; i++)
        add_definition(g, &definitions->items[i], name, report);
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

static void load_tools(struct generation *g, struct generation_report *report)
{
    g->by_name = map_new(g->arena);
    g->policy_by_name = map_new(g->arena);
    for (size_t i = 0; i < policies_count(g->policies); i++)
        map_add(g->policy_by_name, policies_at(g->policies, i)->name, (void *)policies_at(g->policies, i));
    for (size_t i = 0; i < g->config.tools_count; i++)
        read_tools_file(g, g->config.tools[i], report);
    for (size_t i = 0; i < policies_count(g->policies); i++)
        add_policy(g, policies_at(g->policies, i), report);
    if (g->count)
        qsort(g->tools, g->count, sizeof(*g->tools), by_name);
}

/* ---- policies ------------------------------------------------------------- */

static void load_policies(struct generation *g, struct generation_report *report)
{
    struct policies_options options = {.deadline_ms = g->config.limits.policy_ms,
                                       .memory_kb = g->config.limits.policy_kb};
    struct policies_faults faults = {.arena = report->arena};
    if (policies_load(g->config.policies, &options, &g->policies, &faults) == OK)
        return;
    for (size_t i = 0; i < faults.count; i++)
        generation_report_error(report, STR_FMT, STR_ARG(faults.list[i]));
}

/* ---- hashes: two workers on different policies can be told apart ---------- */

/* As it is listed, so that what a model sees and what is hashed can't differ. */
static void hash_tool(struct buf *text, const struct tool *tool)
{
    struct arena *arena = arena_new();
    struct json definition;
    struct why why;
    bool listable = definition_of(arena, tool, &definition, &why) == OK;
    buf_str(text, tool->name);
    json_write(text, listable ? &definition : tool->input);
    arena_free(arena);
}

/* Who may see what. */
static void hash_allow(struct buf *text, const struct config *config)
{
    for (size_t i = 0; i < config->allow_count; i++) {
        const struct config_rule *rule = &config->allow[i];
        buf_printf(text, "%d %zu %zu %zu ", rule->everyone, rule->uid_count, rule->gid_count,
                   rule->tool_count);
        buf_add(text, rule->uids, rule->uid_count * sizeof(*rule->uids));
        buf_add(text, rule->gids, rule->gid_count * sizeof(*rule->gids));
        for (size_t k = 0; k < rule->tool_count; k++)
            buf_printf(text, STR_FMT " ", STR_ARG(rule->tools[k]));
    }
}

static bool list_depends_on_code(const struct generation *g)
{
    bool depends = policies_has_gateway(g->policies);
    for (size_t i = 0; i < policies_count(g->policies); i++)
        depends |= policies_at(g->policies, i)->hooks[HOOK_PREPARE];
    return depends;
}

static void hash_config_file(struct buf *text, const struct config *config)
{
    char block[4096];
    size_t n;
    FILE *file = config->file ? fopen(config->file, "re") : NULL;
    while (file && (n = fread(block, 1, sizeof(block), file)) > 0)
        buf_add(text, block, n);
    if (file)
        fclose(file);
}

static void hash_all(struct generation *g)
{
    struct buf list = {0}, all = {0};
    uint64_t policies = policies_hash(g->policies);
    hash_allow(&list, &g->config);
    if (list_depends_on_code(g))
        buf_add(&list, &policies, sizeof(policies));
    for (size_t i = 0; i < g->count; i++) {
        hash_tool(&all, g->tools[i]);
        if (tool_is_listed(g->tools[i]))
            hash_tool(&list, g->tools[i]);
    }
    buf_add(&all, &policies, sizeof(policies));
    hash_config_file(&all, &g->config);
    g->list_hash = hash_stable(buf_view(&list)).low;
    g->hash = arena_printf(g->arena, "%016llx", (unsigned long long)hash_stable(buf_view(&all)).low);
    buf_clear(&list);
    buf_clear(&all);
}

/* ---- the whole ------------------------------------------------------------ */

static void keep_warnings(struct generation *g, const struct generation_report *report)
{
    g->warnings = ARENA_ARRAY(g->arena, struct str, report->warning_count);
    g->warning_count = report->warning_count;
    for (size_t i = 0; i < report->warning_count; i++)
        g->warnings[i] = arena_dup(g->arena, report->warnings[i]);
}

enum err generation_build(struct config *config, uint64_t number, struct generation **out,
                          struct generation_report *report)
{
    struct arena *arena = arena_new();
    struct generation *g = ARENA_NEW(arena, struct generation);
    *out = NULL;
    g->arena = arena;
    g->number = number;
    g->references = 1;
    g->config = *config;
    load_policies(g, report);
    if (g->policies)
        load_tools(g, report);
    if (report->error_count == 0)
        hash_all(g);
    if (report->error_count > 0) {
        g->config = (struct config){0}; /* stays the caller's */
        generation_unref(g);
        return ERR_CONFIG;
    }
    keep_warnings(g, report);
    *config = (struct config){0};
    *out = g;
    return OK;
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
    policies_free(g->policies);
    config_free(&g->config);
    arena_free(g->arena);
}

/* ---- looking at it -------------------------------------------------------- */

const struct config *generation_config(const struct generation *g)
{
    return &g->config;
}

struct policies *generation_policies(const struct generation *g)
{
    return g->policies;
}

struct generation_memo *generation_memo(struct generation *g)
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

/*
 * Builds a generation: the phases in their order, each in steps of one file, definition or tool, all adding
 * to one report.
 *
 *   1 policies       load every policy file
 *   2 definitions    tools of the tools files
 *   3 tool lists     those of all upstreams, at one moment
 *   4 import         tools of upstreams: the names that policies reserve or claim, the pins of all
 * definitions, the names that upstreams use (one upstream can decide what another's tool is called), the
 *                    tools, then those that pins hold
 *   5 own tools      tools that a policy alone defines
 *   6 aliases
 *   7 example tools  those that only an example of a policy for several tools names
 *   8 unmatched      policies that guard no tool, and what they name that no tool has
 *   9 schemas        the operator's response schemas
 *  10 hashes         they distinguish workers with different policies
 */
#include "base/alloc.h"
#include "catalog/build.h"

#include "base/arena.h"
#include "base/date.h"
#include "base/hash.h"
#include "base/map.h"
#include "catalog/catalog.h"
#include "catalog/definition.h"
#include "policy/config.h"
#include "json/parse.h"
#include "json/write.h"
#include "catalog/pins.h"
#include "policy/policy_set.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOOLS_FILE_MAX_BYTES 67108864u

/* ---- the report ---------------------------------------------------------------------------- */

void generation_report_init(struct generation_report *report, struct arena *arena)
{
    *report = (struct generation_report){.arena = arena};
}

static void append(struct arena *arena, struct str **list, size_t *count, const char *format, va_list args)
{
    *list = arena_grow(arena, *list, *count, sizeof(**list));
    (*list)[(*count)++] = arena_vprintf(arena, format, args);
}

void generation_report_error(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->errors, &report->error_count, format, args);
    va_end(args);
}

void generation_report_warning(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->warnings, &report->warning_count, format, args);
    va_end(args);
}

/* ---- policies that name a tool without its upstream ------------------------------------------ */

/* Its name alone says which tool it is for. */
static bool is_unqualified(const struct policy *policy)
{
    return policy && !policy_is_overlay(policy) && !policy->upstream.len;
}

struct guarded_tool *guarded_tools_find(const struct generation *g, struct str policy)
{
    return map_get(g->guarded_by_policy, policy);
}

/* If nothing is known of the policy yet. */
static void add_guarded(struct generation *g, struct str policy, struct str upstream)
{
    struct guarded_tool *next = &g->guarded[g->guarded_count];
    if (!map_add(g->guarded_by_policy, policy, next))
        return;
    *next = (struct guarded_tool){.policy = policy, .upstream = upstream};
    g->guarded_count++;
}

/* ---- who can change the policies and the configuration -----------------------------------------
 * A user who can write to one of these files or to the policies' folder decides what agents may do, and what
 * the daemon starts: only root and the daemon's user should. Group permissions are the operator's business.
 */

enum { ACCESS_OPEN, ACCESS_FOREIGN };

struct access {
    struct arena *arena;
    struct finding {
        struct str path; /* the first one */
        struct stat st;
        size_t count;
    } found[2]; /* ACCESS_OPEN, ACCESS_FOREIGN */
};

static void look_at(struct access *a, struct str path)
{
    struct stat st;
    struct str name = arena_dup(a->arena, path);
    if (stat(name.at, &st) != 0)
        return;
    const bool is[] = {[ACCESS_OPEN] =
                           st.st_mode & S_IWOTH, /* also a sticky folder: others may add a policy */
                       [ACCESS_FOREIGN] = st.st_uid != 0 && st.st_uid != geteuid()};
    for (int i = 0; i < 2; i++)
        if (is[i] && !a->found[i].count++)
            a->found[i] = (struct finding){name, st, 1};
}

static void look_at_files(struct access *a, const struct generation *g)
{
    const struct config *config = &g->config;
    struct str module;
    if (config->file)
        look_at(a, str_of(config->file));
    for (size_t i = 0; i < config->mcp_configs.count; i++)
        look_at(a, str_of(config->mcp_configs.list[i]));
    if (config->policies)
        look_at(a, str_of(config->policies));
    for (size_t i = 0; config->policies && i < policy_set_count(g->policies); i++)
        look_at(a, policy_set_at(g->policies, i)->file);
    for (size_t i = 0; (module = policy_set_module_file(g->policies, i)).len; i++) {
        if (i == 0)
            look_at(a, str_cut(module, (size_t)(strrchr(module.at, '/') - module.at)));
        look_at(a, module);
    }
    if (policy_set_gateway(g->policies)->hooks[HOOK_PREPARE])
        look_at(a, policy_set_gateway(g->policies)->file);
}

/* Warns of each kind of path once, with the command that corrects it. */
static void check_access(const struct generation *g, struct generation_report *report)
{
    struct arena *arena = arena_new();
    struct access access = {.arena = arena};
    look_at_files(&access, g);
    for (int i = 0; i < 2; i++) {
        const struct finding *f = &access.found[i];
        if (!f->count)
            continue;
        const char *folder = g->config.policies;
        const char *root = folder && str_starts(f->path, folder) ? folder : f->path.at;
        struct str more = f->count > 1 ? arena_printf(arena, " (and %zu more)", f->count - 1) : STR_NONE;
        if (i == ACCESS_OPEN)
            generation_report_warning(
                report,
                STR_FMT STR_FMT ": mode %04o lets every user change what agents may do: chmod -R o-w %s",
                STR_ARG(f->path), STR_ARG(more), (unsigned)f->st.st_mode & 07777u, root);
        else
            generation_report_warning(report,
                                      STR_FMT STR_FMT
                                      ": belongs to uid %u, who can change what agents may do and is "
                                      "neither root nor the user of this process: chown -R root %s",
                                      STR_ARG(f->path), STR_ARG(more), (unsigned)f->st.st_uid, root);
    }
    arena_free(arena);
}

/* ---- what lies in the folder of the policies and is not loaded ---------------------------------- */

/* "x.LUA", "x.lua.txt" and the like, which an editor or another system has made of a policy's name. */
static bool is_misnamed(struct str name)
{
    static const char *const ends[] = {".lua", ".luau", ".lua.txt"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct str end = name.len > strlen(ends[i]) ? str_from(name, name.len - strlen(ends[i])) : STR_NONE;
        if (end.len && strcasecmp(end.at, ends[i]) == 0)
            return !str_is(end, ".lua");
    }
    return false;
}

/* The first file of a subfolder that is named as a tool without a policy is; STR_NONE: none. */
static struct str policy_below(const struct generation *g, const char *folder, struct arena *arena)
{
    DIR *files = opendir(folder);
    struct str found = STR_NONE;
    for (struct dirent *entry; files && !found.len && (entry = readdir(files));) {
        struct str name = str_of(entry->d_name);
        bool lua = name.len > 4 && str_is(str_from(name, name.len - 4), ".lua");
        const struct tool *tool = lua ? map_get(g->by_name, str_cut(name, name.len - 4)) : NULL;
        if (tool && !tool->policy)
            found = arena_dup(arena, name);
    }
    if (files)
        closedir(files);
    return found;
}

static void check_unloaded(const struct generation *g, struct generation_report *report)
{
    const char *folder = g->config.policies;
    struct dirent **entries;
    int count = folder ? scandir(folder, &entries, NULL, alphasort) : 0;
    struct arena *arena = arena_new();
    for (int i = 0; i < count; i++) {
        struct str name = str_of(entries[i]->d_name);
        const char *path = arena_printf(arena, "%s/" STR_FMT, folder, STR_ARG(name)).at;
        bool hidden = str_starts(name, ".") || str_is(name, "lib");
        struct str below = hidden ? STR_NONE : policy_below(g, path, arena);
        if (!hidden && is_misnamed(name))
            generation_report_warning(report, "%s: is not loaded: only files that end in .lua are", path);
        if (below.len)
            generation_report_warning(
                report,
                "%s/" STR_FMT ": is not loaded, so that the tool of this name runs "
                "without a policy: move the file up into %s, as subfolders are not read",
                path, STR_ARG(below), folder);
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
    arena_free(arena);
}

/* ---- a generation ------------------------------------------------------------------------------ */

void generation_unref(struct generation *g)
{
    if (!g || --g->references > 0)
        return;
    catalog_forget(g);
    policy_set_free(g->policies);
    for (size_t i = 0; g->tool_lists && i < g->config.upstream_count; i++)
        tool_list_unref(g->tool_lists[i]);
    config_free(&g->config);
    arena_free(g->arena);
}

struct str generation_serves_nothing(const struct generation *g, struct arena *arena)
{
    char folder[4096];
    if (g->tool_count || g->config.upstream_count || policy_set_count(g->policies) ||
        policy_set_gateway(g->policies)->hooks[HOOK_PREPARE])
        return STR_NONE;
    if (g->config.policies)
        return arena_printf(
            arena, "nothing is served: %s holds no policy (*.lua), and no tools or upstreams are named",
            g->config.policies);
    return arena_printf(
        arena,
        "nothing is served: there is no folder " CONFIG_DEFAULT_FOLDER
        " in %s, and no policies, tools or upstreams are named: start it elsewhere, or name them with "
        "--policies DIR or -c FILE",
        getcwd(folder, sizeof(folder)) ? folder : "the working directory");
}

const struct tool_list *generation_tool_list(const struct generation *g, struct str upstream)
{
    for (size_t i = 0; i < g->config.upstream_count; i++)
        if (str_eq(g->config.upstreams[i]->name, upstream))
            return g->tool_lists[i];
    return NULL;
}

const struct json *generation_tools_in_file(const struct json *file)
{
    const struct json *result = json_get_text(file, "result");
    const struct json *tools = json_get_text(result ? result : file, "tools");
    if (json_is(file, JSON_ARRAY))
        return file;
    return json_is(tools, JSON_ARRAY) ? tools : NULL;
}

/* ---- the build ----------------------------------------------------------------------------------- */

void generation_build_add(struct generation_build *b, struct tool *tool)
{
    struct generation *g = b->g;
    struct tool *other = map_get(g->by_name, tool->name);
    if (other) {
        generation_report_error(b->report,
                                STR_FMT ": duplicate tool '" STR_FMT "', already defined in " STR_FMT,
                                STR_ARG(tool->origin), STR_ARG(tool->name), STR_ARG(other->origin));
        return;
    }
    g->tools = arena_grow(g->arena, g->tools, g->tool_count, sizeof(*g->tools));
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
    if (!err)
        b->g->by_name = map_new_for(b->g->arena, policy_set_count(b->g->policies));
    for (size_t i = 0; err && i < b->policy_errors.count; i++)
        generation_report_error(b->report, STR_FMT, STR_ARG(b->policy_errors.list[i]));
    return false;
}

static bool read_definitions(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->definitions && b->next_inner < b->definitions->len) {
        const struct json *definition = &b->definitions->items[b->next_inner++];
        struct str name = json_str(json_get_text(definition, "name"));
        struct tool_source source = {.definition = definition,
                                     .policy = policy_set_find(g->policies, name),
                                     .policies = g->policies,
                                     .pool = g->pool,
                                     .origin = b->file};
        struct tool *tool;
        struct why why;
        if (tool_build(g->arena, &g->config, &source, &tool, &why) == OK)
            generation_build_add(b, tool);
        else /* left out, so that the others are served */
            generation_report_warning(b->report, STR_FMT ": tool '" STR_FMT "' is left out: %s",
                                      STR_ARG(b->file), STR_ARG(name), why.text);
        return true;
    }
    b->next_inner = 0;
    if (b->next < g->config.tools.count) {
        const char *path = g->config.tools.list[b->next++];
        struct json *file = ARENA_NEW(g->arena, struct json);
        struct why why;
        bool read = json_read_file(g->arena, path, TOOLS_FILE_MAX_BYTES, file, &why) == OK;
        b->file = arena_dup(g->arena, str_of(path));
        b->definitions = read ? generation_tools_in_file(file) : NULL;
        if (!read)
            generation_report_error(b->report, "%s", why.text);
        else if (!b->definitions)
            generation_report_error(
                b->report,
                "%s: expected an array of {name, description, inputSchema} or {\"tools\": […]}, got %s", path,
                json_type_name((enum json_type)file->type));
        return true;
    }
    if (b->next_given == b->options.given_count)
        return false;
    const struct generation_definitions *given = &b->options.given[b->next_given++];
    b->file = arena_dup(g->arena, given->origin);
    b->definitions = given->list;
    return true;
}

static bool get_tool_lists(struct generation_build *b)
{
    struct generation *g = b->g;
    const struct tool_list_source *source = b->options.tool_lists;
    g->tool_lists = ARENA_ARRAY(g->arena, struct tool_list *, g->config.upstream_count);
    for (size_t i = 0; source && i < g->config.upstream_count; i++) {
        const struct upstream_spec *spec = g->config.upstreams[i];
        if (spec->kind != UPSTREAM_REST)
            g->tool_lists[i] = source->get(source->owner, spec->name);
    }
    g->guarded = ARENA_ARRAY(g->arena, struct guarded_tool, policy_set_count(g->policies));
    /* What the generation before knew of the policies of this one. */
    for (size_t i = 0; i < b->options.guarded_count; i++) {
        const struct guarded_tool *before = &b->options.guarded[i];
        const struct policy *policy = policy_set_find(g->policies, before->policy);
        if (is_unqualified(policy))
            add_guarded(g, policy->name, arena_dup(g->arena, before->upstream));
    }
    g->pins = pins_review_new(g->arena, b->options.pins, g->config.pins);
    return false;
}

static bool add_own_tools(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->next == policy_set_count(g->policies))
        return false;
    const struct policy *policy = policy_set_at(g->policies, b->next++);
    struct tool_source source = {
        .policy = policy, .policies = g->policies, .pool = g->pool, .origin = policy->file};
    struct tool *tool = map_get(g->by_name, policy->name);
    struct why why;
    if (policy_is_overlay(policy))
        return true;
    import_check_policy(b, policy);
    if (tool && tool->policy == policy && tool->definition)
        return true; /* the policy applies to a tool that has a definition */
    if (tool_build(g->arena, &g->config, &source, &tool, &why) == OK)
        generation_build_add(b, tool);
    else
        generation_report_error(b->report, STR_FMT ": %s", STR_ARG(policy->file), why.text);
    return true;
}

/* So that examples can call a tool that is not registered or listed yet. */
static bool add_example_tools(struct generation_build *b)
{
    struct generation *g = b->g;
    if (!b->names)
        import_list_names(b);
    if (b->next == policy_set_count(g->policies))
        return false;
    const struct policy *policy = policy_set_at(g->policies, b->next++);
    for (size_t i = 0; policy_is_overlay(policy) && i < policy->example_count; i++) {
        struct tool_source source = {.name = policy->examples[i].tool,
                                     .policies = g->policies,
                                     .pool = g->pool,
                                     .origin = policy->file};
        struct tool *tool;
        struct why why;
        if (map_get(g->by_name, source.name))
            continue;
        if (tool_build(g->arena, &g->config, &source, &tool, &why) == OK) {
            tool->schema_pending = b->waits;
            generation_build_add(b, tool);
        } else {
            generation_report_error(b->report, STR_FMT ": example: %s", STR_ARG(policy->file), why.text);
        }
    }
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

static bool read_schemas(struct generation_build *b)
{
    struct generation *g = b->g;
    response_schemas_load(g->arena, g->config.schemas, b->report, &g->schemas);
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return str_cmp((*(struct tool *const *)a)->name, (*(struct tool *const *)b)->name);
}

static bool sort_tools(struct generation_build *b)
{
    struct generation *g = b->g;
    for (size_t i = 0; i < g->tool_count; i++) { /* what its policies guard now */
        const struct tool *tool = g->tools[i];
        if (tool->target.kind == TARGET_MCP && is_unqualified(tool->policy))
            add_guarded(g, tool->policy->name, tool->target.upstream);
    }
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

static bool hash_generation(struct generation_build *b)
{
    struct generation *g = b->g;
    uint64_t policies = policy_set_hash(g->policies);
    struct buf rules = {0};
    for (size_t i = 0; i < g->config.allow_count; i++) {
        const struct allow_rule *rule = &g->config.allow[i];
        buf_printf(&rules, "%d %zu %zu %zu ", rule->everyone, rule->uid_count, rule->gid_count,
                   rule->tools.count);
        buf_add(&rules, rule->uids, rule->uid_count * sizeof(*rule->uids));
        buf_add(&rules, rule->gids, rule->gid_count * sizeof(*rule->gids));
        for (size_t k = 0; k < rule->tools.count; k++)
            buf_printf(&rules, STR_FMT " ", STR_ARG(rule->tools.list[k]));
    }
    uint64_t allow = hash_stable(buf_view(&rules)).low;
    buf_clear(&rules);
    bool has_hooks = policy_set_gateway(g->policies)->hooks[HOOK_PREPARE]; /* so the list depends on code */
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
    load_policies,      read_definitions,   get_tool_lists,     import_reserve_names,
    import_review_pins, import_count_names, import_tools,       import_held,
    add_own_tools,      add_aliases,        add_example_tools,  import_check_unmatched,
    idle_guards_check,  sort_tools,         import_plain_names, read_schemas,
    hash_tools,         hash_generation};
#define PHASE_COUNT (sizeof(phases) / sizeof(phases[0]))

struct generation_build *generation_build_begin(struct config *config, uint64_t number,
                                                const struct generation_build_options *options,
                                                struct generation_report *report)
{
    struct arena *arena = arena_new();
    struct generation *g = ARENA_NEW(arena, struct generation);
    struct generation_build *b = alloc_zeroed(sizeof(*b));
    *g = (struct generation){.arena = arena,
                             .pool = arena_pool_new(arena),
                             .number = number,
                             .references = 1,
                             .config = *config,
                             .by_name = map_new(arena),
                             .guarded_by_policy = map_new(arena)};
    *config = (struct config){0};
    if (options)
        b->options = *options;
    struct policy_set_options policies = {.deadline_ms = g->config.limits.policy_ms,
                                          .memory_kb = g->config.limits.policy_kb,
                                          .stalls = b->options.stalls,
                                          .stall_count = b->options.stall_count,
                                          .skip_broken = b->options.skip_broken};
    b->g = g;
    b->report = report;
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
    b->next = b->next_inner = 0;
    b->phase = b->g->policies ? b->phase + 1 : PHASE_COUNT;
    return b->phase < PHASE_COUNT;
}

enum err generation_build_end(struct generation_build *b, struct generation **out)
{
    struct generation *g = b->g;
    bool complete =
        b->phase == PHASE_COUNT && g->policies && (b->options.skip_broken || b->report->error_count == 0);
    if (b->policies)
        policy_set_load_end(b->policies, &g->policies);
    if (complete) {
        struct str nothing = generation_serves_nothing(g, b->report->arena);
        if (nothing.len && !b->report->error_count)
            generation_report_warning(b->report, STR_FMT, STR_ARG(nothing));
        check_access(g, b->report);
        check_unloaded(g, b->report);
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

enum err generation_build(struct config *config, uint64_t number,
                          const struct generation_build_options *options, struct generation **out,
                          struct generation_report *report)
{
    struct generation_build *b = generation_build_begin(config, number, options, report);
    while (generation_build_step(b))
        continue;
    return generation_build_end(b, out);
}

/* ---- mode shadow: where it is declared, and where it has outlived its date: in each policy, and in the
 * defaults ---- */

size_t shadow_expired(const struct generation *generation, int64_t now_ms, struct arena *arena,
                      struct shadow_expiry **out)
{
    const struct config *config = &generation->config;
    size_t policies = policy_set_count(generation->policies), count = 0;
    struct shadow_expiry *list = ARENA_ARRAY(arena, struct shadow_expiry, policies + 1);
    for (size_t i = 0; i <= policies; i++) { /* the defaults first */
        const struct policy *policy = i ? policy_set_at(generation->policies, i - 1) : NULL;
        struct str date = policy ? policy->shadow_until : config->defaults.shadow_until;
        int64_t seconds;
        if (!date_read(date, &seconds) || seconds * 1000 > now_ms)
            continue;
        list[count++] = (struct shadow_expiry){
            policy, policy ? policy->file : str_of(config->file),
            arena_printf(arena,
                         "%smode = \"shadow\" was to end on " STR_FMT
                         ", and nothing is enforced yet: set mode = \"enforce\", or a later shadow_until",
                         policy ? "" : "defaults: ", STR_ARG(date))};
    }
    *out = list;
    return count;
}

static void add_tool(struct arena *arena, struct shadow_place *place, const struct tool *tool)
{
    struct str *list = arena_grow(arena, (void *)place->tools, place->tool_count, sizeof(*list));
    list[place->tool_count++] = tool->name;
    place->tools = list;
}

/* One pass over the tools, as there may be thousands of them and of policies. */
size_t shadow_places(const struct generation *g, struct arena *arena, struct shadow_place **out)
{
    size_t policies = policy_set_count(g->policies), count = 0;
    struct shadow_place *list = ARENA_ARRAY(arena, struct shadow_place, policies + 1), rest = {0};
    for (size_t i = 0; i < g->tool_count; i++) {
        const struct tool *tool = g->tools[i];
        bool declares = tool->policy && tool->policy->mode_given; /* in all its policies */
        if (tool->policy)
            add_tool(arena, &list[tool->policy->position], tool);
        for (size_t n = 0; n < tool->overlay_count; n++) {
            add_tool(arena, &list[tool->overlays[n].policy->position], tool);
            declares &= tool->overlays[n].policy->mode_given;
        }
        if (declares)
            add_tool(arena, &rest, tool);
    }
    for (size_t i = 0; i < policies; i++) {
        const struct policy *policy = policy_set_at(g->policies, i);
        if (!policy->mode_given || policy->mode != POLICY_SHADOW || !list[i].tool_count)
            continue;
        list[i].file = policy->file;
        list[i].line = policy->mode_line;
        list[count++] = list[i];
    }
    if (g->config.defaults.mode == POLICY_SHADOW) {
        rest.file = str_of(g->config.file);
        rest.line = g->config.defaults.mode_line;
        rest.is_default = true;
        list[count++] = rest;
    }
    *out = list;
    return count;
}

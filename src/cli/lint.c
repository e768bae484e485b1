/* The run that prepares what the checks look at, and the checks that are C. */
#include "cli/lint.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "gate/examples.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "json/parse.h"
#include "policy/policy_set.h"
#include "policy/source_location.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINT_SHOWN_MAX_NODES 50000000u /* of all definitions together */

static const struct {
    const char *code;
    lint_check *check;
    bool of_tool;
} checks[] = {{"contradiction", lint_contradictions, false},
              {"rule", lint_rule_conflicts, false},
              {"untried-rule", lint_untried_rules, false},
              {"untried-hook", lint_untried_hooks, false},
              {"no-examples", lint_no_examples, false},
              {"unjudged", lint_unused_result, false},
              {"twice", lint_duplicate_example, false},
              {"off", lint_mode_off, false},
              {"argument", lint_argument_paths, false},
              {"result", lint_result_paths, false},
              {"todo", lint_todo, false},
              {"no-hint", lint_no_hint, false},
              {"no-effects", lint_no_effects, false},
              {"hints", lint_hints, true},
              {"again", lint_retry_not_idempotent, false},
              {"left-option", lint_left_option, false}};

void lint_report(struct lint_context *c, int line, const char *format, ...)
{
    bool theirs = c->of_tool && c->tool && c->tool->definition && !c->policy;
    struct lint_finding f = {.line = theirs ? 0 : line, .code = c->code, .theirs = theirs};
    f.file = c->policy ? c->policy->file : c->tool ? c->tool->origin : STR_NONE;
    va_list args;
    va_start(args, format);
    f.sentence = arena_vprintf(c->arena, format, args);
    va_end(args);
    c->visitor->found(c->visitor->owner, &f);
}

int lint_tool_line(const struct lint_context *c)
{
    return c->policy ? location_of_tool(c->tokens) : 0;
}

int lint_schema_line(const struct lint_context *c)
{
    int line = c->policy ? location_of_field(c->tokens, NULL, STR_LIT("schema")) : 0;
    return line ? line : lint_tool_line(c);
}

/* The warnings of a build name a file of definitions, or the upstream that sent them. */
static bool is_about_definitions(const struct generation *generation, const struct lint_finding *f)
{
    for (size_t i = 0; generation && i < generation->config.tools.count; i++)
        if (str_is(f->file, generation->config.tools.list[i]))
            return true;
    return str_starts(f->file, "upstream ") || str_starts(f->sentence, "upstream ");
}

/* Splits "file:12: message" or "file: message"; a message alone has no place. `warns`: it is a warning of a
 * build, of `generation` if that was built. */
static void add_message(const struct lint_visitor *visitor, const char *code, struct str text, bool warns,
                        const struct generation *generation)
{
    const char *colon = text.len ? memmem(text.at, text.len, ": ", 2) : NULL;
    struct str file = colon ? (struct str){text.at, (size_t)(colon - text.at)} : STR_NONE;
    size_t end = file.len, scale = 1;
    int line = 0;
    if (colon && memchr(file.at, ' ', file.len))
        file = STR_NONE;
    else if (colon)
        text = str_from(text, file.len + 2);
    while (end && file.len && file.at[end - 1] >= '0' && file.at[end - 1] <= '9') {
        line += (int)scale * (file.at[--end] - '0');
        scale *= 10;
    }
    if (end && end < file.len && file.at[end - 1] == ':')
        file.len = end - 1;
    else
        line = 0;
    struct lint_finding f = {.file = file, .line = line, .code = code, .sentence = text};
    f.theirs = warns && is_about_definitions(generation, &f);
    visitor->found(visitor->owner, &f);
}

struct run_list {
    struct arena *arena;
    struct lint_example_run *list;
    const struct policy **policies; /* whose example it is */
    size_t count, capacity;
};

static void add_run(void *owner, const struct example_outcome *o)
{
    static const char *const early[] = {"known", "schema", "rules", "admit", "check"};
    struct run_list *runs = owner;
    bool judged = true;
    for (size_t i = 0; o->stage && i < sizeof(early) / sizeof(early[0]); i++)
        judged = judged && strcmp(o->stage, early[i]) != 0;
    if (runs->count < runs->capacity) {
        runs->policies[runs->count] = o->policy;
        runs->list[runs->count++] = (struct lint_example_run){o->example, judged};
    }
}

/* The definitions as models see them, an array. */
static struct json definitions(struct arena *arena, struct generation *generation)
{
    struct catalog_request request = {.provider = {.format = PROVIDER_FORMAT_MCP}, .all = true};
    static const struct json_limits limits = {.nodes = LINT_SHOWN_MAX_NODES};
    struct buf text = buf_in(arena);
    struct json list;
    struct json_error fault;
    struct peer peer;
    peer_init(&peer, getuid(), getgid(), getpid());
    request.peer = &peer;
    enum log_level level = log_quiet();
    catalog_write(arena, generation, &request, &text);
    log_level_set(level);
    return json_parse(arena, buf_view(&text), &limits, &list, &fault) == OK ? list : json_array(NULL, 0);
}

static void check_tool(struct lint_context c, const struct tool *tool, const struct json *shown,
                       const struct coverage *coverage, const struct run_list *runs)
{
    c.tool = tool;
    c.policy = tool->policy;
    for (uint32_t i = 0; i < shown->len; i++)
        if (str_eq(json_str(json_get_text(&shown->items[i], "name")), tool->name))
            c.shown = &shown->items[i];
    if (c.policy)
        c.source = policy_source(c.policy, c.arena);
    c.tokens = location_tokens(c.arena, c.source);
    if (c.policy) {
        size_t count, first = 0;
        const struct coverage_file *files = coverage_files(coverage, &count);
        for (size_t i = 0; i < count && !c.coverage; i++)
            if (str_eq(files[i].file, c.policy->file))
                c.coverage = &files[i];
        while (first < runs->count && runs->policies[first] != c.policy)
            first++;
        c.runs = runs->list + first; /* the runs of one policy are adjacent */
        while (first + c.run_count < runs->count && runs->policies[first + c.run_count] == c.policy)
            c.run_count++;
    }
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        c.code = checks[i].code;
        c.of_tool = checks[i].of_tool;
        checks[i].check(&c);
    }
    c.visitor->subject(c.visitor->owner, &c);
}

static void check_generation(const struct lint_visitor *visitor, struct generation *generation,
                             bool only_policies)
{
    struct lint_context c = {
        .visitor = visitor, .arena = arena_new(), .generation = generation, .only_policies = only_policies};
    struct coverage *coverage = coverage_new();
    struct run_list runs = {.arena = c.arena};
    struct generation_report failed;
    generation_report_init(&failed, c.arena);
    struct json shown = definitions(c.arena, generation);
    struct policy_set *policies = generation->policies;
    for (size_t i = 0; i < policy_set_count(policies); i++)
        runs.capacity += policy_set_at(policies, i)->example_count;
    runs.list = ARENA_ARRAY(runs.arena, struct lint_example_run, runs.capacity + 1);
    runs.policies = ARENA_ARRAY(runs.arena, const struct policy *, runs.capacity + 1);
    struct examples_options options = {.seen = add_run, .owner = &runs};
    coverage_begin(coverage, policies);
    examples_run(generation, &failed, &options);
    coverage_end(coverage, policies);
    for (size_t i = 0; i < failed.error_count; i++)
        add_message(visitor, "example", failed.errors[i], false, NULL);
    visitor->subject(visitor->owner, &c);
    for (size_t i = 0; i < generation->tool_count; i++) {
        const struct tool *tool = generation->tools[i];
        if (tool->policy || !only_policies)
            check_tool(c, tool, &shown, coverage, &runs);
    }
    c.code = "shadow-expired";
    if (!only_policies)
        lint_shadow_expired(&c);
    coverage_free(coverage);
    arena_free(c.arena);
}

/* NULL if it does not load. *folder: the policies that the configuration names, in `arena`. */
static struct generation *build(const struct config_sources *sources, struct arena *arena,
                                const char **folder, struct generation_report *report)
{
    struct config config;
    struct generation *generation = NULL;
    struct why why;
    if (config_load(sources, &config, &why) != OK) {
        generation_report_error(report, "%s", why.text);
        config_free(&config);
        return NULL;
    }
    *folder = config.policies ? arena_dup(arena, str_of(config.policies)).at : NULL;
    generation_build(&config, 1, &generation, report);
    return generation;
}

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len >= n && strcmp(text + len - n, end) == 0;
}

/* One invalid file prevents all others from loading, so each is checked alone. */
static bool check_files(const struct lint_visitor *visitor, const struct config_sources *sources,
                        struct arena *arena, const char *folder)
{
    char pattern[4096];
    glob_t found = {0};
    snprintf(pattern, sizeof(pattern), "%s/*.lua", folder);
    int result = glob(pattern, 0, NULL, &found);
    size_t count = result == 0 ? found.gl_pathc : 0;
    for (size_t i = 0; i < count; i++) {
        struct config_sources alone = *sources;
        struct generation_report report;
        const char *unused;
        generation_report_init(&report, arena);
        alone.policies = found.gl_pathv[i];
        bool spec = ends_in(alone.policies, "_spec.lua");
        struct generation *generation = spec ? NULL : build(&alone, arena, &unused, &report);
        if (generation)
            check_generation(visitor, generation, true);
        generation_unref(generation);
    }
    globfree(&found);
    return count > 0;
}

bool lint_run(const struct config_sources *sources, const struct lint_visitor *visitor)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    const char *folder = NULL;
    generation_report_init(&report, arena);
    struct generation *generation = build(sources, arena, &folder, &report);
    bool checked = generation != NULL;
    for (size_t i = 0; i < report.error_count; i++)
        for (struct str rest = report.errors[i]; rest.len;) { /* one string may have several lines */
            const char *end = memchr(rest.at, '\n', rest.len);
            size_t len = end ? (size_t)(end - rest.at) : rest.len;
            add_message(visitor, "load", (struct str){rest.at, len}, false, NULL);
            rest = str_from(rest, len + 1);
        }
    /* Neither well nor odd: there is nothing to check, and the only warning says so. */
    bool nothing = generation && generation_serves_nothing(generation, arena).len;
    for (size_t i = 0; i < report.warning_count; i++)
        add_message(visitor, nothing ? "load" : "odd", report.warnings[i], true, generation);
    if (nothing)
        checked = false;
    else if (generation)
        check_generation(visitor, generation, false);
    else if (folder && ends_in(folder, ".lua"))
        checked = true;
    else if (folder)
        checked = check_files(visitor, sources, arena, folder);
    generation_unref(generation);
    arena_free(arena);
    return checked;
}

/* The table of checks, the run that prepares their context, and the list of findings. */
#include "lint/lint.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "gate/examples.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "json/parse.h"
#include "lint/lint_internal.h"
#include "policy/policy_set.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINT_SHOWN_MAX_NODES 50000000u /* of all definitions together */

/* Code, level, what it finds, and its function: for each tool, or for the whole generation. */
enum { LOAD, EXAMPLE, ODD };
static const struct check {
    struct lint_code code;
    lint_check *tool, *whole;
    enum lint_subject subject;
} checks[] = {
#define OF(subject, code, level, finds, function)                                                            \
    {                                                                                                        \
        {code, level, finds}, function, NULL, subject                                                        \
    }
#define EACH(code, level, finds, function) OF(LINT_OF_POLICY, code, level, finds, function)
    [LOAD] = EACH(
        "load", LINT_ERROR,
        "what toolgate refuses to load: unknown fields, mistyped names, rules that contradict each other",
        NULL),
    [EXAMPLE] = EACH("example", LINT_ERROR, "an example that fails", NULL),
    [ODD] = EACH("odd", LINT_WARNING,
                 "a definition that is left out, or has a name or schema that MCP does not allow", NULL),
    EACH("contradiction", LINT_ERROR, "a schema of a policy that contradicts itself", lint_contradictions),
    EACH("rule", LINT_WARNING,
         "a rule that contradicts another or the schema, or that the schema makes needless",
         lint_rule_conflicts),
    EACH("untried-rule", LINT_WARNING, "a rule that no example reaches", lint_untried_rules),
    EACH("untried-hook", LINT_WARNING, "a function of the policy that no example reaches",
         lint_untried_hooks),
    EACH("no-examples", LINT_WARNING, "a policy without an example", lint_no_examples),
    EACH("unjudged", LINT_WARNING, "an example whose result is not used", lint_unused_result),
    EACH("twice", LINT_WARNING, "two examples of the same call", lint_duplicate_example),
    EACH("off", LINT_WARNING, "a policy that is off although it has examples", lint_mode_off),
    EACH("argument", LINT_WARNING, "ids or loop.volatile name an argument that the schema does not have",
         lint_argument_paths),
    EACH("result", LINT_WARNING,
         "gives_ids, redact or compact name a field that the output schema does not have", lint_result_paths),
    EACH("todo", LINT_WARNING, "a TODO that toolgate new, or somebody, has left", lint_todo),
    EACH("no-hint", LINT_WARNING, "refuses without a hint", lint_no_hint),
    OF(LINT_OF_DESCRIPTION, "no-description", LINT_WARNING, "a tool without a description",
       lint_no_description),
    OF(LINT_OF_SCHEMA, "undescribed", LINT_WARNING, "an argument without a description",
       lint_undescribed_arguments),
    EACH("no-effects", LINT_WARNING, "a policy that does not declare the effects of its tool",
         lint_no_effects),
    OF(LINT_OF_TOOL, "hints", LINT_WARNING, "annotations that contradict each other, the name or the policy",
       lint_hints),
    EACH("orders", LINT_WARNING,
         "a description that gives orders to the model, or about tools of other servers, imitates the "
         "gateway's feedback, or has hidden characters",
         lint_orders),
    EACH("again", LINT_WARNING, "retry.again for a tool that is not declared idempotent",
         lint_retry_not_idempotent),
    EACH("left-option", LINT_WARNING, "exec: an option that stays without its argument", lint_left_option),
    OF(LINT_OF_SCHEMA, "root-choice", LINT_WARNING,
       "oneOf, anyOf or allOf at the root of a schema (Anthropic, OpenAI)", lint_root_choice),
    OF(LINT_OF_SCHEMA, "argument-name", LINT_WARNING, "an argument whose name is refused (Anthropic)",
       lint_property_name),
    OF(LINT_OF_SCHEMA, "list-items", LINT_WARNING, "a list without items (OpenAI, Gemini)", lint_list_items),
    OF(LINT_OF_DESCRIPTION, "long-description", LINT_WARNING,
       "a description of more than 1024 characters (OpenAI)", lint_long_description),
    OF(LINT_OF_SCHEMA, "many-values", LINT_WARNING, "enums that are too large (OpenAI)", lint_many_values),
    {{"overlay-examples", LINT_WARNING, "a policy for several tools without an example"},
     NULL,
     lint_overlay_examples},
    {{"shadow-expired", LINT_WARNING, "a mode \"shadow\" that was to end by now (shadow_until)"},
     NULL,
     lint_shadow_expired},
    {{"overlay", LINT_NOTE, "the tools that a policy for several lies over"}, NULL, lint_overlay_tools},
    {{"many-tools", LINT_WARNING, "more than 128 tools (OpenAI)"}, NULL, lint_many_tools},
    OF(LINT_OF_TOOL, "first-letter", LINT_NOTE, "a tool's name that begins with a digit or '-' (Gemini)",
       lint_first_letter),
    OF(LINT_OF_SCHEMA, "enum-type", LINT_NOTE, "an enum with values other than strings (Gemini)",
       lint_enum_type),
    OF(LINT_OF_SCHEMA, "strict", LINT_NOTE, "a schema that is not possible in OpenAI's strict mode",
       lint_strict),
#undef EACH
#undef OF
};
#define CHECK_COUNT (sizeof(checks) / sizeof(checks[0]))

struct lint {
    struct arena *arena;
    struct lint_finding *list;
    size_t count, capacity;
};

const struct lint_code *lint_codes(size_t *count)
{
    static struct lint_code codes[CHECK_COUNT];
    for (size_t i = 0; i < CHECK_COUNT; i++)
        codes[i] = checks[i].code;
    *count = CHECK_COUNT;
    return codes;
}

const char *lint_level_name(enum lint_level level)
{
    static const char *const names[] = {
        [LINT_ERROR] = "error", [LINT_WARNING] = "warning", [LINT_NOTE] = "note"};
    return names[level];
}

struct lint *lint_new(void)
{
    struct lint *lint = calloc(1, sizeof(*lint));
    if (!lint)
        abort();
    lint->arena = arena_new();
    return lint;
}

void lint_free(struct lint *lint)
{
    arena_free(lint->arena);
    free(lint);
}

static struct lint_finding *add(struct lint *lint, struct str file, int line, const struct lint_code *code,
                                struct str sentence)
{
    if (lint->count == lint->capacity) {
        size_t capacity = lint->capacity ? lint->capacity * 2 : 64;
        struct lint_finding *longer = ARENA_ARRAY(lint->arena, struct lint_finding, capacity);
        if (lint->count)
            memcpy(longer, lint->list, lint->count * sizeof(*longer));
        lint->list = longer;
        lint->capacity = capacity;
    }
    lint->list[lint->count++] = (struct lint_finding){.file = arena_dup(lint->arena, file),
                                                      .line = line,
                                                      .level = code->level,
                                                      .code = code->code,
                                                      .sentence = arena_dup(lint->arena, sentence)};
    return &lint->list[lint->count - 1];
}

/* A policy answers for what it writes itself, and for words that it adds to a description. */
static bool is_theirs(const struct lint_context *c)
{
    const struct policy *policy = c->policy;
    if (!c->tool || !c->tool->definition || c->subject == LINT_OF_POLICY)
        return false;
    if (c->subject == LINT_OF_SCHEMA)
        return !policy || !policy->schema;
    if (c->subject == LINT_OF_DESCRIPTION)
        return !policy || (!policy->description.len && !policy->use_when.len && !policy->avoid_when.len);
    return !policy;
}

void lint_report(struct lint_context *c, int line, const char *format, ...)
{
    bool theirs = is_theirs(c);
    struct str file = c->policy && !theirs ? c->policy->file : c->tool ? c->tool->origin : STR_NONE;
    va_list args;
    va_start(args, format);
    add(c->lint, file, theirs ? 0 : line, c->code, arena_vprintf(c->arena, format, args))->theirs = theirs;
    va_end(args);
}

static int by_place(const void *a, const void *b)
{
    const struct lint_finding *left = a, *right = b;
    int order = str_cmp(left->file, right->file);
    if (!order)
        order = left->line - right->line;
    if (!order)
        order = (int)left->level - (int)right->level;
    if (!order)
        order = strcmp(left->code, right->code);
    return order ? order : str_cmp(left->sentence, right->sentence);
}

const struct lint_finding *lint_findings(struct lint *lint, size_t *count)
{
    size_t kept = 0;
    if (lint->count)
        qsort(lint->list, lint->count, sizeof(*lint->list), by_place);
    for (size_t i = 0; i < lint->count; i++)
        if (!kept || by_place(&lint->list[kept - 1], &lint->list[i]) != 0)
            lint->list[kept++] = lint->list[i];
    *count = lint->count = kept;
    return lint->list;
}

/* Splits "file:12: message" or "file: message"; a message alone has no place. */
static struct lint_finding *add_message(struct lint *lint, const struct lint_code *code, struct str text)
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
    return add(lint, file, line, code, text);
}

/* The warnings of a build name a file of definitions, or the upstream that sent them. */
static bool is_about_definitions(const struct generation *generation, const struct lint_finding *f)
{
    for (size_t i = 0; generation && i < generation->config.tools.count; i++)
        if (str_is(f->file, generation->config.tools.list[i]))
            return true;
    return str_starts(f->file, "upstream ") || str_starts(f->sentence, "upstream ");
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
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        c.code = &checks[i].code;
        c.subject = checks[i].subject;
        if (checks[i].tool)
            checks[i].tool(&c);
    }
}

/* `only_policies`: skips tools without a policy and checks of the whole generation. */
static void check_generation(struct lint *lint, struct generation *generation, bool only_policies)
{
    struct lint_context c = {.lint = lint, .arena = arena_new(), .generation = generation};
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
        add_message(lint, &checks[EXAMPLE].code, failed.errors[i]);
    for (size_t i = 0; i < generation->tool_count; i++) {
        const struct tool *tool = generation->tools[i];
        if (tool->policy || !only_policies)
            check_tool(c, tool, &shown, coverage, &runs);
    }
    for (size_t i = 0; i < CHECK_COUNT && !only_policies; i++) {
        c.code = &checks[i].code;
        if (checks[i].whole)
            checks[i].whole(&c);
    }
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
static bool check_files(struct lint *lint, const struct config_sources *sources, struct arena *arena,
                        const char *folder)
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
            check_generation(lint, generation, true);
        generation_unref(generation);
    }
    globfree(&found);
    return count > 0;
}

bool lint_run(struct lint *lint, const struct config_sources *sources)
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
            add_message(lint, &checks[LOAD].code, (struct str){rest.at, len});
            rest = str_from(rest, len + 1);
        }
    /* Neither well nor odd: there is nothing to check, and the only warning says so. */
    bool nothing = generation && generation_serves_nothing(generation, arena).len;
    for (size_t i = 0; i < report.warning_count; i++) {
        struct lint_finding *f =
            add_message(lint, nothing ? &checks[LOAD].code : &checks[ODD].code, report.warnings[i]);
        f->theirs = is_about_definitions(generation, f);
    }
    if (nothing)
        checked = false;
    else if (generation)
        check_generation(lint, generation, false);
    else if (folder && ends_in(folder, ".lua"))
        checked = true;
    else if (folder)
        checked = check_files(lint, sources, arena, folder);
    generation_unref(generation);
    arena_free(arena);
    return checked;
}

/* The table of checks, what they are given, and what becomes of what they find. */
#include "lint/lint.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "gate/examples.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "json/parse.h"
#include "lint/lint_internal.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINT_SHOWN_MAX_NODES 50000000u /* of all definitions together */

/* One a line: code, level, what it finds, who looks: at each tool, or at the whole. */
enum { LOAD, EXAMPLE, ODD };
static const struct check {
    struct lint_code code;
    lint_check *tool, *whole;
} checks[] = {
    [LOAD] =
        {{"load", LINT_ERROR,
          "what toolgate refuses to load: unknown fields, mistyped names, rules that contradict each other"},
         NULL,
         NULL},
    [EXAMPLE] = {{"example", LINT_ERROR, "an example that fails"}, NULL, NULL},
    [ODD] = {{"odd", LINT_WARNING,
              "a definition that is left out, or has a name or schema that MCP does not take"},
             NULL,
             NULL},
    {{"rule", LINT_WARNING,
      "a rule that contradicts another or the schema, or that the schema makes needless"},
     lint_rule_conflicts,
     NULL},
    {{"untried-rule", LINT_WARNING, "a rule that no example meets"}, lint_untried_rules, NULL},
    {{"untried-hook", LINT_WARNING, "a function of the policy that no example reaches"},
     lint_untried_hooks,
     NULL},
    {{"no-examples", LINT_WARNING, "a policy that decides something and has no example"},
     lint_no_examples,
     NULL},
    {{"unjudged", LINT_WARNING, "an example whose result is never looked at"}, lint_unused_result, NULL},
    {{"twice", LINT_WARNING, "two examples of the same call"}, lint_duplicate_example, NULL},
    {{"off", LINT_WARNING, "a policy that is off, although its examples say what it should do"},
     lint_mode_off,
     NULL},
    {{"argument", LINT_WARNING, "ids or loop.volatile name an argument that the schema has not got"},
     lint_argument_paths,
     NULL},
    {{"result", LINT_WARNING, "gives_ids, redact or compact name a field that the output schema has not got"},
     lint_result_paths,
     NULL},
    {{"no-hint", LINT_WARNING, "refuse, refuses or garbage without a hint"}, lint_no_hint, NULL},
    {{"no-path", LINT_WARNING, "repair without a path"}, lint_no_path, NULL},
    {{"no-description", LINT_WARNING, "a tool without a description"}, lint_no_description, NULL},
    {{"undescribed", LINT_WARNING, "an argument without a description"}, lint_undescribed_arguments, NULL},
    {{"no-effects", LINT_WARNING, "a policy that does not say what its tool does to the world"},
     lint_no_effects,
     NULL},
    {{"again", LINT_WARNING, "retry.again for a tool that is not declared idempotent"},
     lint_retry_not_idempotent,
     NULL},
    {{"left-option", LINT_WARNING, "exec: an option that stays where its argument is left out"},
     lint_left_option,
     NULL},
    {{"root-choice", LINT_WARNING, "oneOf, anyOf or allOf at the root of a schema (Anthropic, OpenAI)"},
     lint_root_choice,
     NULL},
    {{"argument-name", LINT_WARNING, "an argument whose name is refused (Anthropic)"},
     lint_property_name,
     NULL},
    {{"list-items", LINT_WARNING, "a list that does not say what its items are (OpenAI, Gemini)"},
     lint_list_items,
     NULL},
    {{"long-description", LINT_WARNING, "a description of more than 1024 characters (OpenAI)"},
     lint_long_description,
     NULL},
    {{"many-values", LINT_WARNING, "enums that are too large (OpenAI)"}, lint_many_values, NULL},
    {{"many-tools", LINT_WARNING, "more than 128 tools (OpenAI)"}, NULL, lint_many_tools},
    {{"first-letter", LINT_NOTE, "a tool's name that begins with a digit or '-' (Gemini)"},
     lint_first_letter,
     NULL},
    {{"enum-type", LINT_NOTE, "an enum of other values than texts (Gemini)"}, lint_enum_type, NULL},
    {{"strict", LINT_NOTE, "a schema that OpenAI's strict mode cannot say"}, lint_strict, NULL},
};
#define CHECK_COUNT (sizeof(checks) / sizeof(checks[0]))

struct lint {
    struct arena *arena;
    struct lint_finding *list;
    size_t count, room;
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

/* ---- findings --------------------------------------------------------------------- */

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

static void add(struct lint *lint, struct str file, int line, const struct lint_code *code,
                struct str sentence)
{
    if (lint->count == lint->room) {
        size_t room = lint->room ? lint->room * 2 : 64;
        struct lint_finding *longer = ARENA_ARRAY(lint->arena, struct lint_finding, room);
        if (lint->count)
            memcpy(longer, lint->list, lint->count * sizeof(*longer));
        lint->list = longer;
        lint->room = room;
    }
    lint->list[lint->count++] = (struct lint_finding){.file = arena_dup(lint->arena, file),
                                                      .line = line,
                                                      .level = code->level,
                                                      .code = code->code,
                                                      .sentence = arena_dup(lint->arena, sentence)};
}

void lint_report(struct looking *look, int line, const char *format, ...)
{
    struct str file = look->policy ? look->policy->file : look->tool ? look->tool->origin : STR_NONE;
    va_list args;
    va_start(args, format);
    add(look->lint, file, line, look->code, arena_vprintf(look->arena, format, args));
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

/* ---- what the loader says ------------------------------------------------------------ */

/* "file:12: sentence" or "file: sentence"; a sentence alone has no place. */
static void add_line(struct lint *lint, const struct lint_code *code, struct str text)
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
    add(lint, file, line, code, text);
}

static void add_report(struct lint *lint, const struct generation_report *report)
{
    for (size_t i = 0; i < report->error_count; i++)
        for (struct str rest = report->errors[i]; rest.len;) { /* the configuration's errors are one text */
            const char *end = memchr(rest.at, '\n', rest.len);
            size_t len = end ? (size_t)(end - rest.at) : rest.len;
            add_line(lint, &checks[LOAD].code, (struct str){rest.at, len});
            rest = str_from(rest, len + 1);
        }
    for (size_t i = 0; i < report->warning_count; i++)
        add_line(lint, &checks[ODD].code, report->warnings[i]);
}

/* ---- what the checks are given --------------------------------------------------------- */

struct played {
    struct arena *arena;
    struct lint_example_run *list;
    const struct policy **policies; /* whose example it is */
    size_t count, room;
};

static void note_example(void *owner, const struct example_outcome *o)
{
    static const char *const early[] = {"known", "schema", "rules", "admit", "check"};
    struct played *played = owner;
    bool judged = true;
    for (size_t i = 0; o->stage && i < sizeof(early) / sizeof(early[0]); i++)
        judged = judged && strcmp(o->stage, early[i]) != 0;
    if (played->count < played->room) {
        played->policies[played->count] = o->policy;
        played->list[played->count++] = (struct lint_example_run){o->example, judged};
    }
}

static void play(struct generation *generation, struct coverage *coverage, struct played *played,
                 struct generation_report *report)
{
    struct policy_set *policies = generation_policies(generation);
    for (size_t i = 0; i < policy_set_count(policies); i++)
        played->room += policy_set_at(policies, i)->example_count;
    played->list = ARENA_ARRAY(played->arena, struct lint_example_run, played->room + 1);
    played->policies = ARENA_ARRAY(played->arena, const struct policy *, played->room + 1);
    struct examples_options options = {.seen = note_example, .owner = played};
    coverage_begin(coverage, policies);
    examples_run(generation, report, &options);
    coverage_end(coverage, policies);
}

/* The definitions as a model sees them, an array. */
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

static const struct json *shown_as(const struct json *list, struct str name)
{
    for (uint32_t i = 0; i < list->len; i++)
        if (str_eq(json_str(json_get_text(&list->items[i], "name")), name))
            return &list->items[i];
    return NULL;
}

static const struct coverage_file *reached(const struct coverage *coverage, struct str file)
{
    size_t count;
    const struct coverage_file *files = coverage_files(coverage, &count);
    for (size_t i = 0; i < count; i++)
        if (str_eq(files[i].file, file))
            return &files[i];
    return NULL;
}

/* Those of one policy stand together. */
static void pick_played(struct looking *look, const struct played *played)
{
    size_t i = 0;
    while (i < played->count && played->policies[i] != look->policy)
        i++;
    look->played = played->list + i;
    while (i + look->played_count < played->count && played->policies[i + look->played_count] == look->policy)
        look->played_count++;
}

/* ---- looking ------------------------------------------------------------------------------ */

static void look_at_tool(struct looking look, const struct tool *tool, const struct json *shown,
                         const struct coverage *coverage, const struct played *played)
{
    look.tool = tool;
    look.policy = tool->policy;
    look.shown = shown_as(shown, tool->name);
    if (look.policy) {
        look.survey = policy_introspection(look.policy, look.arena);
        look.of = reached(coverage, look.policy->file);
        pick_played(&look, played);
    }
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        look.code = &checks[i].code;
        if (checks[i].tool)
            checks[i].tool(&look);
    }
}

/* `only_policies`: the others have been looked at already, or will be. */
static void look_at(struct lint *lint, struct generation *generation, bool only_policies)
{
    struct looking look = {.lint = lint, .arena = arena_new(), .generation = generation};
    struct coverage *coverage = coverage_new();
    struct played played = {.arena = look.arena};
    struct generation_report failed;
    generation_report_init(&failed, look.arena);
    struct json shown = definitions(look.arena, generation);
    play(generation, coverage, &played, &failed);
    for (size_t i = 0; i < failed.error_count; i++)
        add_line(lint, &checks[EXAMPLE].code, failed.errors[i]);
    for (size_t i = 0; i < generation_tool_count(generation); i++) {
        const struct tool *tool = generation_tool_at(generation, i);
        if (tool->policy || !only_policies)
            look_at_tool(look, tool, &shown, coverage, &played);
    }
    for (size_t i = 0; i < CHECK_COUNT && !only_policies; i++) {
        look.code = &checks[i].code;
        if (checks[i].whole)
            checks[i].whole(&look);
    }
    coverage_free(coverage);
    arena_free(look.arena);
}

/* NULL where it does not load; `*folder` is what the configuration named, in `arena`. */
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

/* One broken file keeps all others from loading: they are looked at one by one. */
static bool look_at_files(struct lint *lint, const struct config_sources *sources, struct arena *arena,
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
            look_at(lint, generation, true);
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
    bool looked = generation != NULL;
    add_report(lint, &report);
    if (generation)
        look_at(lint, generation, false);
    else if (folder && ends_in(folder, ".lua"))
        looked = true;
    else if (folder)
        looked = look_at_files(lint, sources, arena, folder);
    generation_unref(generation);
    arena_free(arena);
    return looked;
}

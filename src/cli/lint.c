/* The run of `toolgate lint` (lua/cli/lint.lua): loads everything, runs the examples, and gives findings and
 * subjects to Lua. Here are the checks that need what only C has: a policy's rules and the words of its
 * command. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/printable.h"
#include "catalog/catalog.h"
#include "catalog/definition.h"
#include "catalog/provider_formats.h"
#include "cli/lua_cli.h"
#include "gate/examples.h"
#include "json/build.h"
#include "json/parse.h"
#include "policy/coverage.h"
#include "policy/source_location.h"
#include "result/pattern_sets.h"
#include "sandbox/lua_json.h"
#include "upstream/exec/exec.h"

#include <unistd.h>

#define LINT_SHOWN_MAX_NODES 50000000u /* of all definitions together */

/* The arguments of run(), of which the last two are functions that are called. */
enum { OPTIONS = 1, PLACE, FOUND, SUBJECT };

/* One tool, or (tool NULL) the whole generation. */
struct lint_context {
    lua_State *L;
    struct arena *arena;
    bool only_policies; /* tools without one are left out, and what concerns the whole generation */
    struct generation *generation;
    const struct tool *tool;
    const struct policy *policy;            /* NULL: the tool has none */
    struct str source;                      /* of the policy; empty: it has none, or cannot be read */
    const struct token *tokens;             /* of the source */
    const struct json *shown;               /* the definition that models see; NULL: none */
    const struct coverage_file *coverage;   /* by the examples; NULL: unknown */
    const struct policy_example **unjudged; /* examples whose call is decided before its result */
    size_t unjudged_count;
};

/* Of the tool that is Lua's subject now. */
static const struct token *subject_tokens;

/* ---- findings ---- */

/* `line` 0: unknown, or the file has none. `theirs`: it is about a definition that a server or a program
 * published, not about a policy. */
static void add_finding(lua_State *L, struct str file, int line, const char *code, struct str sentence,
                        bool theirs)
{
    lua_pushvalue(L, FOUND);
    lua_cli_push_table(L, FIELD_STR("file", file), FIELD_NUM("line", line), FIELD_TEXT("code", code),
                       FIELD_STR("sentence", sentence), FIELD_BOOL("theirs", theirs));
    lua_call(L, 1, 0);
}

/* The warnings of a build name a file of definitions, or the upstream that sent them. */
static bool is_about_definitions(const struct generation *generation, struct str file, struct str sentence)
{
    for (size_t i = 0; generation && i < generation->config.tools.count; i++)
        if (str_is(file, generation->config.tools.list[i]))
            return true;
    return str_starts(file, "upstream ") || str_starts(sentence, "upstream ");
}

/* Splits "file:12: message" or "file: message"; a message alone has no place. `warns`: it is a warning of a
 * build, of `generation` if that was built. */
static void add_message(lua_State *L, const char *code, struct str text, bool warns,
                        const struct generation *generation)
{
    const char *colon = text.len ? memmem(text.at, text.len, ": ", 2) : NULL;
    struct str file = colon ? (struct str){text.at, (size_t)(colon - text.at)} : STR_NONE;
    size_t end = file.len, scale = 1;
    int line = 0;
    if (str_has(file, ' '))
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
    add_finding(L, file, line, code, text, warns && is_about_definitions(generation, file, text));
}

/* ---- subjects, for the checks in Lua ---- */

/* Its name, as its server calls it, too; a definition in a file names its server before the separator, if at
 * all. */
static void push_named(lua_State *L, const struct tool *tool)
{
    struct str name = tool->name, server = tool->origin, own = name;
    const char *separator = memmem(name.at, name.len, IMPORT_SEPARATOR, strlen(IMPORT_SEPARATOR));
    if (separator) {
        server = (struct str){name.at, (size_t)(separator - name.at)};
        own = str_from(name, server.len + strlen(IMPORT_SEPARATOR));
    }
    lua_cli_push_table(L, FIELD_STR("name", name),
                       FIELD_STR("server", tool->target.upstream.len ? tool->target.upstream : server),
                       FIELD_STR("own_name", tool->target.tool.len ? tool->target.tool : own),
                       FIELD_BOOL("described", tool_is_described(tool)));
}

static void push_generation(lua_State *L, const struct lint_context *c)
{
    const struct policy_set *policies = c->generation->policies;
    lua_cli_push_table(L, FIELD_BOOL("only_policies", c->only_policies));
    lua_newtable(L);
    for (size_t i = 0; i < c->generation->tool_count; i++) {
        push_named(L, c->generation->tools[i]);
        lua_cli_append(L);
    }
    lua_setfield(L, -2, "tools");
    lua_newtable(L);
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        const struct policy *policy = policy_set_at(policies, i);
        if (!policy_is_overlay(policy))
            continue;
        lua_cli_push_table(L, FIELD_STR("file", policy->file),
                           FIELD_BOOL("has_examples", policy->example_count > 0));
        lua_newtable(L);
        for (size_t t = 0; t < c->generation->tool_count; t++)
            if (tool_has_overlay(c->generation->tools[t], policy)) {
                lua_cli_push_str(L, c->generation->tools[t]->name);
                lua_cli_append(L);
            }
        lua_setfield(L, -2, "over");
        lua_cli_append(L);
    }
    lua_setfield(L, -2, "overlays");
}

static void push_rules(lua_State *L, const struct lint_context *c, bool tried)
{
    lua_newtable(L);
    for (size_t i = 0; i < c->policy->rule_count; i++) {
        bool untried = tried && i < c->coverage->rule_count && !c->coverage->rules[i].ran;
        lua_cli_append_table(L, FIELD_NUM("line", policy_rule_line(c->policy, i)),
                             FIELD_BOOL("lacks_hint", policy_rule_lacks_hint(c->policy, i)),
                             FIELD_OPTIONAL("untried", untried ? c->coverage->rules[i].words : STR_NONE));
    }
    lua_setfield(L, -2, "rules");
}

/* Without prepare: an example is a call, and prepare runs for tools/list. */
static void push_hooks(lua_State *L, const struct lint_context *c, bool tried)
{
    static const char *const names[] = {
        [HOOK_NORMALISE] = "normalise", [HOOK_CHECK] = "check", [HOOK_RUN] = "run", [HOOK_RESULT] = "result"};
    lua_newtable(L);
    for (size_t i = HOOK_NORMALISE; tried && i < sizeof(names) / sizeof(names[0]); i++)
        if (c->coverage->hooks_missed[i])
            lua_cli_set(L, FIELD_NUM(names[i], c->policy->hook_lines[i]));
    lua_setfield(L, -2, "untried_hooks"); /* to their lines */
}

/* `call`: two examples that make the same call have the same. */
static void push_examples(lua_State *L, const struct lint_context *c)
{
    lua_newtable(L);
    for (size_t i = 0; i < c->policy->example_count; i++) {
        const struct policy_example *e = &c->policy->examples[i];
        const struct json *const parts[] = {e->args, e->result, e->seen, e->history, e->facts, e->context};
        struct buf call = buf_in(c->arena);
        bool unjudged = false;
        for (size_t k = 0; e->result && k < c->unjudged_count; k++)
            unjudged |= c->unjudged[k] == e;
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
            if (parts[k])
                json_canonical(&call, parts[k]);
            buf_byte(&call, '\0');
        }
        buf_printf(&call, STR_FMT "\n" STR_FMT "\n" STR_FMT "\n%u", STR_ARG(e->goal), STR_ARG(e->user),
                   STR_ARG(e->called), e->turn);
        lua_cli_append_table(L, FIELD_STR("name", e->name), FIELD_NUM("line", e->line),
                             FIELD_BOOL("unjudged", unjudged), FIELD_BOOL("has_result", e->result != NULL),
                             FIELD_STR("call", buf_view(&call)));
    }
    lua_setfield(L, -2, "examples");
}

/* The paths that each field names. */
static void push_paths(lua_State *L, const struct policy *p)
{
    lua_newtable(L);
    lua_cli_set_list(L, "loop.volatile", p->volatiles, p->volatile_count);
    lua_cli_set_list(L, "gives_ids", p->gives_ids, p->gives_id_count);
    lua_cli_set_list(L, "loop.volatile_result", p->volatile_results, p->volatile_result_count);
    lua_cli_set_list(L, "redact", p->redact, p->redact_count);
    lua_cli_set_list(L, "compact.keep", p->compact.keep, p->compact.keep_count);
    lua_cli_set_list(L, "compact.drop", p->compact.drop, p->compact.drop_count);
    lua_newtable(L);
    for (size_t i = 0; i < p->id_count; i++) {
        lua_cli_push_str(L, p->ids[i].path);
        lua_cli_append(L);
    }
    lua_setfield(L, -2, "ids");
    lua_setfield(L, -2, "paths");
}

/* The optional argument that the word names, without which exec omits it, or STR_NONE. */
static struct str optional_argument(const struct json *schema, struct str word)
{
    struct exec_piece piece;
    while (exec_argv_next_piece(&word, &piece))
        if (piece.kind == EXEC_PIECE_ARGUMENT &&
            !json_array_has(json_get_text(schema, "required"), piece.text))
            return piece.text;
    return STR_NONE;
}

/* Words such as "{limit}" outside of a group, with the word before. */
static void push_omitted_words(lua_State *L, const struct policy *p)
{
    lua_newtable(L);
    for (size_t i = 1; p->exec && p->schema && i < p->exec->word_count; i++) {
        const struct exec_word *before = &p->exec->words[i - 1], *word = &p->exec->words[i];
        struct str name = before->group || word->group ? STR_NONE : optional_argument(p->schema, word->text);
        if (!name.len)
            continue;
        lua_cli_append_table(L, FIELD_STR("argument", name), FIELD_STR("before", before->text));
    }
    lua_setfield(L, -2, "omitted_words");
}

/* Those of a published schema are warnings about its tool, unless a policy wants it kept as it is. */
static void push_contradictions(lua_State *L, const struct tool *tool)
{
    lua_newtable(L);
    for (size_t i = 0; !tool->contradictory && i < tool->contradiction_count; i++)
        lua_cli_append_table(L, FIELD_STR("path", tool->contradictions[i].path),
                             FIELD_STR("message", tool->contradictions[i].message));
    lua_setfield(L, -2, "contradictions");
}

static void push_policy(lua_State *L, const struct lint_context *c)
{
    const struct policy *p = c->policy;
    const struct tool *tool = c->tool;
    bool tried = c->coverage && c->coverage->examples;
    bool decides = p->rule_count || p->id_count || p->hooks[HOOK_NORMALISE] || p->hooks[HOOK_CHECK] ||
                   p->hooks[HOOK_RUN] || p->hooks[HOOK_RESULT];
    lua_cli_push_table(L, FIELD_STR("source", c->source),
                       FIELD_BOOL("decides", decides && p->mode != POLICY_OFF),
                       FIELD_BOOL("is_off", tool->mode == POLICY_OFF),
                       FIELD_BOOL("retries_unsafely", p->retry_given && tool->retry.times &&
                                                          !tool->idempotent && !p->idempotent_given));
    push_rules(L, c, tried);
    push_hooks(L, c, tried);
    push_examples(L, c);
    push_paths(L, p);
    push_omitted_words(L, p);
    push_contradictions(L, tool);
    lua_setfield(L, -2, "policy");
}

static void set_json(lua_State *L, const char *name, const struct json *value)
{
    lua_json_push(L, value, LUA_JSON_SPEC);
    lua_setfield(L, -2, name);
}

static void push_tool(lua_State *L, const struct lint_context *c)
{
    const struct tool *tool = c->tool;
    const struct policy *p = c->policy;
    const struct json *shown = json_get_text(c->shown, "inputSchema");
    int tool_line = p ? location_of_tool(c->tokens) : 0;
    int schema_line = p ? location_of_field(c->tokens, NULL, STR_LIT("schema")) : 0;
    struct json closed;
    struct why why;
    push_named(L, tool);
    lua_cli_set(L, FIELD_STR("file", p ? p->file : tool->origin), FIELD_STR("origin", tool->origin),
                FIELD_STR("description", tool->description), FIELD_NUM("tool_line", tool_line),
                FIELD_NUM("schema_line", schema_line ? schema_line : tool_line),
                FIELD_TEXT("effects", tool_effects_name(tool)),
                FIELD_BOOL("effects_unknown", tool->effects == EFFECTS_UNDECLARED),
                FIELD_BOOL("effects_guessed", tool->effects_from == EFFECTS_FROM_NAME),
                FIELD_BOOL("effects_by_policy", tool->effects_from == EFFECTS_FROM_POLICY),
                FIELD_BOOL("name_destroys", effects_guess(tool->name) == EFFECTS_DESTRUCTIVE),
                FIELD_BOOL("writes", tool_writes(tool)), FIELD_BOOL("destroys", tool_destroys(tool)));
    /* A policy answers for the schema that it writes itself, and for words that it adds to a description. */
    bool adds_words = p && (p->description.len || p->use_when.len || p->avoid_when.len);
    lua_cli_push_table(L, FIELD_BOOL("schema", tool->definition && !(p && p->schema)),
                       FIELD_BOOL("description", tool->definition && !adds_words),
                       FIELD_BOOL("tool", tool->definition && !p));
    lua_setfield(L, -2, "theirs");
    set_json(L, "definition", tool->definition);
    set_json(L, "annotations", tool->annotations);
    set_json(L, "input", tool->input);
    set_json(L, "output", tool->output);
    set_json(L, "shown", c->shown);
    if (shown && openai_strict_schema(c->arena, shown, &closed, &why) != OK)
        lua_cli_set(L, FIELD_TEXT("not_strict", why.text));
    if (p)
        push_policy(L, c);
}

static void report_conflict(void *owner, bool certain, int line, struct str sentence)
{
    const struct lint_context *c = owner;
    (void)certain;
    add_finding(c->L, c->policy->file, line, "rule", sentence, false);
}

static void give_subject(const struct lint_context *c)
{
    subject_tokens = c->tokens;
    lua_pushvalue(c->L, SUBJECT);
    if (c->tool)
        push_tool(c->L, c);
    else
        push_generation(c->L, c);
    lua_call(c->L, 1, 0);
}

/* ---- the run ---- */

static void see_example(void *owner, const struct example_outcome *o)
{
    static const char *const early[] = {"known", "schema", "rules", "admit", "check"};
    struct lint_context *c = owner;
    if (!o->stage || !STR_IS_ONE_OF(str_of(o->stage), early))
        return;
    c->unjudged = arena_grow(c->arena, (void *)c->unjudged, c->unjudged_count, sizeof(*c->unjudged));
    c->unjudged[c->unjudged_count++] = o->example;
}

/* The definitions as models see them, an array. */
static struct json definitions(struct arena *arena, struct generation *generation)
{
    struct catalog_request request = {.provider = {.format = PROVIDER_FORMAT_MCP}, .all = true};
    static const struct json_limits limits = {.nodes = LINT_SHOWN_MAX_NODES};
    struct buf text = buf_in(arena);
    struct json list;
    struct peer peer;
    peer_init(&peer, getuid(), getgid(), getpid());
    request.peer = &peer;
    enum log_level level = log_quiet();
    catalog_write(arena, generation, &request, &text);
    log_level_set(level);
    return json_parse(arena, buf_view(&text), &limits, &list, NULL) == OK ? list : json_array(NULL, 0);
}

static void check_tool(struct lint_context c, const struct tool *tool, const struct json *shown,
                       const struct coverage *coverage)
{
    size_t count;
    const struct coverage_file *files = coverage_files(coverage, &count);
    c.tool = tool;
    c.policy = tool->policy;
    for (uint32_t i = 0; i < shown->len; i++)
        if (str_eq(json_str(json_get_text(&shown->items[i], "name")), tool->name))
            c.shown = &shown->items[i];
    if (c.policy)
        c.source = policy_source(c.policy, c.arena);
    c.tokens = location_tokens(c.arena, c.source);
    for (size_t i = 0; c.policy && i < count && !c.coverage; i++)
        if (str_eq(files[i].file, c.policy->file))
            c.coverage = &files[i];
    if (c.policy)
        policy_rule_conflicts(c.policy, tool->input, c.arena, report_conflict, &c);
    give_subject(&c);
}

static void check_generation(lua_State *L, struct generation *generation, bool only_policies)
{
    struct lint_context c = {
        .L = L, .arena = arena_new(), .generation = generation, .only_policies = only_policies};
    struct coverage *coverage = coverage_new();
    struct generation_report failed;
    generation_report_init(&failed, c.arena);
    struct json shown = definitions(c.arena, generation);
    struct examples_options options = {.seen = see_example, .owner = &c};
    coverage_begin(coverage, generation->policies);
    examples_run(generation, &failed, &options);
    coverage_end(coverage, generation->policies);
    for (size_t i = 0; i < failed.error_count; i++)
        add_message(L, "example", failed.errors[i], false, NULL);
    give_subject(&c);
    for (size_t i = 0; i < generation->tool_count; i++) {
        const struct tool *tool = generation->tools[i];
        if (tool->policy || !only_policies)
            check_tool(c, tool, &shown, coverage);
    }
    struct shadow_expiry *expired; /* of policies for one tool, too, and of the defaults */
    size_t count = only_policies ? 0 : shadow_expired(generation, clock_wall_ms(), c.arena, &expired);
    for (size_t i = 0; i < count; i++) {
        const struct shadow_expiry *e = &expired[i];
        add_finding(L, e->policy ? e->policy->file : STR_NONE, 0, "shadow-expired",
                    e->policy ? e->sentence : ARENA_JOIN(c.arena, e->file, STR_LIT(": "), e->sentence),
                    false);
    }
    coverage_free(coverage);
    arena_free(c.arena);
}

/* run(options, place, found, subject, alone): calls found(finding) for each, subject(generation) for each
 * that loads, and subject(tool) for each of its tools. `place`: a folder or file of policies in place of the
 * options'; nil: none. `alone`: it is one of several files, which do not load together; what it does not load
 * for is known. False: nothing could be checked, and the findings give the reason; then the place of the
 * policies, if they do not load. */
static int run(lua_State *L)
{
    struct arena *arena = arena_new();
    bool alone = lua_toboolean(L, SUBJECT + 1);
    lua_settop(L, SUBJECT);
    struct config_sources sources = lua_cli_sources(L, arena);
    struct generation_report report;
    const char *folder = NULL;
    log_open(LOG_WARN, LOG_FORMAT_TEXT, NULL, NULL);
    if (lua_isstring(L, PLACE))
        sources.policies = lua_tostring(L, PLACE);
    generation_report_init(&report, arena);
    struct generation *generation = lua_cli_build(&sources, NULL, &report, &folder);
    for (size_t i = 0; !alone && i < report.error_count; i++)
        for (struct str rest = report.errors[i]; rest.len;) /* one string may have several lines */
            add_message(L, "load", str_split(&rest, '\n'), false, NULL);
    /* Neither well nor odd: there is nothing to check, and the only warning says so. */
    bool nothing = !alone && generation && generation_serves_nothing(generation, arena).len;
    for (size_t i = 0; !alone && i < report.warning_count; i++)
        add_message(L, nothing ? "load" : "odd", report.warnings[i], true, generation);
    if (generation && !nothing)
        check_generation(L, generation, alone);
    lua_pushboolean(L, generation && !nothing);
    lua_pushstring(L, generation ? NULL : folder);
    generation_unref(generation);
    arena_free(arena);
    return 2;
}

/* line(name, parent): of that field of the subject's policy. */
static int field_line(lua_State *L)
{
    lua_pushinteger(L, location_of_field(subject_tokens, luaL_optstring(L, 2, NULL), lua_cli_str(L, 1)));
    return 1;
}

/* order(text): where it gives the first order to the model; nil: nowhere. */
static int order(lua_State *L)
{
    size_t at, len;
    struct str name;
    if (!order_text_find(lua_cli_str(L, 1), 0, &at, &len, &name))
        return 0;
    lua_pushinteger(L, (lua_Integer)at + 1);
    return 1;
}

/* hides(text): whether it has hidden characters. */
static int hides(lua_State *L)
{
    lua_pushboolean(L, printable_count_hidden(lua_cli_str(L, 1)) > 0);
    return 1;
}

int lua_lint(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"run", run}, {"line", field_line}, {"order", order}, {"hides", hides}, {0}};
    return lua_cli_push_functions(L, functions);
}

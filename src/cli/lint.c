/* The run of `toolgate lint` (lua/cli/lint.lua): loads everything, prepares what the checks look at, and
 * gives findings and subjects to Lua. */
#include "cli/lint.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/printable.h"
#include "catalog/catalog.h"
#include "catalog/provider_formats.h"
#include "cli/lua_cli.h"
#include "gate/examples.h"
#include "json/build.h"
#include "json/parse.h"
#include "policy/policy_set.h"
#include "policy/source_location.h"
#include "result/pattern_sets.h"
#include "sandbox/lua_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINT_SHOWN_MAX_NODES 50000000u /* of all definitions together */

/* The arguments of run(), of which the last two are functions that are called. */
enum { OPTIONS = 1, PLACE, FOUND, SUBJECT };

/* ---- findings ---- */

/* `theirs`: it is about a definition that a server or a program published, not about a policy. */
static void add_finding(lua_State *L, struct str file, int line, const char *code, struct str sentence,
                        bool theirs)
{
    lua_pushvalue(L, FOUND);
    lua_newtable(L);
    lua_cli_set_str(L, "file", file);
    lua_cli_set_number(L, "line", line);
    lua_cli_set(L, "code", code);
    lua_cli_set_str(L, "sentence", sentence);
    lua_cli_set_bool(L, "theirs", theirs);
    lua_call(L, 1, 0);
}

void lint_report(struct lint_context *c, int line, const char *format, ...)
{
    bool theirs = c->of_tool && c->tool && c->tool->definition && !c->policy;
    struct str file = c->policy ? c->policy->file : c->tool ? c->tool->origin : STR_NONE;
    va_list args;
    va_start(args, format);
    struct str sentence = arena_vprintf(c->arena, format, args);
    va_end(args);
    add_finding(c->L, file, theirs ? 0 : line, c->code, sentence, theirs);
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
    lua_newtable(L);
    lua_cli_set_str(L, "name", name);
    lua_cli_set_str(L, "server", tool->target.upstream.len ? tool->target.upstream : server);
    lua_cli_set_str(L, "own_name", tool->target.tool.len ? tool->target.tool : own);
    lua_cli_set_bool(L, "described", tool_is_described(tool));
}

static void push_generation(lua_State *L, const struct lint_context *c)
{
    const struct policy_set *policies = c->generation->policies;
    int overlays = 0;
    lua_newtable(L);
    lua_cli_set_bool(L, "only_policies", c->only_policies);
    lua_newtable(L);
    for (size_t i = 0; i < c->generation->tool_count; i++) {
        push_named(L, c->generation->tools[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "tools");
    lua_newtable(L);
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        const struct policy *policy = policy_set_at(policies, i);
        int over = 0;
        if (!policy_is_overlay(policy))
            continue;
        lua_newtable(L);
        lua_cli_set_str(L, "file", policy->file);
        lua_cli_set_bool(L, "has_examples", policy->example_count);
        lua_newtable(L);
        for (size_t t = 0; t < c->generation->tool_count; t++)
            if (tool_has_overlay(c->generation->tools[t], policy)) {
                lua_cli_push_str(L, c->generation->tools[t]->name);
                lua_rawseti(L, -2, ++over);
            }
        lua_setfield(L, -2, "over");
        lua_rawseti(L, -2, ++overlays);
    }
    lua_setfield(L, -2, "overlays");
}

static void push_tool(lua_State *L, const struct lint_context *c)
{
    const struct tool *tool = c->tool;
    const struct policy *p = c->policy;
    const struct json *shown = json_get_text(c->shown, "inputSchema");
    struct json closed;
    struct why why;
    push_named(L, tool);
    lua_cli_set_str(L, "file", c->policy ? c->policy->file : tool->origin);
    lua_cli_set_str(L, "origin", tool->origin);
    lua_cli_set_str(L, "description", tool->description);
    lua_cli_set_number(L, "tool_line", lint_tool_line(c));
    lua_cli_set_number(L, "schema_line", lint_schema_line(c));
    /* A policy answers for the schema that it writes itself, and for words that it adds to a description. */
    bool adds_words = p && (p->description.len || p->use_when.len || p->avoid_when.len);
    lua_newtable(L);
    lua_cli_set_bool(L, "schema", tool->definition && !(p && p->schema));
    lua_cli_set_bool(L, "description", tool->definition && !adds_words);
    lua_cli_set_bool(L, "tool", tool->definition && !p);
    lua_setfield(L, -2, "theirs");
    lua_json_push(L, tool->definition, LUA_JSON_SPEC);
    lua_setfield(L, -2, "definition");
    lua_json_push(L, tool->input, LUA_JSON_SPEC);
    lua_setfield(L, -2, "input");
    lua_json_push(L, c->shown, LUA_JSON_SPEC);
    lua_setfield(L, -2, "shown");
    if (shown && openai_strict_schema(c->arena, shown, &closed, &why) != OK)
        lua_cli_set(L, "not_strict", why.text);
}

static void give_subject(const struct lint_context *c)
{
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
    lint_check_tool(&c);
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
    c.code = "shadow-expired";
    for (size_t i = 0; i < count; i++) {
        struct str file = expired[i].policy ? STR_NONE : expired[i].file;
        c.policy = expired[i].policy;
        lint_report(&c, 0, STR_FMT "%s" STR_FMT, STR_ARG(file), file.len ? ": " : "",
                    STR_ARG(expired[i].sentence));
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
    static const luaL_Reg functions[] = {{"run", run}, {"order", order}, {"hides", hides}, {0}};
    return lua_cli_push_functions(L, functions);
}

/* What `toolgate lint` (lua/cli/lint.lua) gets from C: the findings of cli/lint.c, and what it checks itself.
 */
#include "base/arena.h"
#include "base/printable.h"
#include "catalog/import.h"
#include "catalog/provider_formats.h"
#include "cli/lua_cli.h"
#include "cli/lint.h"
#include "policy/policy_set.h"
#include "result/order_text.h"
#include "sandbox/lua_json.h"

/* The arguments of run(): these functions of Lua are called. */
enum { OPTIONS = 1, PLACE, FOUND, SUBJECT };

static void found(void *owner, const struct lint_finding *f)
{
    lua_State *L = owner;
    lua_pushvalue(L, FOUND);
    lua_newtable(L);
    lua_cli_set_str(L, "file", f->file);
    lua_cli_set_number(L, "line", f->line);
    lua_cli_set_str(L, "code", str_of(f->code));
    lua_cli_set_str(L, "sentence", f->sentence);
    lua_cli_set_bool(L, "theirs", f->theirs);
    lua_call(L, 1, 0);
}

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
                lua_pushlstring(L, c->generation->tools[t]->name.at, c->generation->tools[t]->name.len);
                lua_rawseti(L, -2, ++over);
            }
        lua_setfield(L, -2, "over");
        lua_rawseti(L, -2, ++overlays);
    }
    lua_setfield(L, -2, "overlays");
}

/* A policy answers for the schema that it writes itself, and for words that it adds to a description. */
static void set_theirs(lua_State *L, const struct tool *tool, const struct policy *p)
{
    bool schema = !p || !p->schema;
    bool description = !p || (!p->description.len && !p->use_when.len && !p->avoid_when.len);
    lua_newtable(L);
    lua_cli_set_bool(L, "schema", tool->definition && schema);
    lua_cli_set_bool(L, "description", tool->definition && description);
    lua_cli_set_bool(L, "tool", tool->definition && !p);
    lua_setfield(L, -2, "theirs");
}

static void push_tool(lua_State *L, const struct lint_context *c)
{
    const struct tool *tool = c->tool;
    const struct json *shown = json_get_text(c->shown, "inputSchema");
    struct json closed;
    struct why why;
    push_named(L, tool);
    lua_cli_set_str(L, "file", c->policy ? c->policy->file : tool->origin);
    lua_cli_set_str(L, "origin", tool->origin);
    lua_cli_set_str(L, "description", tool->description);
    lua_cli_set_number(L, "tool_line", lint_tool_line(c));
    lua_cli_set_number(L, "schema_line", lint_schema_line(c));
    set_theirs(L, tool, c->policy);
    lua_json_push(L, tool->definition, LUA_JSON_SPEC);
    lua_setfield(L, -2, "definition");
    lua_json_push(L, tool->input, LUA_JSON_SPEC);
    lua_setfield(L, -2, "input");
    lua_json_push(L, c->shown, LUA_JSON_SPEC);
    lua_setfield(L, -2, "shown");
    if (shown && openai_strict_schema(c->arena, shown, &closed, NULL, &why) != OK)
        lua_cli_set_str(L, "not_strict", str_of(why.text));
}

static void subject(void *owner, const struct lint_context *c)
{
    lua_State *L = owner;
    lua_pushvalue(L, SUBJECT);
    if (c->tool)
        push_tool(L, c);
    else
        push_generation(L, c);
    lua_call(L, 1, 0);
}

/* run(options, place, found, subject): as lint_run; calls found(finding), and subject(generation) and
 * subject(tool). `place`: a folder or file of policies in place of the options'; nil: none. */
static int run(lua_State *L)
{
    struct local_options local = {0};
    lua_settop(L, SUBJECT);
    lua_local_read(L, &local);
    log_open(LOG_WARN, LOG_FORMAT_TEXT, NULL, NULL);
    struct config_sources sources = local_sources(&local, NULL);
    if (lua_isstring(L, PLACE))
        sources.policies = lua_tostring(L, PLACE);
    struct lint_visitor visitor = {.found = found, .subject = subject, .owner = L};
    lua_pushboolean(L, lint_run(&sources, &visitor));
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
    static const luaL_Reg functions[] = {{"run", run}, {"order", order}, {"hides", hides}, {0}};
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

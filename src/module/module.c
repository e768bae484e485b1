/*
 * require "toolgate", for operators' own specs of their policies. A gate has the
 * policies of a folder or file, and a ledger and a clock of its own. Calls go
 * through the same pipeline as in the daemon, but in this process.
 *
 *   local gate = toolgate.load "policies/get_events.lua"
 *   local verdict = gate:call("get_events", { action = "by_ids" }, { goal = "what is on?" })
 *   assert.equal("repair", verdict.verdict)
 */
#include "gate/verdict.h"
#include "sandbox/lua_json.h"

#include "base/arena.h"
#include "base/version.h"
#include "catalog/catalog.h"
#include "policy/config.h"
#include "gate/simulator.h"
#include "json/parse.h"
#include "json/write.h"
#include "base/suggest.h"

#include <lauxlib.h>
#include <math.h>

#define GATE_MARK       "toolgate.gate"
#define DEFAULT_SESSION "spec"
#define TOOL_FILES_MAX  64

struct spec_gate {
    struct gate gate;
    struct arena *arena; /* of the last call; freed by the next, as an error may end a call at any point */
    int64_t now_ms;
};

__attribute__((visibility("default"))) int luaopen_toolgate(lua_State *L);

/* Each call has a new arena and the gate's own time. */
static struct spec_gate *begin(lua_State *L)
{
    struct spec_gate *g = luaL_checkudata(L, 1, GATE_MARK);
    arena_free(g->arena);
    g->arena = arena_new();
    simulator_set_clock(g->now_ms);
    return g;
}

static const struct str option_names[] = {STR("session"), STR("goal"),  STR("step"),      STR("user"),
                                          STR("turn"),    STR("seen"),  STR("facts"),     STR("history"),
                                          STR("result"),  STR("error"), STR("transient"), STR("context")};

static const struct str load_option_names[] = {STR("config"), STR("tools")};

#define CHECK_OPTIONS(L, at, names) check_options((L), (at), (names), sizeof(names) / sizeof((names)[0]))
static void check_options(lua_State *L, int at, const struct str *names, size_t count)
{
    if (lua_isnoneornil(L, at))
        return;
    luaL_checktype(L, at, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        size_t i = 0;
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
        while (i < count && !str_is(names[i], key))
            i++;
        struct str meant = i < count ? STR_NONE : suggest_closest(str_of(key), names, count);
        if (i == count)
            luaL_error(L, meant.len ? "unknown option '%s' (did you mean '%s'?)" : "unknown option '%s'", key,
                       meant.at);
    }
}

static bool push_option(lua_State *L, int at, const char *name)
{
    if (lua_isnoneornil(L, at))
        return false;
    lua_getfield(L, at, name);
    if (!lua_isnil(L, -1))
        return true;
    lua_pop(L, 1);
    return false;
}

static struct str string_option(lua_State *L, int at, const char *name, struct arena *arena)
{
    struct str text = STR_NONE;
    if (!push_option(L, at, name))
        return text;
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "option '%s': expected a string, got a %s", name, luaL_typename(L, -1));
    text.at = lua_tolstring(L, -1, &text.len);
    text = arena_dup(arena, text);
    lua_pop(L, 1);
    return text;
}

static const struct json *value_option(lua_State *L, int at, const char *name, struct arena *arena)
{
    const struct json *value = NULL;
    if (push_option(L, at, name)) {
        value = lua_json_read(L, lua_gettop(L), name, arena);
        lua_pop(L, 1);
    }
    return value;
}

struct call_options {
    struct call_request request;
    struct peer peer;
    const struct json *result;
};

static void read_options(lua_State *L, int at, struct spec_gate *g, struct call_options *a)
{
    struct call_request *r = &a->request;
    CHECK_OPTIONS(L, at, option_names);
    struct str session = string_option(L, at, "session", g->arena);
    struct str user = string_option(L, at, "user", g->arena);
    r->session = session.len ? session : STR_LIT(DEFAULT_SESSION);
    r->goal = string_option(L, at, "goal", g->arena);
    r->step = string_option(L, at, "step", g->arena);
    double n = 0;
    if (push_option(L, at, "turn")) {
        n = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
        lua_pop(L, 1);
    }
    if (n < 0 || n > UINT32_MAX || n != floor(n))
        luaL_error(L, "option 'turn': expected a whole number from 0");
    r->turn = (uint32_t)n;
    r->facts = value_option(L, at, "facts", g->arena);
    r->context = value_option(L, at, "context", g->arena);
    if (r->context && !json_is(r->context, JSON_OBJECT) && r->context->len)
        luaL_error(L, "option 'context': expected a table with names, got a list");
    a->result = value_option(L, at, "result", g->arena);
    if (user.len) {
        peer_init_example(&a->peer, user);
        r->peer = &a->peer;
    }
}

static void read_call(lua_State *L, struct spec_gate *g, struct call_options *a)
{
    struct why why;
    struct str tool;
    tool.at = luaL_checklstring(L, 2, &tool.len);
    a->request.tool = arena_dup(g->arena, tool);
    a->request.arguments = lua_isnoneornil(L, 3) ? NULL : lua_json_read(L, 3, "arguments", g->arena);
    read_options(L, 4, g, a);
    simulator_add_seen_ids(&g->gate, g->arena, &a->request, value_option(L, 4, "seen", g->arena));
    if (simulator_add_history(&g->gate, g->arena, &a->request, value_option(L, 4, "history", g->arena),
                              &why) != OK)
        luaL_error(L, "%s", why.text);
}

static void set_string(lua_State *L, const char *name, struct str s)
{
    lua_pushlstring(L, s.at ? s.at : "", s.len);
    lua_setfield(L, -2, name);
}

static void set_value(lua_State *L, const char *name, const struct json *value)
{
    lua_json_push(L, value, LUA_JSON_SPEC);
    lua_setfield(L, -2, name);
}

/* JSON that was written for the caller, as a Lua value. */
static void push_text(lua_State *L, struct spec_gate *g, const struct buf *text)
{
    struct json value = {.type = JSON_NULL};
    json_parse(g->arena, buf_view(text), NULL, &value, NULL);
    lua_json_push(L, &value, LUA_JSON_SPEC);
}

/* The members of the verdict, under the names that policies use, and further properties of the call. */
static int return_call(lua_State *L, struct spec_gate *g, const struct call_options *a, struct call *call)
{
    static const char *const renamed[][2] = {{"error_class", "class"}, {"messages", "problems"}};
    const struct call_outcome *outcome = call_outcome(call);
    struct buf text = buf_in(g->arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    verdict_write(&out, outcome->verdict);
    json_close(&out, '}');
    push_text(L, g, &text);
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
        lua_getfield(L, -1, renamed[i][0]);
        lua_setfield(L, -2, renamed[i][1]);
        lua_pushnil(L);
        lua_setfield(L, -2, renamed[i][0]);
    }
    set_string(L, "tool", a->request.tool);
    set_string(L, "session", a->request.session);
    set_string(L, "call_id", call_id(call));
    set_string(L, "text", outcome->feedback.len ? outcome->feedback : outcome->advice);
    set_value(L, "arguments", outcome->arguments);
    set_value(L, "content", outcome->content);
    set_value(L, "result", outcome->result);
    set_value(L, "metadata", outcome->metadata);
    call_free(call);
    return 1;
}

/* gate:call(tool, args, options): the whole pipeline; `options.result` is the result of a tool that the agent
 * runs. */
static int gate_call(lua_State *L)
{
    struct spec_gate *g = begin(L);
    struct call_options a = {.result = NULL};
    read_call(L, g, &a);
    return return_call(L, g, &a, simulator_call(&g->gate, g->arena, &a.request, a.result));
}

static int gate_check(lua_State *L)
{
    struct spec_gate *g = begin(L);
    struct call_options a = {.result = NULL};
    read_call(L, g, &a);
    return return_call(L, g, &a, simulator_make(&g->gate, g->arena, &a.request, CALL_CHECK));
}

/* gate:report(checked, result, options): `checked` is the return value of gate:check; a failed tool has
 * options.error instead of a result. */
static int gate_report(lua_State *L)
{
    struct spec_gate *g = begin(L);
    struct call_options a = {.result = NULL};
    luaL_checktype(L, 2, LUA_TTABLE);
    read_options(L, 4, g, &a);
    a.request.tool = string_option(L, 2, "tool", g->arena);
    a.request.session = string_option(L, 2, "session", g->arena);
    struct why why;
    if (call_read_id(&g->gate, g->arena, string_option(L, 2, "call_id", g->arena), &a.request, &why) != OK)
        return luaL_error(L, "report: call_id: %s", why.text);
    a.request.arguments = value_option(L, 2, "arguments", g->arena);
    a.request.error_message = string_option(L, 4, "error", g->arena);
    a.request.has_error = a.request.error_message.len > 0;
    a.request.error_transient_given = push_option(L, 4, "transient");
    a.request.error_transient = a.request.error_transient_given && lua_toboolean(L, -1);
    if (!a.request.has_error)
        a.request.result = lua_isnoneornil(L, 3) ? value_option(L, 4, "result", g->arena)
                                                 : lua_json_read(L, 3, "result", g->arena);
    if (!a.request.has_error && !a.request.result)
        return luaL_error(L, "report: expected a result, or nil and { error = \"…\" }");
    return return_call(L, g, &a, simulator_make(&g->gate, g->arena, &a.request, CALL_REPORT));
}

/* gate:list(options): the definitions that a model sees. */
static int gate_list(lua_State *L)
{
    struct spec_gate *g = begin(L);
    struct call_options a = {.result = NULL};
    struct buf text = buf_in(g->arena);
    read_options(L, 2, g, &a);
    struct catalog_request request = {.all = true,
                                      .peer = a.request.peer,
                                      .session = a.request.session,
                                      .goal = a.request.goal,
                                      .context = a.request.context};
    catalog_write(g->arena, g->gate.generation, &request, &text);
    push_text(L, g, &text);
    return 1;
}

/* gate:at(seconds since 1970) and gate:advance(seconds) return the gate. */
static int gate_at(lua_State *L)
{
    struct spec_gate *g = begin(L);
    g->now_ms = (int64_t)(luaL_checknumber(L, 2) * 1000);
    lua_settop(L, 1);
    return 1;
}

static int gate_advance(lua_State *L)
{
    struct spec_gate *g = begin(L);
    g->now_ms += (int64_t)(luaL_checknumber(L, 2) * 1000);
    lua_settop(L, 1);
    return 1;
}

/* gate:forget(): clears all sessions. */
static int gate_forget(lua_State *L)
{
    struct spec_gate *g = begin(L);
    ledger_free(g->gate.ledger);
    g->gate.ledger = simulator_ledger();
    lua_settop(L, 1);
    return 1;
}

static int gate_gc(lua_State *L)
{
    struct spec_gate *g = luaL_checkudata(L, 1, GATE_MARK);
    if (g->gate.ledger)
        ledger_free(g->gate.ledger);
    generation_unref(g->gate.generation);
    arena_free(g->arena);
    *g = (struct spec_gate){.now_ms = 0};
    return 0;
}

static void build(lua_State *L, struct spec_gate *g, const struct config_sources *sources)
{
    struct generation_report report;
    struct config config;
    struct why why;
    generation_report_init(&report, g->arena);
    if (config_load(sources, &config, &why) != OK) {
        config_free(&config);
        luaL_error(L, "%s", why.text);
    }
    if (generation_build(&config, 1, NULL, &g->gate.generation, &report) == OK)
        return;
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (size_t i = 0; i < report.error_count; i++) {
        luaL_addstring(&text, i ? "\n" : "");
        luaL_addlstring(&text, report.errors[i].at, report.errors[i].len);
    }
    luaL_pushresult(&text);
    lua_error(L);
}

/* tools = FILE or { FILE, … }; the names stay on the stack. */
static void read_tool_files(lua_State *L, int at, const char **files, struct config_sources *sources)
{
    size_t count = lua_istable(L, at) ? lua_objlen(L, at) : 1;
    if (count > TOOL_FILES_MAX)
        luaL_error(L, "option 'tools': expected at most %d files, got more", TOOL_FILES_MAX);
    luaL_checkstack(L, (int)count, "tools");
    for (size_t i = 1; i <= count; i++) {
        if (lua_istable(L, at))
            lua_rawgeti(L, at, (int)i);
        else
            lua_pushvalue(L, at);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "option 'tools': expected a file name or a list of file names, got a %s",
                       luaL_typename(L, -1));
        files[sources->tools_count++] = lua_tostring(L, -1);
    }
}

/* toolgate.load(path, { config = FILE, tools = { FILE, … } }): a folder of policies, or one file; nil: those
 * that the configuration names. Does not run the examples, unlike `toolgate test`. */
static int load(lua_State *L)
{
    const char *files[TOOL_FILES_MAX];
    struct config_sources sources = {.policies = luaL_optstring(L, 1, NULL), .tools = files};
    lua_settop(L, 2);
    CHECK_OPTIONS(L, 2, load_option_names);
    struct spec_gate *g = lua_newuserdata(L, sizeof(*g));
    *g = (struct spec_gate){.arena = arena_new(), .now_ms = SIMULATOR_TIME_MS};
    luaL_getmetatable(L, GATE_MARK);
    lua_setmetatable(L, -2);
    if (push_option(L, 2, "config"))
        sources.file = luaL_checkstring(L, -1); /* the options keep it alive */
    if (push_option(L, 2, "tools"))
        read_tool_files(L, lua_gettop(L), files, &sources);
    build(L, g, &sources);
    g->gate.ledger = simulator_ledger();
    lua_pushvalue(L, 3);
    return 1;
}

static const luaL_Reg methods[] = {
    {"call", gate_call}, {"check", gate_check},     {"report", gate_report}, {"list", gate_list},
    {"at", gate_at},     {"advance", gate_advance}, {"forget", gate_forget}, {NULL, NULL},
};

int luaopen_toolgate(lua_State *L)
{
    /* Policies need LuaJIT, which this module takes from its host. */
    lua_getglobal(L, "jit");
    if (!lua_istable(L, -1))
        luaL_error(L, "toolgate needs LuaJIT: run busted --lua=luajit");
    lua_pop(L, 1);
    log_open(LOG_OFF, LOG_FORMAT_TEXT, NULL, NULL);
    luaL_newmetatable(L, GATE_MARK);
    lua_pushcfunction(L, gate_gc);
    lua_setfield(L, -2, "__gc");
    lua_newtable(L);
    luaL_register(L, NULL, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_newtable(L);
    lua_json_constants(L);
    lua_pushcfunction(L, load);
    lua_setfield(L, -2, "load");
    lua_pushliteral(L, TOOLGATE_VERSION);
    lua_setfield(L, -2, "version");
    return 1;
}

/* A new table for each hook, so that nothing written to it survives. A field is made when it is first read.
 */
#include "policy/policy_internal.h"
#include "sandbox/bridge.h"
#include "policy/policy_hooks.h"
#include "sandbox/sandbox.h"
#include "base/suggest.h"

#include <math.h>

#define CALL_LOG_MAX_BYTES 4096u /* of one message */

static void push_string(lua_State *L, struct str s)
{
    if (s.len)
        lua_pushlstring(L, s.at, s.len);
    else
        lua_pushnil(L);
}

/* progress(done, total, message); a total below 0: unknown. */
static int progress(lua_State *L)
{
    const struct policy_call *call = sandbox_context(sandbox_of(L))->call;
    double done = luaL_checknumber(L, 1), total = luaL_optnumber(L, 2, -1);
    struct str message = STR_NONE;
    if (!lua_isnoneornil(L, 3))
        message.at = luaL_checklstring(L, 3, &message.len);
    if (call && call->progress && isfinite(done))
        call->progress(call->owner, done, total, message);
    return 0;
}

/* log(level, text); a long text is cut. */
static int log_message(lua_State *L)
{
    static const char *const levels[] = {"debug",    "info",  "notice",    "warning", "error",
                                         "critical", "alert", "emergency", NULL};
    const struct policy_call *call = sandbox_context(sandbox_of(L))->call;
    struct str level = str_of(levels[luaL_checkoption(L, 1, NULL, levels)]), text;
    text.at = luaL_checklstring(L, 2, &text.len);
    if (call && call->log)
        call->log(call->owner, level, str_cut(text, CALL_LOG_MAX_BYTES));
    return 0;
}

/* In the order of call_fields: strings, numbers, the rest. */
enum call_field {
    CALL_TOOL,
    CALL_SESSION,
    CALL_GOAL,
    CALL_STEP,
    CALL_USER,
    CALL_UID,
    CALL_TURN,
    CALL_ATTEMPT,
    CALL_NO_PROGRESS,
    CALL_HISTORY,
    CALL_FACTS,
    CALL_CONTEXT,
    CALL_ARGS,
    CALL_PEER,
    CALL_PROGRESS,
    CALL_LOG,
    CALL_FIELDS
};

/* lua/policy/reference.lua documents them. */
static const char *const call_fields[CALL_FIELDS] = {
    [CALL_TOOL] = "tool",       [CALL_SESSION] = "session", [CALL_GOAL] = "goal",
    [CALL_STEP] = "step",       [CALL_USER] = "user",       [CALL_UID] = "uid",
    [CALL_TURN] = "turn",       [CALL_ATTEMPT] = "attempt", [CALL_NO_PROGRESS] = "no_progress",
    [CALL_HISTORY] = "history", [CALL_FACTS] = "facts",     [CALL_CONTEXT] = "context",
    [CALL_ARGS] = "args",       [CALL_PEER] = "peer",       [CALL_PROGRESS] = "progress",
    [CALL_LOG] = "log",
};

/* The index of the field; CALL_FIELDS: there is none. */
static int field_named(struct str name)
{
    int field = 0;
    while (field < CALL_FIELDS && !str_is(name, call_fields[field]))
        field++;
    return field;
}

static struct str closest_field(struct str name)
{
    struct str names[CALL_FIELDS];
    for (int i = 0; i < CALL_FIELDS; i++)
        names[i] = str_of(call_fields[i]);
    return suggest_closest(name, names, CALL_FIELDS);
}

static void push_field(lua_State *L, enum call_field field, const struct sandbox_context *now)
{
    const struct policy_call *call = now->call;
    const struct str texts[] = {call->tool, call->session, call->goal, call->step, call->user};
    const uint32_t numbers[] = {call->uid, call->turn, call->attempt, call->no_progress};
    const struct json *value;
    switch (field) {
    case CALL_HISTORY:
    case CALL_FACTS:
        value = field == CALL_HISTORY ? call->history : call->facts;
        if (value)
            bridge_push(L, value);
        else
            lua_newtable(L);
        break;
    case CALL_CONTEXT:
    case CALL_ARGS:
        value = field == CALL_CONTEXT ? call->context : now->args;
        if (value)
            bridge_push(L, value);
        else
            lua_pushnil(L);
        break;
    case CALL_PEER:
        lua_createtable(L, 0, 2);
        push_string(L, call->user);
        lua_setfield(L, -2, "user");
        lua_pushnumber(L, call->uid);
        lua_setfield(L, -2, "uid");
        break;
    case CALL_PROGRESS:
        lua_pushcfunction(L, progress);
        break;
    case CALL_LOG:
        lua_pushcfunction(L, log_message);
        break;
    default:
        if (field <= CALL_USER)
            push_string(L, texts[field]);
        else
            lua_pushnumber(L, numbers[field - CALL_UID]);
    }
}

bool call_table_has(struct str name, struct str *meant)
{
    bool known = field_named(name) < CALL_FIELDS;
    *meant = known ? STR_NONE : closest_field(name);
    return known;
}

/* __index */
static int read_field(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    struct str name = STR_NONE;
    if (!now->call || lua_type(L, 2) != LUA_TSTRING)
        return 0;
    name.at = lua_tolstring(L, 2, &name.len);
    int field = field_named(name);
    if (field == CALL_FIELDS) {
        struct str meant = closest_field(name);
        return meant.len ? luaL_error(L, "there is no call.%s (did you mean call.%s?)", name.at, meant.at)
                         : luaL_error(L, "there is no call.%s", name.at);
    }
    push_field(L, (enum call_field)field, now);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

void call_table_open(lua_State *L)
{
    bridge_open(L);
    sandbox_push_mark(L, MARK_CALL);
    lua_pushcfunction(L, read_field);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void call_table_push(lua_State *L)
{
    lua_newtable(L);
    sandbox_set_mark(L, MARK_CALL);
}

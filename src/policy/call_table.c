/*
 * A fresh table each time, so that what a hook writes into it is gone with
 * it. Reading a field that is not there yet asks C, and keeps the answer.
 */
#include "policy/call_table.h"
#include "sandbox/bridge.h"
#include "policy/declare/field_read.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"
#include "base/suggest.h"

#define CALL_LOG_MAX_BYTES 4096u /* of one text */

#include <math.h>

static void push_text(lua_State *L, struct str s)
{
    if (s.len)
        lua_pushlstring(L, s.at, s.len);
    else
        lua_pushnil(L);
}

static void push_number(lua_State *L, uint32_t n)
{
    lua_pushnumber(L, n);
}

/* progress(done, total, message); a total below 0: not told. */
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

/* log(level, text), for the agent's program; a text is cut, since a policy can make long ones. */
static int tell_log(lua_State *L)
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

static void push_peer(lua_State *L, const struct policy_call *call)
{
    lua_createtable(L, 0, 2);
    push_text(L, call->user);
    lua_setfield(L, -2, "user");
    push_number(L, call->uid);
    lua_setfield(L, -2, "uid");
}

/* Lists and tables are there even when there is nothing in them. */
static void push_json(lua_State *L, const struct json *value)
{
    if (value)
        bridge_push(L, value);
    else
        lua_newtable(L);
}

/* In the order of push_field: texts, numbers, the rest. */
// clang-format off
#define CALL_FIELDS_LIST(FIELD) \
    FIELD(TOOL, "tool", "string", "The tool's name.") \
    FIELD(SESSION, "session", "string?", "The conversation, as the agent names it; nil where it names none.") \
    FIELD(GOAL, "goal", "string?", "What the user asked for, in their words; nil where it is not told.") \
    FIELD(STEP, "step", "string?", "The model's message that this call is part of; nil where it is not told.") \
    FIELD(USER, "user", "string?", "The user whose process is calling; nil where it has no name.") \
    FIELD(UID, "uid", "integer", "And their number.") \
    FIELD(TURN, "turn", "integer", "The user's turn in this session; 0 where turns are not told.") \
    FIELD(ATTEMPT, "attempt", "integer", "1 at first, more when arguments are mended and sent again.") \
    FIELD(HISTORY, "history", "toolgate.Past[]", "The calls of this session so far, oldest first; empty in prepare.") \
    FIELD(FACTS, "facts", "table<string, any>", "What earlier results of this session said with ok { facts = … }.") \
    FIELD(ARGS, "args", "table", "In result: the arguments of the call that is judged.") \
    FIELD(PEER, "peer", "toolgate.Peer", "Who is calling.") \
    FIELD(PROGRESS, "progress", "fun(done: number, total?: number, message?: string)", \
          "In run: tells the agent's program how far it is.") \
    FIELD(LOG, "log", "fun(level: toolgate.LogLevel, text: string)", \
          "In run: tells the agent's program something that the model does not read.")
// clang-format on

enum call_field {
#define FIELD(constant, name, type, sentence) CALL_##constant,
    CALL_FIELDS_LIST(FIELD)
#undef FIELD
        CALL_FIELDS
};

static const struct str names[CALL_FIELDS] = {
#define FIELD(constant, name, type, sentence) STR(name),
    CALL_FIELDS_LIST(FIELD)
#undef FIELD
};

static const struct field call_fields[CALL_FIELDS] = {
#define FIELD(constant, called, luacats, told) {.name = (called), .type = (luacats), .sentence = (told)},
    CALL_FIELDS_LIST(FIELD)
#undef FIELD
};

const struct field_table call_table = {
    .of = "call",
    .type = "toolgate.Call",
    .given = true,
    .sentence = "What a hook may know of the call; a field that there is not is an error.",
    FIELD_TABLE(call_fields)};

static void push_field(lua_State *L, enum call_field field, const struct sandbox_context *now)
{
    const struct policy_call *call = now->call;
    const struct str texts[] = {call->tool, call->session, call->goal, call->step, call->user};
    const uint32_t numbers[] = {call->uid, call->turn, call->attempt};
    switch (field) {
    case CALL_HISTORY:
        push_json(L, call->history);
        break;
    case CALL_FACTS:
        push_json(L, call->facts);
        break;
    case CALL_ARGS:
        bridge_push(L, now->args);
        break;
    case CALL_PEER:
        push_peer(L, call);
        break;
    case CALL_PROGRESS:
        lua_pushcfunction(L, progress);
        break;
    case CALL_LOG:
        lua_pushcfunction(L, tell_log);
        break;
    default:
        if (field <= CALL_USER)
            push_text(L, texts[field]);
        else
            push_number(L, numbers[field - CALL_UID]);
    }
}

bool call_table_has(struct str name, struct str *meant)
{
    *meant = STR_NONE;
    for (int field = 0; field < CALL_FIELDS; field++)
        if (str_eq(names[field], name))
            return true;
    *meant = suggest_closest(name, names, CALL_FIELDS);
    return false;
}

static int unknown_field(lua_State *L, struct str name)
{
    struct str meant = suggest_closest(name, names, CALL_FIELDS);
    lua_pushlstring(L, name.at, name.len);
    if (!meant.len)
        return luaL_error(L, "there is no call.%s", lua_tostring(L, -1));
    lua_pushlstring(L, meant.at, meant.len);
    return luaL_error(L, "there is no call.%s (did you mean call.%s?)", lua_tostring(L, -2),
                      lua_tostring(L, -1));
}

/* __index */
static int read_field(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    struct str name = STR_NONE;
    int field = 0;
    if (!now->call || lua_type(L, 2) != LUA_TSTRING)
        return 0;
    name.at = lua_tolstring(L, 2, &name.len);
    while (field < CALL_FIELDS && !str_eq(names[field], name))
        field++;
    if (field == CALL_FIELDS)
        return unknown_field(L, name);
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

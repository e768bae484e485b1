/* A new table for each hook, so that nothing written to it survives. A field is made when it is first read.
 */
#include "policy/call_table.h"
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

#define ROW(field, name, type, sentence) [field] = {name, FIELD_ANY, NULL, type, sentence}

static const struct field call_fields[CALL_FIELDS] = {
    ROW(CALL_TOOL, "tool", "string", "The tool's name."),
    ROW(CALL_SESSION, "session", "string?", "The session, as the agent names it; nil if it names none."),
    ROW(CALL_GOAL, "goal", "string?",
        "The user's request, in their words; nil if the agent does not send it."),
    ROW(CALL_STEP, "step", "string?",
        "The model's message that this call is part of; nil if the agent does not send it."),
    ROW(CALL_USER, "user", "string?", "The user of the calling process; nil if it has no name."),
    ROW(CALL_UID, "uid", "integer", "The user's number."),
    ROW(CALL_TURN, "turn", "integer", "The user's turn in this session; 0 if the agent does not send it."),
    ROW(CALL_ATTEMPT, "attempt", "integer", "1, or more after the model corrected its arguments."),
    ROW(CALL_NO_PROGRESS, "no_progress", "integer",
        "How many calls in a row brought nothing new, before this one."),
    ROW(CALL_HISTORY, "history", "toolgate.Past[]", "The earlier calls of this session, oldest first."),
    ROW(CALL_FACTS, "facts", "table<string, any>",
        "The facts that earlier results of this session gave with ok { facts = … }."),
    ROW(CALL_CONTEXT, "context", "table<string, any>?",
        "What the agent's program says of this request in dev.toolgate/context; nil if it says nothing."),
    ROW(CALL_ARGS, "args", "table?",
        "In result: the arguments of the call; nil if a report does not repeat what is no longer known."),
    ROW(CALL_PEER, "peer", "toolgate.Peer", "The calling process."),
    ROW(CALL_PROGRESS, "progress", "fun(done: number, total?: number, message?: string)",
        "In run: reports progress to the agent's program."),
    ROW(CALL_LOG, "log", "fun(level: toolgate.LogLevel, text: string)",
        "In run: logs to the agent's program; the model does not read it."),
};

const struct field_table call_table = FIELD_TABLE(
    "call", "toolgate.Call", "What a hook knows of the call; reading any other field is an error.",
    call_fields, .read_only = true);

/* The index of the field; CALL_FIELDS: there is none. */
static int field_named(struct str name)
{
    int field = 0;
    while (field < CALL_FIELDS && !str_is(name, call_fields[field].name))
        field++;
    return field;
}

static struct str closest_field(struct str name)
{
    struct str names[CALL_FIELDS];
    for (int i = 0; i < CALL_FIELDS; i++)
        names[i] = str_of(call_fields[i].name);
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

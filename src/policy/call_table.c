/* A new table for each hook, so that nothing written to it survives. A field is made when it is first read.
 */
#include "policy/policy_internal.h"
#include "sandbox/bridge.h"
#include "policy/policy_hooks.h"
#include "sandbox/sandbox.h"
#include "base/suggest.h"

#include <math.h>

#define CALL_LOG_MAX_BYTES 4096u /* of one message */

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

/* lua/policy/reference.lua documents them. */
#define AT(member) offsetof(struct policy_call, member)
static const struct call_field {
    const char *name;
    enum { TEXT, NUMBER, TABLE, JSON, ARGS, PEER, PROGRESS, LOG } form;
    size_t offset; /* of the first four */
} fields[] = {
    {"tool", TEXT, AT(tool)},
    {"session", TEXT, AT(session)},
    {"goal", TEXT, AT(goal)},
    {"step", TEXT, AT(step)},
    {"user", TEXT, AT(user)},
    {"uid", NUMBER, AT(uid)},
    {"turn", NUMBER, AT(turn)},
    {"attempt", NUMBER, AT(attempt)},
    {"no_progress", NUMBER, AT(no_progress)},
    {"history", TABLE, AT(history)},
    {"facts", TABLE, AT(facts)},
    {"context", JSON, AT(context)},
    {"args", ARGS, 0},
    {"peer", PEER, 0},
    {"progress", PROGRESS, 0},
    {"log", LOG, 0},
};
#define FIELD_TOTAL (sizeof(fields) / sizeof(fields[0]))

static const struct call_field *find_field(struct str name, struct str *meant)
{
    struct str names[FIELD_TOTAL];
    for (size_t i = 0; i < FIELD_TOTAL; i++) {
        names[i] = str_of(fields[i].name);
        if (str_eq(name, names[i]))
            return &fields[i];
    }
    *meant = suggest_closest(name, names, FIELD_TOTAL);
    return NULL;
}

bool call_table_has(struct str name, struct str *meant)
{
    return find_field(name, meant) != NULL;
}

/* __index */
static int read_field(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    struct str name = sandbox_string(L, 2), meant;
    if (!now->call || !name.at)
        return 0;
    const struct call_field *field = find_field(name, &meant);
    if (!field)
        return luaL_error(L,
                          meant.len ? "there is no call.%s (did you mean call.%s?)" : "there is no call.%s",
                          name.at, meant.at);
    const struct policy_call *call = now->call;
    const void *at = (const char *)call + field->offset;
    const struct json *value = field->form == ARGS ? now->args : NULL;
    switch (field->form) {
    case TEXT:
        sandbox_push_string(L, *(const struct str *)at);
        break;
    case NUMBER:
        lua_pushnumber(L, *(const uint32_t *)at);
        break;
    case TABLE:
    case JSON:
        value = *(const struct json *const *)at;
        /* fallthrough */
    case ARGS:
        if (!value && field->form == TABLE)
            lua_newtable(L);
        else
            bridge_push(L, value);
        break;
    case PEER:
        lua_createtable(L, 0, 2);
        sandbox_push_string(L, call->user);
        lua_setfield(L, -2, "user");
        lua_pushnumber(L, call->uid);
        lua_setfield(L, -2, "uid");
        break;
    case PROGRESS:
        lua_pushcfunction(L, progress);
        break;
    case LOG:
        lua_pushcfunction(L, log_message);
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

void call_table_open(lua_State *L)
{
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

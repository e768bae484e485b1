/*
 * Holds the LuaJIT state of the local engine and calls into it. What redis
 * commands do is in lua/ledger/local.lua; nothing here knows a rule.
 */
#include "ledger/local.h"

#include "base/arena.h"
#include "base/embedded.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>

/* Where things stand on the state's stack, for its whole life. */
enum slot { SLOT_HANDLER = 1, SLOT_RUN, SLOT_USAGE, SLOT_KEYS, SLOT_ARGV, SLOT_SCRIPTS };

struct local {
    lua_State *lua;
    size_t arg_count; /* that ARGV holds now */
};

static int traceback(lua_State *lua)
{
    luaL_traceback(lua, lua, lua_tostring(lua, 1), 1);
    return 1;
}

/* Leaves env, prepare, run, usage on the stack. */
static enum err load_engine(lua_State *lua, size_t memory_bytes, struct why *why)
{
    struct str text = embedded_text("ledger/local.lua");
    if (luaL_loadbufferx(lua, text.at, text.len, "=ledger/local.lua", "t") == 0) {
        lua_pushnumber(lua, (lua_Number)memory_bytes);
        if (lua_pcall(lua, 1, 4, SLOT_HANDLER) == 0)
            return OK;
    }
    return why_set(why, ERR_CONFIG, "the local ledger does not load: %s", lua_tostring(lua, -1));
}

/* prepare(common, body, name) for each script; the functions stand from SLOT_SCRIPTS on. */
static enum err prepare_scripts(lua_State *lua, int prepare, struct why *why)
{
    struct arena *arena = arena_new();
    struct str common = script_common(arena);
    enum err err = OK;
    for (int i = 0; i < SCRIPT_COUNT && err == OK; i++) {
        struct str body = script_body((enum script)i);
        lua_pushvalue(lua, prepare);
        lua_pushlstring(lua, common.at, common.len);
        lua_pushlstring(lua, body.at, body.len);
        lua_pushfstring(lua, "=%s", script_name((enum script)i));
        if (lua_pcall(lua, 3, 1, SLOT_HANDLER) != 0)
            err = why_set(why, ERR_CONFIG, "%s does not load: %s", script_name((enum script)i),
                          lua_tostring(lua, -1));
    }
    arena_free(arena);
    return err;
}

static enum err fill_state(lua_State *lua, size_t memory_bytes, struct why *why)
{
    luaL_openlibs(lua);
    lua_pushcfunction(lua, traceback);
    enum err err = load_engine(lua, memory_bytes, why);
    if (err != OK)
        return err;
    /* handler, env, prepare, run, usage: the second and third are needed for loading only */
    int env = 2, prepare = 3;
    lua_createtable(lua, SCRIPT_KEYS, 0);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, env, "KEYS");
    lua_createtable(lua, SCRIPT_ARGS_MAX, 0);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, env, "ARGV");
    err = prepare_scripts(lua, prepare, why);
    lua_remove(lua, prepare);
    lua_remove(lua, env);
    return err;
}

enum err local_new(size_t memory_bytes, struct local **out, struct why *why)
{
    *out = NULL;
    struct local *local = calloc(1, sizeof(*local));
    if (!local || !(local->lua = luaL_newstate())) {
        local_free(local);
        return why_set(why, ERR_LIMIT, "no memory for the local ledger's Lua state");
    }
    enum err err = fill_state(local->lua, memory_bytes, why);
    if (err != OK) {
        local_free(local);
        return err;
    }
    *out = local;
    return OK;
}

void local_free(struct local *local)
{
    if (local && local->lua)
        lua_close(local->lua);
    free(local);
}

static void fill(lua_State *lua, int table, const struct str *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, texts[i].len ? texts[i].at : "", texts[i].len);
        lua_rawseti(lua, table, (int)i + 1);
    }
}

/* Memory running out in here ends the process, as it does in an arena. */
static void hand_over(struct local *local, const struct script_run *run)
{
    fill(local->lua, SLOT_KEYS, run->keys, SCRIPT_KEYS);
    fill(local->lua, SLOT_ARGV, run->args, run->arg_count);
    for (size_t i = run->arg_count; i < local->arg_count; i++) {
        lua_pushnil(local->lua);
        lua_rawseti(local->lua, SLOT_ARGV, (int)i + 1);
    }
    local->arg_count = run->arg_count;
}

enum err local_run(struct local *local, const struct script_run *run, int64_t now_ms, struct arena *arena,
                   struct str *reply, struct why *why)
{
    lua_State *lua = local->lua;
    int top = lua_gettop(lua);
    enum err err = OK;
    hand_over(local, run);
    lua_pushvalue(lua, SLOT_RUN);
    lua_pushvalue(lua, SLOT_SCRIPTS + (int)run->script);
    lua_pushnumber(lua, (lua_Number)now_ms);
    if (lua_pcall(lua, 2, 1, SLOT_HANDLER) == 0) {
        struct str said;
        said.at = lua_tolstring(lua, -1, &said.len);
        *reply = arena_dup(arena, said);
    } else {
        err = why_set(why, ERR_UNAVAILABLE, "the local ledger failed in %s: %s", script_name(run->script),
                      lua_tostring(lua, -1));
    }
    lua_settop(lua, top);
    return err;
}

void local_usage(struct local *local, size_t *sessions, size_t *bytes)
{
    lua_State *lua = local->lua;
    int top = lua_gettop(lua);
    *sessions = *bytes = 0;
    lua_pushvalue(lua, SLOT_USAGE);
    if (lua_pcall(lua, 0, 2, SLOT_HANDLER) == 0) {
        *sessions = (size_t)lua_tonumber(lua, -2);
        *bytes = (size_t)lua_tonumber(lua, -1);
    }
    lua_settop(lua, top);
}

/*
 * Holds the LuaJIT state of the local engine and calls into it. What all
 * scripts share is run once; each script is then a function over it, since
 * closures made anew for every call would cost more than the call, and keep
 * it from being compiled. Nothing here knows a rule.
 */
#include "ledger/local.h"

#include "base/arena.h"
#include "ledger/commands.h"
#include "ledger/store.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(STORE_KEYS == SCRIPT_KEYS && STORE_STEM_BYTES == SCRIPT_KEY_BYTES - 1,
               "a key: stem and letter");

/* The heap holds no session, only what a run leaves behind: let it grow a little before it is swept. */
#define GC_PAUSE_PERCENT 400

/* Where things stand on the state's stack, for its whole life; the scripts follow. */
enum slot { SLOT_HANDLER = 1, SLOT_ENV, SLOT_ARGV, SLOT_SCRIPTS };

struct local {
    lua_State *lua;
    struct store *store;
    struct commands commands;
    size_t arg_count; /* that ARGV holds now */
};

static int traceback(lua_State *lua)
{
    luaL_traceback(lua, lua, lua_tostring(lua, 1), 1);
    return 1;
}

/* A table in the scripts' environment, and on the stack. */
static void push_shared(lua_State *lua, const char *name, unsigned size)
{
    lua_createtable(lua, (int)size, 0);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, SLOT_ENV, name);
}

/* What a script may see, as in a server: string, tonumber, redis, KEYS, ARGV. */
static void push_environment(struct local *local)
{
    lua_State *lua = local->lua;
    lua_pushcfunction(lua, traceback);
    lua_newtable(lua);
    lua_getglobal(lua, "string");
    lua_setfield(lua, SLOT_ENV, "string");
    lua_getglobal(lua, "tonumber");
    lua_setfield(lua, SLOT_ENV, "tonumber");
    commands_push(lua, &local->commands);
    lua_setfield(lua, SLOT_ENV, "redis");
    push_shared(lua, "KEYS", SCRIPT_KEYS);
    for (int i = 0; i < (int)SCRIPT_KEYS; i++) {
        lua_pushlstring(lua, &SCRIPT_KEY_LETTERS[i], 1);
        lua_rawseti(lua, -2, i + 1);
    }
    lua_pop(lua, 1);
    push_shared(lua, "ARGV", SCRIPT_ARGS_MAX);
}

/* Leaves all scripts on the stack. One chunk, as reading what they share once for each would take
 * milliseconds, and a ledger is made for the examples of every reload, too. */
static enum err push_scripts(lua_State *lua, struct why *why)
{
    struct arena *arena = arena_new();
    struct str text = script_functions(arena);
    int status = luaL_loadbufferx(lua, text.at, text.len, "=the ledger's scripts", "t");
    arena_free(arena);
    if (status == 0) {
        lua_pushvalue(lua, SLOT_ENV);
        lua_setfenv(lua, -2);
        status = lua_pcall(lua, 0, SCRIPT_COUNT, SLOT_HANDLER);
    }
    return status == 0 ? OK : err_set(why, ERR_CONFIG, "%s", lua_tostring(lua, -1));
}

/* MemoryDenyWriteExecute= and its like forbid what a compiler must do; LuaJIT would end the process over it.
 */
static bool may_compile(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool may = mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
    munmap(page, size);
    return may;
}

enum err local_new(size_t memory_bytes, struct local **out, struct why *why)
{
    *out = NULL;
    struct local *local = calloc(1, sizeof(*local));
    if (!local || !(local->lua = luaL_newstate())) {
        local_free(local);
        return err_set(why, ERR_LIMIT, "no memory for the local ledger's Lua state");
    }
    local->store = local->commands.store = store_new(memory_bytes);
    luaL_openlibs(local->lua);
    if (!may_compile())
        luaJIT_setmode(local->lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    lua_gc(local->lua, LUA_GCSETPAUSE, GC_PAUSE_PERCENT);
    push_environment(local);
    enum err err = push_scripts(local->lua, why);
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
    if (local)
        store_free(local->store);
    free(local);
}

/* Memory running out in here ends the process, as it does in an arena. */
static void hand_over(struct local *local, const struct script_run *run)
{
    for (size_t i = 0; i < run->arg_count; i++) {
        struct str arg = run->args[i];
        lua_pushlstring(local->lua, arg.len ? arg.at : "", arg.len);
        lua_rawseti(local->lua, SLOT_ARGV, (int)i + 1);
    }
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
    local->commands.now_ms = now_ms;
    store_enter(local->store, run->keys[0], now_ms);
    hand_over(local, run);
    lua_pushvalue(lua, SLOT_SCRIPTS + (int)run->script);
    if (lua_pcall(lua, 0, 1, SLOT_HANDLER) == 0) {
        struct str said;
        said.at = lua_tolstring(lua, -1, &said.len);
        *reply = arena_dup(arena, said);
    } else {
        err = err_set(why, ERR_UNAVAILABLE, "the local ledger failed in %s: %s", script_name(run->script),
                      lua_tostring(lua, -1));
    }
    lua_settop(lua, top);
    return err;
}

void local_usage(const struct local *local, struct store_usage *out)
{
    store_usage(local->store, out);
}

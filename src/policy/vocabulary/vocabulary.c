/*
 * The environment of policies. A word that is not added here does not exist for a policy: no io, os, ffi,
 * jit, debug, load, xpcall, newproxy, coroutine, getfenv, setfenv, getmetatable, setmetatable, rawget,
 * rawset. libraries.c says what of the libraries there is.
 */
#include "policy/vocabulary/vocabulary.h"
#include "base/embedded.h"
#include "policy/call_table.h"
#include "policy/lua_modules.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/libraries.h"
#include "policy/vocabulary/builtins.h"
#include "sandbox/sandbox.h"
#include "sandbox/string_library.h"

#include <lauxlib.h>

/* Words that Lua brings along, and words that are written in C; all others are returned by the Lua files. */
static const char *const stock[] = {"assert", "error",    "ipairs", "next",  "pairs",
                                    "select", "tonumber", "type",   "unpack"};
static const luaL_Reg in_c[] = {{"json", word_json},
                                {"require", lua_modules_require},
                                {"time", word_time},
                                {"duration", word_duration},
                                {"url", word_url},
                                {"host_in", word_host_in},
                                {"glob", word_glob},
                                {"pcall", sandbox_pcall},
                                {"tostring", string_library_tostring},
                                {NULL, NULL}};

/* What the Lua files return for each other and for C, and not as a word. */
#define READ_ANNOTATIONS "read_annotations"
#define CONDITION_ON     "condition_on"

static const char *const lua_files[] = {"policy/conditions.lua",  "policy/declare.lua",  "policy/params.lua",
                                        "policy/annotations.lua", "policy/outcomes.lua", "policy/goal.lua",
                                        "policy/helpers.lua"};

/* The fields of words that take a table, in the order of messages; lua/policy/reference.lua documents them.
 */
static const struct word_fields takes[] = {
    {"repair", {"path", "message", "code", "suggest", "expected", "got"}},
    {"ok", {"coverage", "facts", "follow_up", "cost"}},
    {"ok.follow_up", {"tool", "args"}},
    {"tool_return", {"value", "content", "metadata"}},
};

const struct word_fields *word_fields_of(const char *word)
{
    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++)
        if (strcmp(takes[i].word, word) == 0)
            return &takes[i];
    return NULL;
}

/* Each Lua file is called with the builtins and the words so far, and returns its own; they are added to the
 * table at `found`. */
static void run_lua_file(lua_State *L, const char *name, int found)
{
    struct str text = embedded_text(name);
    if (luaL_loadbufferx(L, text.at, text.len, SANDBOX_BUILTINS_CHUNK, "t") != 0)
        lua_error(L);
    lua_newtable(L);
    luaL_setfuncs(L, builtins, 0);
    lua_pushvalue(L, found);
    lua_call(L, 2, 1);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, found);
    }
    lua_pop(L, 1);
}

void vocabulary_push_annotations(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, READ_ANNOTATIONS);
}

void vocabulary_open(lua_State *L)
{
    libraries_open(L);
    proxy_open(L);
    call_table_open(L);
    lua_newtable(L);
    int found = lua_gettop(L);
    libraries_add(L, found);
    for (size_t i = 0; i < sizeof(lua_files) / sizeof(lua_files[0]); i++)
        run_lua_file(L, lua_files[i], found);
    for (size_t i = 0; i < sizeof(stock) / sizeof(stock[0]); i++) {
        lua_getglobal(L, stock[i]);
        lua_setfield(L, found, stock[i]);
    }
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, found, "null");
    luaL_setfuncs(L, in_c, 0);
    lua_getfield(L, found, READ_ANNOTATIONS);
    lua_setfield(L, LUA_REGISTRYINDEX, READ_ANNOTATIONS);
    lua_pushnil(L);
    lua_setfield(L, found, READ_ANNOTATIONS);
    lua_pushnil(L);
    lua_setfield(L, found, CONDITION_ON);
    libraries_guard_missing(L, NULL);
    /* The Lua files keep the stock functions in their environment; policies find an empty one. */
    lua_newtable(L);
    lua_replace(L, LUA_GLOBALSINDEX);
}

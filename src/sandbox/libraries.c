/*
 * The libraries are shared by all policies of a state, so a policy gets them
 * as userdata that only reads: a table could be written to, if only by
 * table.insert. Out are string.dump (bytecode crashes the VM), math.random (a
 * replay says the same as the first time), and whatever runs in C for long
 * without looking at the deadline: ours stand in for it.
 */
#include "sandbox/libraries.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/string_library.h"
#include "sandbox/table_library.h"
#include "sandbox/tostring_library.h"
#include "base/suggest.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

struct library {
    const char *name;
    const char *const *functions; /* of the stock library; NULL-terminated */
    const luaL_Reg *ours;         /* instead of, or beside, the stock ones */
};

static const luaL_Reg our_string[] = {{"find", string_library_find},
                                      {"match", string_library_match},
                                      {"gmatch", string_library_gmatch},
                                      {"gsub", string_library_gsub},
                                      {"rep", string_library_rep},
                                      {"format", string_library_format},
                                      {NULL, NULL}};
static const luaL_Reg our_table[] = {{"sort", table_library_sort},
                                     {"insert", table_library_insert},
                                     {"remove", table_library_remove},
                                     {"concat", table_library_concat},
                                     {NULL, NULL}};
static const luaL_Reg nothing[] = {{NULL, NULL}};

static const char *const stock_string[] = {"byte", "char", "len", "lower", "sub", "upper", "reverse", NULL};
static const char *const stock_table[] = {NULL};
static const char *const stock_math[] = {"abs",   "acos", "asin",  "atan", "atan2", "ceil", "cos",   "cosh",
                                         "deg",   "exp",  "floor", "fmod", "frexp", "huge", "ldexp", "log",
                                         "log10", "max",  "min",   "modf", "pi",    "pow",  "rad",   "sin",
                                         "sinh",  "sqrt", "tan",   "tanh", NULL};
static const char *const stock_bit[] = {"arshift", "band", "bnot",   "bor",   "bswap", "bxor", "lshift",
                                        "rol",     "ror",  "rshift", "tobit", "tohex", NULL};

static const struct library libraries[] = {{"string", stock_string, our_string},
                                           {"table", stock_table, our_table},
                                           {"math", stock_math, nothing},
                                           {"bit", stock_bit, nothing}};

#define LIBRARY_COUNT (sizeof(libraries) / sizeof(libraries[0]))

/* ---- names that do not exist, tables that do not change ---------------------------------- */

size_t libraries_collect_names(lua_State *L, int at, struct str *out, size_t count)
{
    lua_pushnil(L);
    while (lua_next(L, at)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && count < LIBRARIES_NAMES_MAX) {
            out[count].at = lua_tolstring(L, -1, &out[count].len);
            count++;
        }
    }
    return count;
}

/* Lua's own names that are missing on purpose: a likeness to some word would only mislead. */
static const struct {
    const char *names, *reason;
} kept_out[] = {
    {" os ", "a policy has no clock, so that a replay says the same, and runs nothing"},
    {" io package require dofile loadfile ",
     "a policy reaches nothing but its arguments; json \"file\" reads one beside it"},
    {" load loadstring setfenv getfenv module ", "a policy runs no text as code"},
    {" ffi jit debug newproxy collectgarbage coroutine ",
     "a policy can't look behind Lua, and each hook runs to its end at once"},
    {" getmetatable setmetatable rawget rawset rawequal rawlen ", "tables are plain here"},
    {" xpcall ", "pcall is here"},
    {" print ", "call.log(\"info\", text), in run, speaks to the agent's program"},
    {" _G _VERSION arg ", "there are no globals to share"},
};

static const char *why_kept_out(struct str name)
{
    char spaced[32];
    size_t n = (size_t)snprintf(spaced, sizeof(spaced), " " STR_FMT " ", STR_ARG(name));
    for (size_t i = 0; n < sizeof(spaced) && i < sizeof(kept_out) / sizeof(kept_out[0]); i++)
        if (strstr(kept_out[i].names, spaced))
            return kept_out[i].reason;
    return NULL;
}

void libraries_format_missing(char *out, size_t size, const char *library, struct str name,
                              const struct str *names, size_t count)
{
    const char *reason = library ? NULL : why_kept_out(name);
    struct str meant = reason ? STR_NONE : suggest_closest(name, names, count);
    int n = library
                ? snprintf(out, size, "there is no %s." STR_FMT, library, STR_ARG(str_cut(name, 60)))
                : snprintf(out, size, "there is no word or global '" STR_FMT "'", STR_ARG(str_cut(name, 60)));
    if (reason && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ": %s", reason);
    if (meant.len && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, " (did you mean '" STR_FMT "'?)", STR_ARG(meant));
}

/* __index of the words and of each library; upvalue 1: the library's name, or nil for words. */
static int missing_name(lua_State *L)
{
    struct str names[LIBRARIES_NAMES_MAX], name = {"?", 1};
    char text[LIBRARIES_SENTENCE_MAX];
    if (lua_type(L, 2) == LUA_TSTRING)
        name.at = lua_tolstring(L, 2, &name.len);
    libraries_format_missing(text, sizeof(text), lua_tostring(L, lua_upvalueindex(1)), name, names,
                             libraries_collect_names(L, 1, names, 0));
    return luaL_error(L, "%s", text);
}

void libraries_guard_missing(lua_State *L, const char *library)
{
    lua_createtable(L, 0, 1);
    if (library)
        lua_pushstring(L, library);
    else
        lua_pushnil(L);
    lua_pushcclosure(L, missing_name, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

static int is_read_only(lua_State *L)
{
    return luaL_error(L, "'%s' is shared by all policies and can't be changed",
                      lua_tostring(L, lua_upvalueindex(1)));
}

void libraries_wrap_read_only(lua_State *L, const char *name)
{
    lua_newuserdata(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_pushcclosure(L, is_read_only, 1);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

bool libraries_push_wrapped(lua_State *L, int at)
{
    if (lua_type(L, at) != LUA_TUSERDATA || proxy_is(L, at) || !lua_getmetatable(L, at))
        return false;
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
    return true;
}

/* ---- the libraries --------------------------------------------------------------------------- */

void libraries_open(lua_State *L)
{
    static const luaL_Reg libs[] = {{"", luaopen_base},
                                    {LUA_STRLIBNAME, luaopen_string},
                                    {LUA_TABLIBNAME, luaopen_table},
                                    {LUA_MATHLIBNAME, luaopen_math},
                                    {LUA_BITLIBNAME, luaopen_bit}};
    for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++) {
        lua_pushcfunction(L, libs[i].func);
        lua_pushstring(L, libs[i].name);
        lua_call(L, 1, 0);
    }
}

/* Pushes a table of what policies may have of a library. */
static void push_library(lua_State *L, const struct library *library)
{
    lua_newtable(L);
    lua_getglobal(L, library->name);
    for (const char *const *name = library->functions; *name; name++) {
        lua_getfield(L, -1, *name);
        lua_setfield(L, -3, *name);
    }
    for (const luaL_Reg *ours = library->ours; ours->name; ours++) { /* upvalue 1: the stock one */
        lua_getfield(L, -1, ours->name);
        lua_pushcclosure(L, ours->func, 1);
        lua_setfield(L, -3, ours->name);
    }
    lua_pop(L, 1);
    if (strcmp(library->name, "table") == 0) {
        lua_getglobal(L, "unpack");
        lua_setfield(L, -2, "unpack");
    }
    libraries_guard_missing(L, library->name);
}

/* ("x"):find(…) goes through the metatable that all strings share. */
static void lock_strings(lua_State *L)
{
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

void libraries_add(lua_State *L, int found)
{
    for (size_t i = 0; i < LIBRARY_COUNT; i++) {
        push_library(L, &libraries[i]);
        if (strcmp(libraries[i].name, "string") == 0)
            lock_strings(L);
        libraries_wrap_read_only(L, libraries[i].name);
        lua_setfield(L, found, libraries[i].name);
    }
}

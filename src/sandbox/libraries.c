/* All policies of a state share the libraries, so a policy gets them as read-only userdata: a table could be
 * changed, for example by table.insert. Excluded are string.dump (bytecode crashes the VM) and math.random
 * (a replay must give the same results). Functions that run in C for long without checking the deadline are
 * replaced by ours. */
#include "sandbox/libraries.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "sandbox/freeze.h"
#include "sandbox/sandbox.h"

#include <limits.h>
#include <lualib.h>
#include <stdio.h>

/* ---- table ----
 *
 * The stock functions never check the deadline. sort is a heap sort: it needs no stack and ends with any
 * comparator, even one that contradicts itself. Read-only proxies are read, never changed. */

#define MOVES_PER_CHECK 1024 /* between two checks of the deadline */

/* Whether the two values on top (left below right) are in order; pops neither. */
static bool is_less(lua_State *L, bool has_comparator)
{
    sandbox_check_deadline(L);
    if (!has_comparator)
        return lua_lessthan(L, -2, -1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_call(L, 2, 1);
    bool less = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return less;
}

/* Moves the value at `root` of t[1] to t[count] down until both children are no greater. */
static void sift(lua_State *L, int root, int count, bool has_comparator)
{
    lua_rawgeti(L, 1, root);
    for (int child; (child = 2 * root) <= count; root = child) {
        lua_rawgeti(L, 1, child);
        if (child < count) {
            lua_rawgeti(L, 1, child + 1);
            if (is_less(L, has_comparator)) {
                lua_remove(L, -2);
                child++;
            } else {
                lua_pop(L, 1);
            }
        }
        if (!is_less(L, has_comparator)) {
            lua_pop(L, 1);
            break;
        }
        lua_rawseti(L, 1, root);
    }
    lua_rawseti(L, 1, root);
}

/* Argument 1 must be a list that may be changed; returns its length. */
static int check_list(lua_State *L)
{
    proxy_refuse_write(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    size_t size = lua_objlen(L, 1);
    luaL_argcheck(L, size < INT_MAX / 2, 1, "the list is too long");
    return (int)size;
}

static int sort_list(lua_State *L)
{
    int count = check_list(L);
    bool has_comparator = !lua_isnoneornil(L, 2);
    if (has_comparator)
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    sandbox_check_stack(L, "table.sort");
    for (int root = count / 2; root >= 1; root--)
        sift(L, root, count, has_comparator);
    for (int last = count; last > 1; last--) {
        lua_rawgeti(L, 1, 1);
        lua_rawgeti(L, 1, last);
        lua_rawseti(L, 1, 1);
        lua_rawseti(L, 1, last);
        sift(L, 1, last - 1, has_comparator);
    }
    return 0;
}

static int insert_item(lua_State *L)
{
    int end = check_list(L) + 1;
    if (lua_gettop(L) == 2) {
        lua_rawseti(L, 1, end);
        return 0;
    }
    if (lua_gettop(L) != 3)
        return luaL_error(L, "wrong number of arguments to 'insert'");
    lua_Integer at = luaL_checkinteger(L, 2);
    luaL_argcheck(L, at >= 1 && at <= end, 2, "position out of bounds");
    for (int i = end; i > (int)at; i--) {
        if (i % MOVES_PER_CHECK == 0)
            sandbox_check_deadline(L);
        lua_rawgeti(L, 1, i - 1);
        lua_rawseti(L, 1, i);
    }
    lua_rawseti(L, 1, (int)at);
    return 0;
}

static int remove_item(lua_State *L)
{
    int end = check_list(L);
    lua_Integer at = luaL_optinteger(L, 2, end);
    if (at < 1 || at > end)
        return 0;
    lua_rawgeti(L, 1, (int)at);
    for (int i = (int)at; i < end; i++) {
        if (i % MOVES_PER_CHECK == 0)
            sandbox_check_deadline(L);
        lua_rawgeti(L, 1, i + 1);
        lua_rawseti(L, 1, i);
    }
    lua_pushnil(L);
    lua_rawseti(L, 1, end);
    return 1;
}

static int concat_list(lua_State *L)
{
    size_t len = 0;
    luaL_Buffer text;
    proxy_unwrap(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *between = luaL_optlstring(L, 2, "", &len);
    lua_Integer at = luaL_optinteger(L, 3, 1), last = luaL_optinteger(L, 4, (lua_Integer)lua_objlen(L, 1));
    lua_settop(L, 2);
    luaL_buffinit(L, &text);
    for (; at <= last; at++) {
        if (at % MOVES_PER_CHECK == 0)
            sandbox_check_deadline(L);
        lua_rawgeti(L, 1, (int)at);
        if (!lua_isstring(L, -1))
            return luaL_error(L, "table.concat: item %d: expected text or a number, got a %s", (int)at,
                              proxy_is(L, -1) ? "table" : luaL_typename(L, -1));
        luaL_addvalue(&text);
        if (at < last)
            luaL_addlstring(&text, between, len);
    }
    luaL_pushresult(&text);
    return 1;
}

static const luaL_Reg our_table[] = {{"sort", sort_list},
                                     {"insert", insert_item},
                                     {"remove", remove_item},
                                     {"concat", concat_list},
                                     {NULL, NULL}};

/* ---- all libraries ---- */

struct library {
    const char *name;
    const char *const *functions; /* of the stock library; NULL-terminated */
    const luaL_Reg *ours;         /* that replace stock ones */
};

static const luaL_Reg nothing[] = {{NULL, NULL}};

static const char *const stock_string[] = {"byte", "char", "len", "lower", "sub", "upper", "reverse", NULL};
static const char *const stock_table[] = {NULL};
static const char *const stock_math[] = {"abs",   "acos", "asin",  "atan", "atan2", "ceil", "cos",   "cosh",
                                         "deg",   "exp",  "floor", "fmod", "frexp", "huge", "ldexp", "log",
                                         "log10", "max",  "min",   "modf", "pi",    "pow",  "rad",   "sin",
                                         "sinh",  "sqrt", "tan",   "tanh", NULL};
static const char *const stock_bit[] = {"arshift", "band", "bnot",   "bor",   "bswap", "bxor", "lshift",
                                        "rol",     "ror",  "rshift", "tobit", "tohex", NULL};

static const struct library libraries[] = {{"string", stock_string, string_library},
                                           {"table", stock_table, our_table},
                                           {"math", stock_math, nothing},
                                           {"bit", stock_bit, nothing}};

#define LIBRARY_COUNT (sizeof(libraries) / sizeof(libraries[0]))

size_t libraries_collect_names(lua_State *L, int at, struct str *out)
{
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, at)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && count < LIBRARIES_NAMES_MAX)
            out[count++] = sandbox_string(L, -1);
    }
    return count;
}

/* Names of Lua that are excluded on purpose: suggesting a similar name would mislead. */
static const struct {
    const char *names, *reason;
} excluded[] = {
    {" os ", "a policy has no clock, so that a replay gives the same result, and starts no program"},
    {" io package dofile loadfile ", "a policy has no access to files; json \"file\" reads one beside it"},
    {" load loadstring setfenv getfenv module ", "a policy compiles no code"},
    {" ffi jit debug newproxy collectgarbage coroutine ",
     "a policy has no access to the interpreter, and each hook runs without pause"},
    {" getmetatable setmetatable rawget rawset rawequal rawlen ", "policies have plain tables only"},
    {" xpcall ", "use pcall"},
    {" print ", "in run, call.log(\"info\", text) sends a message to the agent's program"},
    {" _G _VERSION arg ", "there are no shared globals"},
};

struct str libraries_missing(struct arena *arena, const char *library, struct str name,
                             const struct str *names, size_t count)
{
    char spaced[32];
    const char *reason = NULL;
    struct str short_name = str_cut(name, 60);
    size_t width = (size_t)snprintf(spaced, sizeof(spaced), " " STR_FMT " ", STR_ARG(name));
    for (size_t i = 0; !library && width < sizeof(spaced) && i < sizeof(excluded) / sizeof(excluded[0]); i++)
        if (strstr(excluded[i].names, spaced))
            reason = excluded[i].reason;
    struct str meant = reason ? STR_NONE : suggest_closest(name, names, count);
    struct str text =
        library ? arena_printf(arena, "there is no %s." STR_FMT, library, STR_ARG(short_name))
                : arena_printf(arena, "there is no builtin or global '" STR_FMT "'", STR_ARG(short_name));
    if (reason)
        return arena_printf(arena, STR_FMT ": %s", STR_ARG(text), reason);
    return meant.len
               ? arena_printf(arena, STR_FMT " (did you mean '" STR_FMT "'?)", STR_ARG(text), STR_ARG(meant))
               : text;
}

/* __index of the builtins and of each library; upvalue 1: the library's name, or nil for builtins. */
static int missing_name(lua_State *L)
{
    struct str names[LIBRARIES_NAMES_MAX], name = sandbox_string(L, 2);
    size_t count = libraries_collect_names(L, 1, names);
    struct str text = libraries_missing(sandbox_context(L)->arena, lua_tostring(L, lua_upvalueindex(1)),
                                        name.at ? name : STR_LIT("?"), names, count);
    return luaL_error(L, "%s", text.at);
}

void libraries_guard_missing(lua_State *L, const char *library)
{
    lua_createtable(L, 0, 1);
    lua_pushstring(L, library); /* nil for NULL */
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

/* Pushes a table with the functions of a library that policies may use. */
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

void libraries_add(lua_State *L, int builtins)
{
    for (size_t i = 0; i < LIBRARY_COUNT; i++) {
        push_library(L, &libraries[i]);
        if (strcmp(libraries[i].name, "string") == 0) { /* ("x"):find(…) uses the metatable of all strings */
            lua_pushliteral(L, "");
            lua_getmetatable(L, -1);
            lua_pushvalue(L, -3);
            lua_setfield(L, -2, "__index");
            lua_pushboolean(L, 0);
            lua_setfield(L, -2, "__metatable");
            lua_pop(L, 2);
        }
        libraries_wrap_read_only(L, libraries[i].name);
        lua_setfield(L, builtins, libraries[i].name);
    }
}

/* Proxies first, and the builtins that accept them. Then the walk: from the functions that calls run and the
 * globals of the file, with a queue instead of recursion, as a policy's tables may be nested deeper than the
 * C stack allows. Values are replaced where they are stored: in upvalues, in the table of globals, and in
 * tables. */
#include "sandbox/freeze.h"
#include "sandbox/bytecode.h"
#include "sandbox/sandbox.h"
#include "sandbox/libraries.h"

#include <lauxlib.h>
#include <string.h>

#define UNPACK_MAX 65536 /* the limit of Lua's stack */
#define KINDS      9     /* of Lua values: LUA_TNIL to LUA_TTHREAD */

/* ---- proxies: the userdata's environment is the table, for C; its __index is the table, for Lua ---- */

struct proxy {
    const void *tag; /* &tag: no other userdata of this state begins with it */
};

static const char tag;

bool proxy_is(lua_State *L, int at)
{
    return lua_type(L, at) == LUA_TUSERDATA && lua_objlen(L, at) == sizeof(struct proxy) &&
           ((const struct proxy *)lua_touserdata(L, at))->tag == &tag;
}

void proxy_unwrap(lua_State *L, int at)
{
    if (!proxy_is(L, at))
        return;
    if (at < 0)
        at = lua_gettop(L) + at + 1;
    lua_getfenv(L, at);
    lua_replace(L, at);
}

void proxy_copy(lua_State *L)
{
    if (!proxy_is(L, -1))
        return;
    int at = lua_gettop(L);
    lua_newtable(L);
    lua_getfenv(L, at);
    for (lua_pushnil(L); lua_next(L, at + 2);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, at + 1);
    }
    lua_settop(L, at + 1);
    lua_replace(L, at);
}

static const char *proxy_name(lua_State *L, int at)
{
    lua_getmetatable(L, at);
    lua_rawgeti(L, -1, 1);
    const char *name = lua_tostring(L, -1); /* the metatable keeps it */
    lua_pop(L, 2);
    return name;
}

static int refuse_write(lua_State *L)
{
    return luaL_error(L,
                      "keeps state between calls: the table '%s' was made when the file was loaded, and is "
                      "read-only: change a copy of it; " PROXY_WRITE_HINT,
                      proxy_name(L, 1));
}

void proxy_refuse_write(lua_State *L, int at)
{
    if (!proxy_is(L, at))
        return;
    lua_pushvalue(L, at);
    lua_replace(L, 1);
    refuse_write(L);
}

static int length(lua_State *L)
{
    lua_getfenv(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_objlen(L, -1));
    return 1;
}

/* Pushes a proxy for the table on top. `name` is used in the error for writes; not empty. */
static void proxy_push(lua_State *L, const char *name)
{
    struct proxy *made = lua_newuserdata(L, sizeof(*made));
    made->tag = &tag;
    lua_pushvalue(L, -2);
    lua_setfenv(L, -2);
    lua_createtable(L, 2, 3);
    lua_pushstring(L, name);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_write);
    lua_setfield(L, -2, "__newindex");
    lua_pushcfunction(L, length);
    lua_setfield(L, -2, "__len");
    lua_setmetatable(L, -2);
}

/* ---- the builtins that accept proxies ---- */

/* Upvalues: the names of the types. */
static int aware_type(lua_State *L)
{
    luaL_checkany(L, 1);
    int type = proxy_is(L, 1) ? LUA_TTABLE : lua_type(L, 1);
    lua_pushvalue(L, lua_upvalueindex(type + 1));
    return 1;
}

static int aware_next(lua_State *L)
{
    lua_settop(L, 2);
    proxy_unwrap(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_next(L, 1))
        return 2;
    lua_pushnil(L);
    return 1;
}

/* Upvalue 1: the table, which the policy must not see. */
static int next_pair(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_next(L, lua_upvalueindex(1)))
        return 2;
    lua_pushnil(L);
    return 1;
}

static int next_item(lua_State *L)
{
    int at = (int)luaL_checkinteger(L, 2) + 1;
    lua_pushinteger(L, at);
    lua_rawgeti(L, lua_upvalueindex(1), at);
    return lua_isnil(L, -1) ? 0 : 2;
}

/* pairs and ipairs. Upvalues: the stock iterator, the one over a proxy, which hides its table, and the first
 * key. */
static int aware_loop(lua_State *L)
{
    if (proxy_is(L, 1)) {
        lua_getfenv(L, 1);
        lua_pushcclosure(L, lua_tocfunction(L, lua_upvalueindex(2)), 1);
    } else {
        luaL_checktype(L, 1, LUA_TTABLE);
        lua_pushvalue(L, lua_upvalueindex(1));
    }
    lua_pushvalue(L, 1);
    lua_pushvalue(L, lua_upvalueindex(3));
    return 3;
}

static int aware_unpack(lua_State *L)
{
    proxy_unwrap(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    double first = luaL_optnumber(L, 2, 1), last = luaL_optnumber(L, 3, (double)lua_objlen(L, 1));
    double count = last - first + 1;
    if (count <= 0)
        return 0;
    if (!(count < UNPACK_MAX) || !lua_checkstack(L, (int)count))
        return luaL_error(L, "unpack: too many results");
    for (int i = 0; i < (int)count; i++)
        lua_rawgeti(L, 1, (int)first + i);
    return (int)count;
}

/* `name` is pairs or ipairs. The stock function is called once for its iterator and first key. */
static void replace_loop(lua_State *L, const char *name, lua_CFunction step)
{
    lua_getglobal(L, name);
    lua_newtable(L);
    lua_call(L, 1, 3);
    lua_pushcfunction(L, step);
    lua_replace(L, -3);
    lua_pushcclosure(L, aware_loop, 3);
    lua_setglobal(L, name);
}

void proxy_open(lua_State *L)
{
    for (int type = 0; type < KINDS; type++)
        lua_pushstring(L, lua_typename(L, type));
    lua_pushcclosure(L, aware_type, KINDS);
    lua_setglobal(L, "type");
    lua_pushcfunction(L, aware_next);
    lua_setglobal(L, "next");
    lua_pushcfunction(L, aware_unpack);
    lua_setglobal(L, "unpack");
    replace_loop(L, "pairs", next_pair);
    replace_loop(L, "ipairs", next_item);
}

/* ---- the walk ---- */

struct freeze_walk {
    lua_State *L;
    const struct bytecode_opcodes *ops;
    struct diagnostics *diagnostics;
    int seen;  /* table: value -> its proxy, or true */
    int queue; /* table: functions and tables whose content is still to be frozen */
    int first, last;
    const char *name; /* of the variable or field that leads to the current value */
};

/* Functions around a function, innermost first. */
struct scope {
    const struct bytecode *code;
    const struct scope *up;
};

/* Whether the variable belongs to code outside the outermost function, so that it outlives a call. */
static bool outlives_call(const struct scope *scope, uint32_t variable)
{
    for (; scope->up; scope = scope->up) {
        if (scope->code->upvalues[variable] & BYTECODE_UPVALUE_LOCAL)
            return false;
        variable = scope->code->upvalues[variable] & 0xff;
    }
    return true;
}

static void check_assignments(struct freeze_walk *s, const struct bytecode *code, const struct scope *up)
{
    struct scope scope = {code, up};
    for (uint32_t i = 0; i < code->count; i++) {
        uint32_t variable = BYTECODE_A(code->at[i]);
        if (!bytecode_writes_upvalue(s->ops, code->at[i]) || variable >= code->upvalue_count ||
            !outlives_call(&scope, variable))
            continue;
        struct str name = str_cut(code->upvalue_names[variable], 60);
        diagnostics_add(s->diagnostics, bytecode_line(code, i),
                        "keeps state between calls: '" STR_FMT
                        "' is declared outside the function that sets it here: write local " STR_FMT
                        "; " PROXY_WRITE_HINT,
                        STR_ARG(name), STR_ARG(name));
    }
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function)
            check_assignments(s, code->constants[i].function, &scope);
}

/* Whether the value on top was seen; replaces it by its proxy if it has one. */
static bool replace_seen(struct freeze_walk *s)
{
    lua_pushvalue(s->L, -1);
    lua_rawget(s->L, s->seen);
    bool seen = !lua_isnil(s->L, -1);
    if (lua_type(s->L, -1) == LUA_TUSERDATA)
        lua_replace(s->L, -2);
    else
        lua_pop(s->L, 1);
    return seen;
}

/* Only an iterator of gmatch has state among the functions in C. */
static void check_builtin(struct freeze_walk *s)
{
    lua_Debug where = {0};
    if (lua_tocfunction(s->L, -1) != string_library_gmatch_step)
        return;
    lua_rawgeti(s->L, s->queue, s->first - 1); /* the function or table that leads to it */
    bool function = lua_isfunction(s->L, -1);
    if (function)
        lua_getinfo(s->L, ">S", &where);
    else
        lua_pop(s->L, 1);
    diagnostics_add(s->diagnostics, function ? where.linedefined : 1,
                    "keeps state between calls: '%s' is a gmatch iterator that was created when the "
                    "file was loaded: call gmatch in the function",
                    s->name);
}

/* Replaces the value on top by its frozen form, and queues its content. */
static void freeze_value(struct freeze_walk *s)
{
    int type = lua_type(s->L, -1), at = lua_gettop(s->L);
    if (type == LUA_TFUNCTION && lua_iscfunction(s->L, -1)) {
        check_builtin(s);
        return;
    }
    if ((type != LUA_TFUNCTION && type != LUA_TTABLE) || replace_seen(s))
        return;
    lua_pushvalue(s->L, at);
    lua_rawseti(s->L, s->queue, ++s->last);
    if (type == LUA_TTABLE)
        proxy_push(s->L, s->name); /* of the value on top */
    else
        lua_pushboolean(s->L, true);
    lua_pushvalue(s->L, at);
    lua_pushvalue(s->L, -2);
    lua_rawset(s->L, s->seen);
    if (type == LUA_TTABLE)
        lua_replace(s->L, at);
    lua_settop(s->L, at);
}

/* Of the function on top; the embedded Lua of our own is left as it is. */
static void freeze_upvalues(struct freeze_walk *s)
{
    lua_State *L = s->L;
    lua_Debug where;
    const char *name;
    int at = lua_gettop(L);
    lua_pushvalue(L, at);
    lua_getinfo(L, ">S", &where);
    if (strcmp(where.source, SANDBOX_BUILTINS_CHUNK) == 0)
        return;
    check_assignments(s, bytecode_read(L, at, s->diagnostics->arena), NULL);
    for (int i = 1; (name = lua_getupvalue(L, at, i)); i++) {
        s->name = name;
        freeze_value(s);
        lua_setupvalue(L, at, i);
    }
}

/* Replaces keys that are tables by their proxies. */
static void freeze_keys(struct freeze_walk *s, int table)
{
    lua_State *L = s->L;
    lua_newtable(L);
    int keys = lua_gettop(L), count = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        if (lua_istable(L, -2) || lua_isfunction(L, -2)) {
            lua_pushvalue(L, -2);
            lua_rawseti(L, keys, ++count);
        }
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, keys, i);
        lua_pushvalue(L, -1);
        lua_rawget(L, table); /* key, value */
        lua_pushvalue(L, -2);
        lua_pushnil(L);
        lua_rawset(L, table);
        lua_insert(L, -2);
        freeze_value(s);
        lua_insert(L, -2);
        lua_rawset(L, table);
    }
    lua_pop(L, 1);
}

/* Freezes the values of the table at `at`. `by_key`: each is named by its key, else by the table's name. */
static void freeze_fields(struct freeze_walk *s, int at, bool by_key)
{
    lua_State *L = s->L;
    bool keys = false;
    int i = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        int key = lua_type(L, -2), value = lua_type(L, -1);
        keys = keys || key == LUA_TTABLE || key == LUA_TFUNCTION;
        if (++i % 1024 == 0)
            sandbox_check_deadline(L);
        if (value != LUA_TTABLE && value != LUA_TFUNCTION)
            continue;
        if (by_key)
            s->name = key == LUA_TSTRING ? lua_tostring(L, -2) : "a global";
        freeze_value(s);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, at);
    }
    if (keys)
        freeze_keys(s, at);
}

static void process_queue(struct freeze_walk *s)
{
    lua_State *L = s->L;
    int top = lua_gettop(L);
    while (s->first <= s->last) {
        lua_rawgeti(L, s->queue, s->first++);
        sandbox_check_deadline(L);
        if (lua_isfunction(L, -1)) {
            freeze_upvalues(s);
        } else {
            lua_pushvalue(L, -1);
            replace_seen(s); /* its proxy has the name */
            s->name = proxy_name(L, -1);
            freeze_fields(s, top + 1, false);
        }
        lua_settop(L, top);
    }
}

void freeze_file(lua_State *L, int environment, int value, const char *name, struct diagnostics *diagnostics)
{
    int top = lua_gettop(L);
    luaL_checkstack(L, 20, "freezing");
    lua_newtable(L);
    lua_newtable(L);
    struct freeze_walk s = {.L = L,
                            .ops = sandbox_opcodes(L),
                            .diagnostics = diagnostics,
                            .seen = top + 1,
                            .queue = top + 2,
                            .first = 1,
                            .name = name};
    if (name) {
        lua_pushvalue(L, value);
        freeze_value(&s);
        lua_replace(L, value);
    }
    for (size_t i = 1; !name && i <= lua_objlen(L, value); i++) {
        lua_rawgeti(L, value, (int)i);
        freeze_value(&s);
        lua_pop(L, 1);
    }
    sandbox_push_globals(L, environment);
    if (lua_istable(L, -1))
        freeze_fields(&s, lua_gettop(L), true);
    process_queue(&s);
    lua_settop(L, top);
}

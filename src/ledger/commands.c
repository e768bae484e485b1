/*
 * One C function a command, found in a table. They give a script what a
 * server's Lua would be given: false for nothing, numbers and strings.
 */
#include "ledger/commands.h"

#include "ledger/script.h"
#include "ledger/store.h"

#include <lauxlib.h>

static struct str text_at(lua_State *lua, int at)
{
    struct str text;
    text.at = luaL_checklstring(lua, at, &text.len);
    return text;
}

/* KEYS[i] is a letter here: the store has been told which session's. */
static unsigned key_at(lua_State *lua, int at)
{
    struct str key = text_at(lua, at);
    for (unsigned i = 0; i < STORE_KEYS; i++)
        if (key.len == 1 && key.at[0] == SCRIPT_KEY_LETTERS[i])
            return i;
    return (unsigned)luaL_error(lua, "'%s' is none of the session's keys", key.at);
}

static int give(lua_State *lua, bool is_there, struct str value)
{
    if (is_there)
        lua_pushlstring(lua, value.len ? value.at : "", value.len);
    else
        lua_pushboolean(lua, 0);
    return 1;
}

static int give_number(lua_State *lua, int64_t n)
{
    lua_pushnumber(lua, (lua_Number)n);
    return 1;
}

/* Arguments start at 2: at 1 is the command's name. */

/* One table for all: no script keeps it. */
static int do_time(lua_State *lua, struct commands *c)
{
    int64_t seconds = c->now_ms / 1000;
    lua_pushvalue(lua, lua_upvalueindex(2));
    lua_pushnumber(lua, (lua_Number)seconds);
    lua_rawseti(lua, -2, 1);
    lua_pushnumber(lua, (lua_Number)(c->now_ms % 1000 * 1000));
    lua_rawseti(lua, -2, 2);
    return 1;
}

static int do_get(lua_State *lua, struct commands *c)
{
    struct str value;
    bool is_there = store_get(c->store, key_at(lua, 2), &value);
    return give(lua, is_there, value);
}

/* GETRANGE key 0 last: what a value begins with. */
static int do_getrange(lua_State *lua, struct commands *c)
{
    struct str value = STR_NONE;
    store_get(c->store, key_at(lua, 2), &value);
    luaL_argcheck(lua, luaL_checkinteger(lua, 3) == 0, 3, "only the beginning is given");
    return give(lua, true, str_cut(value, (size_t)luaL_checkinteger(lua, 4) + 1));
}

/* SET key value KEEPTTL | SET key value EX seconds */
static int do_set(lua_State *lua, struct commands *c)
{
    unsigned key = key_at(lua, 2);
    struct str option = text_at(lua, 4);
    store_set(c->store, key, text_at(lua, 3));
    if (str_is(option, "EX"))
        store_expire(c->store, key, luaL_checkinteger(lua, 5) * 1000);
    return 0;
}

static int do_setrange(lua_State *lua, struct commands *c)
{
    unsigned key = key_at(lua, 2);
    size_t from = (size_t)luaL_checkinteger(lua, 3);
    return give_number(lua, (int64_t)store_setrange(c->store, key, from, text_at(lua, 4)));
}

static int do_expire(lua_State *lua, struct commands *c)
{
    return give_number(lua, store_expire(c->store, key_at(lua, 2), luaL_checkinteger(lua, 3) * 1000));
}

static int do_del(lua_State *lua, struct commands *c)
{
    int gone = 0;
    for (int i = 2; i <= lua_gettop(lua); i++)
        gone += store_del(c->store, key_at(lua, i));
    return give_number(lua, gone);
}

static int do_hset(lua_State *lua, struct commands *c)
{
    return give_number(lua, store_hset(c->store, key_at(lua, 2), text_at(lua, 3), text_at(lua, 4)));
}

static int do_hget(lua_State *lua, struct commands *c)
{
    struct str value;
    bool is_there = store_hget(c->store, key_at(lua, 2), text_at(lua, 3), &value);
    return give(lua, is_there, value);
}

static int do_hgetall(lua_State *lua, struct commands *c)
{
    unsigned key = key_at(lua, 2);
    struct str name, value;
    lua_newtable(lua);
    for (int i = 0; store_field(c->store, key, (size_t)i, &name, &value); i++) {
        give(lua, true, name);
        lua_rawseti(lua, -2, 2 * i + 1);
        give(lua, true, value);
        lua_rawseti(lua, -2, 2 * i + 2);
    }
    return 1;
}

static int do_hlen(lua_State *lua, struct commands *c)
{
    return give_number(lua, (int64_t)store_fields(c->store, key_at(lua, 2)));
}

static const struct {
    struct str name;
    int (*run)(lua_State *lua, struct commands *c);
} table[] = {
    {STR("GET"), do_get},           {STR("SET"), do_set},           {STR("TIME"), do_time},
    {STR("SETRANGE"), do_setrange}, {STR("EXPIRE"), do_expire},     {STR("HLEN"), do_hlen},
    {STR("HSET"), do_hset},         {STR("HGET"), do_hget},         {STR("HGETALL"), do_hgetall},
    {STR("DEL"), do_del},           {STR("GETRANGE"), do_getrange},
};

static int redis_call(lua_State *lua)
{
    struct commands *c = lua_touserdata(lua, lua_upvalueindex(1));
    struct str name = text_at(lua, 1);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (str_eq(table[i].name, name))
            return table[i].run(lua, c);
    return luaL_error(lua, "the local ledger has no command '%s'", name.at);
}

void commands_push(lua_State *lua, struct commands *commands)
{
    lua_createtable(lua, 0, 1);
    lua_pushlightuserdata(lua, commands);
    lua_createtable(lua, 2, 0);
    lua_pushcclosure(lua, redis_call, 2);
    lua_setfield(lua, -2, "call");
}

/* JSON as plain Lua tables, and back: what a command prints of an answer is what the daemon wrote. */
#include "arena_case.h"

#include "sandbox/lua_json.h"

#include <lauxlib.h>

static struct str there_and_back(lua_State *L, const char *text, enum lua_json_form form)
{
    lua_json_push(L, value_of(text), form);
    struct str back = json_to_str(arena, lua_json_read(L, lua_gettop(L), "a value", arena));
    lua_pop(L, 1);
    assert_int_equal(lua_gettop(L), 0);
    return back;
}

static lua_State *new_state(bool keeps_order)
{
    lua_State *L = luaL_newstate();
    lua_newtable(L);
    lua_json_constants(L);
    lua_pop(L, 1);
    if (keeps_order)
        lua_json_keep_order(L);
    return L;
}

TEST(an_answer_keeps_its_order_and_its_nulls)
{
    static const char *const texts[] = {
        "{\"z\":1,\"a\":{\"y\":[],\"b\":{}},\"m\":null,\"c\":[1,2.5,\"x\",true]}",
        "[]",
        "{}",
        "{\"k\":9007199254740991,\"n\":-0.25}",
        "[null,1,null]",
        "{\"a\":[{\"b\":null}]}"};
    static const enum lua_json_form forms[] = {LUA_JSON_ANSWER, LUA_JSON_EXACT};
    lua_State *L = new_state(true);
    for (size_t i = 0, k = 0; i < sizeof(texts) / sizeof(texts[0]); i += k, k = !k)
        assert_string_equal(arena_dup(arena, there_and_back(L, texts[i], forms[k])).at, texts[i]);
    lua_close(L);
}

/* An upstream's definition may hold any number: none is shown as another one. */
TEST(a_number_that_a_double_does_not_hold_is_shown_as_written)
{
    lua_State *L = new_state(true);
    static const char numbers[] = "[1e999,9007199254740993,{\"n\":-1e400}]";
    assert_string_equal(arena_dup(arena, there_and_back(L, numbers, LUA_JSON_EXACT)).at, numbers);
    assert_true(str_is(there_and_back(L, "[1e999]", LUA_JSON_ANSWER), "[\"1e999\"]"));
    lua_close(L);
}

TEST(null_is_a_value_of_specs)
{
    lua_State *L = new_state(false);
    assert_true(str_is(there_and_back(L, "{\"a\":null}", LUA_JSON_SPEC), "{\"a\":null}"));
    assert_true(str_is(there_and_back(L, "[null,1]", LUA_JSON_SPEC), "[null,1]"));
    lua_close(L);
}

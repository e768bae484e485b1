/*
 * Our pattern functions against LuaJIT's own, on random patterns and subjects
 * from a small alphabet: the same answer, or both an error.
 */
#include "policy_support.h"

#include "policy/strings.h"

#include <lauxlib.h>
#include <lualib.h>

#define ROUNDS 40000 /* of each function; a million were run by hand */

/*
 * The sandbox's step counter looks at its state, so ours run in a sandbox and
 * the stock ones in a plain state; both hand back one text.
 */
static const char *const drivers[] = {
    "local a, b, c, d = string.find(s, p, i) return show(a, b, c, d)",
    "return show(string.match(s, p, i))",
    "local t = {} for a, b in string.gmatch(s, p) do t[#t + 1] = show(a, b) if #t > 50 then break end end "
    "return "
    "table.concat(t, ';')",
    "local a, n = string.gsub(s, p, r) return show(a, n)",
    "local a, n = string.gsub(s, p, function(x, y) return y or (x == 'a' and 'A') end) return show(a, n)",
    "local a, n = string.gsub(s, p, { a = 'Z', ab = 1, [1] = 'one' }, 3) return show(a, n)",
};

#define DRIVER_COUNT (sizeof(drivers) / sizeof(drivers[0]))

static const char show[] = "local function show(...) local t = {} for i = 1, select('#', ...) do t[i] = "
                           "tostring((select(i, ...))) end return table.concat(t, ',') end ";

static uint64_t seed = 88172645463325252u;

static unsigned random_below(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

static size_t random_text(char *out, size_t max, const char *const *pieces, unsigned count)
{
    size_t len = 0;
    for (unsigned n = random_below(9); n > 0; n--) {
        const char *piece = pieces[random_below(count)];
        size_t bytes = *piece ? strlen(piece) : 1; /* "" stands for a NUL */
        if (len + bytes > max)
            break;
        memcpy(out + len, piece, bytes);
        len += bytes;
    }
    return len;
}

static const char *const subject_pieces[] = {"a", "b", "ab", "c", "1",    " ", "(", ")",
                                             "%", "-", "A",  "",  "\xff", ".", "]"};
static const char *const pattern_pieces[] = {
    "a",      "b",  ".",  "%a",   "%d",   "%s",    "%w",    "%p",   "%l",   "%u",   "%x",   "%c",   "%g",
    "%z",     "%A", "%S", "[ab]", "[^a]", "[a-c]", "[%a-]", "[]]",  "[^]]", "[%]]", "[a-]", "*",    "+",
    "-",      "?",  "(",  ")",    "()",   "(a)",   "(.)",   "(.-)", "%1",   "%2",   "%b()", "%bab", "%f[%w]",
    "%f[^a]", "^",  "$",  "%%",   "%.",   "%",     "[",     "]",    "",     "b*",   "a-",   "c?",   ".+",
};
static const char *const replacement_pieces[] = {"x", "%0", "%1", "%2", "%%", "%", "%a", "", "yy"};

/* One side: pushes the driver's answer or "error". */
static const char *answer(lua_State *L, int function, const struct str *given, int init)
{
    lua_settop(L, 6);
    lua_pushvalue(L, function);
    for (int i = 0; i < 3; i++)
        lua_pushlstring(L, given[i].at, given[i].len);
    lua_pushinteger(L, init);
    if (lua_pcall(L, 4, 1, 0) != 0) {
        const char *why = lua_tostring(L, -1);
        return strstr(why, "too many steps") ? NULL : "error";
    }
    return lua_tostring(L, -1);
}

static const char *quoted(struct str s)
{
    struct buf out = buf_in(arena);
    json_write_string(&out, s);
    return text_of(buf_view(&out));
}

struct both {
    lua_State *stock;
    size_t differing, tooks;
};

static void push_drivers(lua_State *L)
{
    for (size_t i = 0; i < DRIVER_COUNT; i++) {
        struct str source = arena_printf(arena, "%s return function(s, p, r, i) %s end", show, drivers[i]);
        assert_int_equal(luaL_loadstring(L, source.at), 0);
        lua_call(L, 0, 1);
    }
}

/* Inside a sandbox: the plain state's functions are called beside ours. */
static void compare(lua_State *L, void *context)
{
    struct both *both = context;
    char s[64], p[64], r[16];
    lua_getfield(L, LUA_REGISTRYINDEX,
                 "_LOADED"); /* the sandbox's own libraries, out of reach for policies */
    lua_getfield(L, -1, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_getglobal(L, "string");
    static const luaL_Reg ours[] = {{"find", strings_find},
                                    {"match", strings_match},
                                    {"gmatch", strings_gmatch},
                                    {"gsub", strings_gsub},
                                    {NULL, NULL}};
    luaL_setfuncs(L, ours, 0);
    lua_settop(L, 0);
    push_drivers(L);
    for (int round = 0; round < ROUNDS * (int)DRIVER_COUNT; round++) {
        struct str given[3] = {
            {s, random_text(s, sizeof(s), subject_pieces, sizeof(subject_pieces) / sizeof(char *))},
            {p, random_text(p, sizeof(p), pattern_pieces, sizeof(pattern_pieces) / sizeof(char *))},
            {r, random_text(r, sizeof(r), replacement_pieces, sizeof(replacement_pieces) / sizeof(char *))}};
        int driver = round % (int)DRIVER_COUNT, init = (int)random_below(9) - 3;
        const char *stock = answer(both->stock, driver + 1, given, init);
        const char *mine = answer(L, driver + 1, given, init);
        if (mine && strcmp(mine, stock) == 0)
            continue;
        if (both->differing++ < 10)
            print_error("%s\n  s=%s p=%s r=%s i=%d: LuaJIT %s, ours %s\n", drivers[driver], quoted(given[0]),
                        quoted(given[1]), quoted(given[2]), init, stock, mine ? mine : "too many steps");
    }
}

#include "policy/sandbox.h"

static void agrees_with_the_stock_functions(void **state)
{
    (void)state;
    struct both both = {.stock = luaL_newstate()};
    struct sandbox *sandbox = sandbox_new(65536);
    struct sandbox_now now = {.file = "test"};
    struct why why = {""};
    luaL_openlibs(both.stock);
    push_drivers(both.stock);
    if (sandbox_run(sandbox, 60000, &now, compare, &both, &why) != OK)
        fail_msg("%s", why.text);
    assert_int_equal(both.differing, 0);
    sandbox_free(sandbox);
    lua_close(both.stock);
}

static void known_answers(void **state)
{
    (void)state;
    assert_string_equal(eval("('hello world'):find('o w')"), "{\"v\":5}");
    assert_string_equal(eval("('key = value'):match('^(%w+)%s*=%s*(%w+)$')"), "{\"v\":\"key\"}");
    assert_string_equal(eval("(('a,b,,c'):gsub(',', ';'))"), "{\"v\":\"a;b;;c\"}");
    assert_string_equal(eval("(('abc'):gsub('', '-'))"), "{\"v\":\"-a-b-c-\"}");
    assert_string_equal(eval("(('THE (quick) fox'):find('%((%a+)%)'))"), "{\"v\":5}");
    assert_string_equal(eval("('a.b'):find('.', 1, true)"), "{\"v\":2}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(agrees_with_the_stock_functions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(known_answers, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy_lua_pattern", tests, NULL, NULL);
}

/* What a policy must not be able to do to the daemon, to other policies or to later calls. */
#include "policy_support.h"

/* The hook ends with an error (were it not in time, the watchdog would end this process), and the next policy
 * of the same state works. */
static void dies(const char *body, const char *why)
{
    if (check_body(body, "{}") != SAID_BROKE)
        fail_msg("it lives: %s", body);
    assert_has(said.why.text, why);
    assert_has(said.why.text, "p.lua:");
    for (int i = 0; i < 3; i++)
        policy_check(policies_at(loaded, 0), &a_call, value_of("{\"harmless\":true}"), arena, &said);
}

#define LATE   "ran longer than its"
#define MEMORY "out of memory"

static void loops_end(void **state)
{
    (void)state;
    dies("while true do end", LATE);
    dies("repeat until false", LATE);
    dies("::again:: goto again", LATE);
    dies("for i = 1, math.huge do end", LATE);
    dies("local function f() return f() end f()", LATE);
    dies("while true do pcall(function() end) end", LATE);
    dies("while true do pcall(function() while true do end end) end", LATE);
    dies("while true do pcall(error, 'x') end", LATE);
    dies("local function f() while true do pcall(f) end end f()", LATE);
    dies("local t = {} while true do t.x = (t.x or 0) + 1 end", LATE);
    dies("for _ in function() return 1 end do end", LATE);
    dies("for _ in pairs({1}) do while true do end end", LATE);
    dies("local s = 0 while true do s = s + #tostring(s) end", LATE);
    dies("while true do pcall(string.rep, 'x', -1) end", LATE);
}

static void comparators_and_callbacks_end(void **state)
{
    (void)state;
    dies("local t = {} for i = 1, 50 do t[i] = i end table.sort(t, function() while true do end end)", LATE);
    dies("local t = {} for i = 1, 300000 do t[i] = i % 7 end table.sort(t, function(a, b) return true end)",
         LATE);
    dies("('x'):gsub('x', function() while true do end end)", LATE);
    dies("for _ in ('x'):rep(100):gmatch('x') do while true do end end", LATE);
    dies("local s = ('ab'):rep(4000000) local t = {} for i = 1, 4 do t[i] = s .. i end "
         "for i = 5, 4000 do t[i] = t[i % 4 + 1] end table.sort(t)",
         LATE);
}

static void recursion_ends(void **state)
{
    (void)state;
    dies("local function f() return 1 + f() end return f()", "stack overflow");
    dies("local function f(x) return (x:gsub('.', f)) end return f('aaaa')", "nested too deep");
    dies("local function f(x) pcall(string.gsub, x, '.', f) return x:gsub('.', f) end f('aaaa')", "");
    dies("local t = {} local function f() table.sort({3,2,1}, f) return true end f()", "nested too deep");
    dies("local function f(x) return pcall(f, x) end f(1) error('still here')", "");
    dies("local s = ('('):rep(100000) return s:find(s)", "");
    dies("return unpack({}, 1, 1e7)", "too many results");
    dies("return string.char(unpack({}, 1, 1e9))", "");
    dies("return ('x'):rep(100000):byte(1, -1)", "");
}

static void bombs_in_loops_end(void **state)
{
    (void)state;
    dies("local t = {} while true do pcall(function() for i = 1, 1e9 do t[#t + 1] = ('x'):rep(1000) .. i end "
         "end) end",
         LATE);
}

static void memory_is_capped(void **state)
{
    (void)state;
    options.deadline_ms = 20000; /* on a busy machine, memory still runs out first */
    dies("local s = 'x' while true do s = s .. s end", MEMORY);
    dies("return ('x'):rep(1e9)", MEMORY);
    dies("return ('x'):rep(1e15)", "");
    dies("local t = {} for i = 1, 1e9 do t[i] = i end", "");
    dies("local t = {} for i = 1, 1e9 do t[i] = {} end", "");
    dies("local t = {} while true do t = { t, t, t, t } end", "");
    dies("local t = {} for i = 1, 1e9 do t[i .. ''] = i end", "");
    dies("return table.concat({('x'):rep(3e7), ('x'):rep(3e7), ('x'):rep(3e7)})", MEMORY);
    dies("return ('x'):rep(3e7):gsub('x', 'yyyyyyyyyyyyyy')", "");
    dies("return string.format('%s%s', ('x'):rep(5e7), ('y'):rep(5e7))", MEMORY);
    options.deadline_ms = 500; /* this one ends by time */
    dies("local t = {} for i = 1, 1e6 do t[i] = i end while true do table.insert(t, 1, 1) end", LATE);
}

static void memory_comes_back(void **state)
{
    (void)state;
    const struct policy *p =
        with_hook("check", "args",
                  "if args.greedy then local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end "
                  "end");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(check(p, "{\"greedy\":true}"), SAID_BROKE);
        assert_int_equal(check(p, "{}"), SAID_NOTHING);
    }
}

/* What a policy keeps in its file's locals cannot be collected: the state is made anew, and the others go on.
 */
static void hoarders_are_forgotten(void **state)
{
    (void)state;
    options.memory_kb = 4096;
    options.deadline_ms = 20000;
    const struct policy *p =
        load("local kept, data = {}, json [[{\"n\":1}]]\n"
             "return tool 't' { rules = { when { x = 1 } : refuses 'no' }, check = function(args)\n"
             "  if args.hoard then for i = 1, 1e9 do kept[#kept + 1] = ('x'):rep(100) .. i end end\n"
             "  return refuse(#kept .. ' kept, n is ' .. data.n)\nend }");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check(p, "{\"hoard\":true}"), SAID_BROKE);
        assert_has(said.why.text, MEMORY);
        assert_int_equal(check(p, "{}"), SAID_REFUSE);
        assert_true(str_is(said.detail, "0 kept, n is 1"));
    }
}

static void patterns_end(void **state)
{
    (void)state;
    dies("return (('a'):rep(4000)):find(('.-'):rep(4) .. 'b')", "too many steps");
    dies("return (('a'):rep(4000)):match(('a*'):rep(30) .. 'b')", "too many steps");
    dies("for _ in (('a'):rep(4000)):gmatch(('.-'):rep(5) .. 'b') do end", "too many steps");
    dies("return (('a'):rep(4000)):gsub(('.-'):rep(4) .. 'b', '')", "too many steps");
    dies("return (('('):rep(100000)):find('%b()%b()%b()%b()')", "");
    dies("while true do pcall(string.find, ('a'):rep(4000), ('.-'):rep(4) .. 'b') end", LATE);
    dies("return ('x'):find(('x*'):rep(300))", "too complex");
    assert_int_equal(check_body("assert(not (('a'):rep(1e6)):find(('a'):rep(5e5) .. 'b', 1, true))", "{}"),
                     SAID_NOTHING);
    assert_int_equal(check_body("assert(#(('a b '):rep(1e5)):gsub('%s', '') == 2e5)", "{}"), SAID_NOTHING);
}

static void errors_are_sentences(void **state)
{
    (void)state;
    dies("error('no good')", "p.lua:3: no good");
    dies("error('no place', 0)", "p.lua:2: check: no place");
    dies("error({ code = 1 })", "takes a sentence");
    dies("error()", "takes a sentence");
    dies("error(setmetatable({}, { __tostring = function() while true do end end }))",
         "no word or global 'setmetatable'");
    dies("return args.x.y", "attempt to index field 'x'");
    dies("assert(false)", "assertion failed");
    dies("assert(nil, 'wanted')", "wanted");
    dies("return repair { massage = 'x' }", "unknown field 'massage' (did you mean 'message'?)");
    dies("return retreat('x')", "no word or global 'retreat'");
    dies("return refuze('a', 'b')", "(did you mean 'refuse'?)");
    dies("return (' x '):trim()", "there is no string.trim");
    dies("return call.gaol", "did you mean call.goal?");
    dies("return 42", "check returned 42");
    dies("return { message = 'x' }", "check returned a table");
    dies("return ok()", "check returned ok");
}

/* Each of these is out of reach: reading the name is an error, or the way through it fails. */
static void the_rest_of_lua_is_out_of_reach(void **state)
{
    (void)state;
    static const char *const names[] = {
        "io",           "os",      "ffi",      "jit",       "debug",        "load",
        "loadstring",   "dofile",  "loadfile", "require",   "package",      "xpcall",
        "newproxy",     "getfenv", "setfenv",  "coroutine", "_G",           "rawset",
        "setmetatable", "rawget",  "rawlen",   "rawequal",  "getmetatable", "collectgarbage",
        "gcinfo",       "module",  "print",    "_VERSION",  "native",
    };
    static const char *const ways[] = {
        "return ('x').dump(function() end)",
        "return string.dump(check)",
        "return (''):dump()",
        "return math.random()",
        "return math.randomseed(1)",
        "return string.gfind",
        "return table.foreach",
        "return table.maxn",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        dies(text_of(arena_printf(arena, "return %s", names[i])), "no word or global");
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        dies(ways[i], "there is no ");
}

static void bytecode_is_refused(void **state)
{
    (void)state;
    const char *fault = fault_of("\x1bLJ\x02\x02\x10\x02\x00");
    assert_non_null(fault);
    assert_has(fault, "attempt to load chunk with wrong mode");
}

static void shared_things_cannot_be_changed(void **state)
{
    (void)state;
    dies("string.find = nil", "'string' is shared by all policies");
    dies("math.floor = function() return 7 end", "'math' is shared");
    dies("table.insert(string, 'leak')", "table expected");
    dies("table.sort(table)", "table expected");
    dies("always.leak = 1", "'always' is shared");
    dies("str.leak = 1", "attempt to index");
    dies("call.x.y = 1", "there is no call.x");
    dies("leak = 1", "'leak' is set as a global");
    dies("repair = 1", "'repair' is set as a global");
    dies("local r = when { a = 1 } r.needs('x')", "");
}

static void policies_do_not_see_each_other(void **state)
{
    (void)state;
    struct policies_faults faults = {.arena = arena};
    char folder[] = "/tmp/toolgate-policy-XXXXXX";
    assert_non_null(mkdtemp(folder));
    static const char *const texts[2] = {
        "shared = 'one'\nfunction helper() return shared end\nreturn tool 'one' { check = function() return "
        "refuse(helper()) end }",
        "return tool 'two' { check = function() return refuse(helper()) end }"};
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s/%d.lua", folder, i);
        FILE *f = fopen(path, "w");
        fputs(texts[i], f);
        fclose(f);
    }
    assert_int_equal(policies_load(folder, NULL, &loaded, &faults), OK);
    policy_check(policies_at(loaded, 0), &a_call, value_of("{}"), arena, &said);
    assert_int_equal(said.said, SAID_REFUSE);
    assert_true(str_is(said.detail, "one"));
    policy_check(policies_at(loaded, 1), &a_call, value_of("{}"), arena, &said);
    assert_int_equal(said.said, SAID_BROKE);
    assert_has(said.why.text, "no word or global 'helper'");
    for (int i = 0; i < 2; i++)
        remove(text_of(arena_printf(arena, "%s/%d.lua", folder, i)));
    remove(folder);
}

/* Arguments and `call` are copies: what a hook writes into them nobody else sees. */
static void hooks_get_copies(void **state)
{
    (void)state;
    const struct policy *p = load("return tool 't' { check = function(args, call)\n"
                                  "  if args.seen or call.facts.seen then return refuse('leak') end\n"
                                  "  args.seen = true call.facts.seen = true call.goal = nil\n end }");
    const struct json *args = value_of("{\"a\":1}");
    struct policy_call call = a_call;
    call.facts = value_of("{\"n\":1}");
    for (int i = 0; i < 3; i++) {
        policy_check(p, &call, args, arena, &said);
        assert_int_equal(said.said, SAID_NOTHING);
    }
    assert_string_equal(json_of(args), "{\"a\":1}");
    assert_string_equal(json_of(call.facts), "{\"n\":1}");
}

static void loading_is_bounded_too(void **state)
{
    (void)state;
    assert_has(fault_of("while true do end"), LATE);
    assert_has(fault_of("local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end"), MEMORY);
    char nested[1000] = "return ";
    memset(nested + 7, '(', 500);
    assert_has(fault_of(nested), "p.lua:1:");
}

static void the_deadline_is_the_options(void **state)
{
    (void)state;
    options.deadline_ms = 5;
    options.memory_kb = 2048;
    struct policies_faults faults = {.arena = arena};
    struct str source =
        STR("return tool 't' { check = function(args) if args.big then return ('x'):rep(3e6) end "
            "while true do end end }");
    assert_int_equal(policies_load_text(STR_LIT("p.lua"), source, &options, &loaded, &faults), OK);
    assert_int_equal(check(policies_at(loaded, 0), "{}"), SAID_BROKE);
    assert_has(said.why.text, "longer than its 5 ms");
    assert_int_equal(check(policies_at(loaded, 0), "{\"big\":true}"), SAID_BROKE);
    assert_has(said.why.text, "2048 KB");
}

static void cdata_does_no_harm(void **state)
{
    (void)state;
    dies("return (1LL):foo()", "");
    dies("local x = 1LL while true do x = x + 1 end", LATE);
    assert_int_equal(run_body("return { n = 1LL }", "{}"), SAID_BROKE);
    assert_has(said.why.text, "result.n: expected plain data");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loops_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(comparators_and_callbacks_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(recursion_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bombs_in_loops_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_is_capped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hoarders_are_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patterns_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_are_sentences, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_rest_of_lua_is_out_of_reach, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytecode_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shared_things_cannot_be_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(policies_do_not_see_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hooks_get_copies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loading_is_bounded_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_deadline_is_the_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cdata_does_no_harm, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy_sandbox", tests, NULL, NULL);
}

/* Every hook ends in bounded time, memory and C stack. */
#include "policy/policy_hostile.h"

TEST(loops_end)
{
    options.deadline_ms = 10;
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
    dies("local t = {} while true do table.insert(t, 1) table.remove(t, 1) end", LATE);
    dies("while true do select('#', unpack({1, 2, 3})) end", LATE);
    dies("local function f(n) if n > 0 then pcall(f, n - 1) end while true do end end f(50)", LATE);
    dies("local function f() while true do pcall(error, {}) end end pcall(f) pcall(f) while true do end",
         LATE);
}

/* Iterators that never end, and loops over a table that grows. */
TEST(iterators_end)
{
    options.deadline_ms = 10;
    dies("local function more(_, n) return n + 1 end for _ in more, nil, 1 do end", LATE);
    dies("for _ in ('x'):rep(1e6):gmatch('()') do end for _ in ('x'):rep(1e6):gmatch('') do end while true "
         "do end",
         LATE);
    dies("local t = { 1 } for i in ipairs(t) do t[i + 1] = i end", "");
    dies("local function again() for _ in again do end return again() end again()", "");
    dies("for k in next, args.missing do end", "table expected");
}

TEST(comparators_and_callbacks_end)
{
    options.deadline_ms = 10;
    dies("local t = {} for i = 1, 50 do t[i] = i end table.sort(t, function() while true do end end)", LATE);
    dies("local t = {} for i = 1, 300000 do t[i] = i % 7 end table.sort(t, function(a, b) return true end)",
         LATE);
    dies("local t = {} for i = 1, 3000 do t[i] = i end "
         "for _ = 1, 1e9 do table.sort(t, function(a, b) return (a + b) % 3 == 1 end) end",
         LATE);
    dies("local t = { 3, 2, 1 } table.sort(t, function(a, b) error('no order') end)", "p.lua:3: no order");
    dies("local t = { 3, 2, 1, 'x' } table.sort(t)", "attempt to compare");
    dies("local t = { 3, {}, 1 } table.sort(t)", "attempt to compare");
    dies("local t = {} for i = 1, 100 do t[i] = i end "
         "table.sort(t, function(a, b) for i = 1, 100 do t[i] = nil end return a < b end)",
         "");
    dies("local t = { 3, 2, 1 } table.sort(t, function(a, b) t[#t + 1] = #t while true do end end)", LATE);
    dies("local t = { 3, 2, 1 } while true do pcall(table.sort, t, function() error {} end) end", LATE);
    dies("('x'):gsub('x', function() while true do end end)", LATE);
    dies("for _ in ('x'):rep(100):gmatch('x') do while true do end end", LATE);
    dies("('x'):gsub('x', function() error('in a callback') end)", "p.lua:3: in a callback");
    dies("return (('x'):gsub('x', function() return {} end))", "invalid replacement value");
    dies("while true do ('abc'):gsub('.', { a = 'b' }) end", LATE);
    dies("return (('a'):rep(1e4):gsub('(x?)', ('%1'):rep(15e5)))", LATE); /* adds nothing for long */
    dies("return (('a'):rep(1e4):gsub('x?', ('%0'):rep(15e5)))", LATE);
    dies("local s = ('ab'):rep(4000000) local t = {} for i = 1, 4 do t[i] = s .. i end "
         "for i = 5, 4000 do t[i] = t[i % 4 + 1] end table.sort(t)",
         LATE);
}

TEST(recursion_ends)
{
    options.deadline_ms = POLICY_DEADLINE_MS;
    dies("local function f() return 1 + f() end return f()", "stack overflow");
    dies("local function f(x) return (x:gsub('.', f)) end return f('aaaa')", "nested too deep");
    dies("local function f(x) pcall(string.gsub, x, '.', f) return x:gsub('.', f) end f('aaaa')", "");
    dies("local t = {} local function f() table.sort({3,2,1}, f) return true end f()", "nested too deep");
    dies("local function f(x) return pcall(f, x) end f(1) error('still here')", "");
    dies("local s = ('('):rep(100000) return s:find(s)", "");
    dies("return unpack({}, 1, 1e7)", "too many results");
    dies("return string.char(unpack({}, 1, 1e9))", "");
    dies("return ('x'):rep(100000):byte(1, -1)", "");
    dies("local f f = function(...) return f(1, ...) end f()", "");
    dies("local function f(t) return table.sort({ 2, 1 }, function() return f() end) end f()",
         "nested too deep");
    dies("local function f(x) return pcall(string.gsub, x, '.', f) end f('a') "
         "local function g() return pcall(table.sort, { 2, 1 }, g) end g() error('still here')",
         "p.lua:3: still here");
    dies("local t = {} for i = 1, 1e5 do t = { t } end return repair { message = 'x', suggest = t }",
         "nested deeper than");
    dies("local t = {} t.t = t return repair { message = 'x', suggest = t }", "no cycles");
}

TEST(bombs_in_loops_end)
{
    options.deadline_ms = POLICY_DEADLINE_MS;
    dies("local t = {} while true do pcall(function() for i = 1, 1e9 do t[#t + 1] = ('x'):rep(1000) .. i end "
         "end) end",
         LATE);
    dies("while true do pcall(function() local s = 'x' while true do s = s .. s end end) end", LATE);
}

TEST(memory_is_capped)
{
    options.memory_kb = 8192;
    dies("local s = 'x' while true do s = s .. s end", MEMORY);
    dies("return ('x'):rep(1e9)", MEMORY);
    dies("return ('x'):rep(1e15)",
         "string.rep: out of memory: 1e+15 bytes asked for, and all policies together "
         "may use 8192 KB (config limits.policy_kb)");
    dies("return ('x'):rep(math.huge)", MEMORY);
    dies("return ('x'):rep(2^53, 'y')", MEMORY);
    dies("return ('x'):rep(4e6, ('y'):rep(1e4))", MEMORY);
    dies("return ('x'):rep(0/0)", "a count expected, got nan");
    dies("local s = 'x' for i = 1, 64 do s = s:gsub('.', '%0%0') end", "");
    dies("local s = ('x'):rep(1e6) return s:gsub('.', function() return s end)", MEMORY);
    dies("return string.format('%99999d', 1)", "");
    dies("return string.format('%.99999f', 1)", "");
    dies("local t = {} for i = 1, 1e9 do t[i] = i end", "");
    dies("local t = {} for i = 1, 1e9 do t[i] = {} end", "");
    dies("local t = {} while true do t = { t, t, t, t } end", "");
    dies("local t = {} for i = 1, 1e9 do t[i .. ''] = i end", "");
    dies("return table.concat({('x'):rep(3e6), ('x'):rep(3e6), ('x'):rep(3e6)})", MEMORY);
    dies("return ('x'):rep(3e6):gsub('x', 'yyyyyyyyyyyyyy')", "");
    dies("return string.format('%s%s', ('x'):rep(4e6), ('y'):rep(5e6))", MEMORY);
    options.deadline_ms = 50; /* these end by time */
    dies("local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 1) t[#t] = nil end",
         LATE);
    dies("local t = {} for i = 1, 1e5 do t[i] = i end while true do table.remove(t, 1) t[#t + 1] = 1 end",
         LATE);
}

TEST(memory_is_freed)
{
    options.memory_kb = 8192;
    const struct policy *p =
        with_hook("check", "args",
                  "if args.greedy then local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end "
                  "end");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(check(p, "{\"greedy\":true}"), OUTCOME_POLICY_ERROR);
        assert_int_equal(check(p, "{}"), OUTCOME_PASS);
    }
}

/* A call's garbage does not affect other policies, nor later calls of the same one. */
TEST(memory_of_one_call_is_there_for_the_next)
{
    options.memory_kb = 8192;
    const struct policy *p = with_hook("check", "args",
                                       "if args.many then local t = {} for i = 1, args.many do t[i] = { i } "
                                       "end else return #('x'):rep(args.long) > 0 "
                                       "and nil end");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(check(p, "{\"many\":50000}"), OUTCOME_PASS);
        assert_int_equal(check(p, "{\"long\":1500000}"), OUTCOME_PASS);
    }
}

TEST(patterns_end)
{
    dies("return (('a'):rep(4000)):find(('.-'):rep(4) .. 'b')", "too many steps");
    dies("return (('a'):rep(4000)):match(('a*'):rep(30) .. 'b')", "too many steps");
    dies("for _ in (('a'):rep(4000)):gmatch(('.-'):rep(5) .. 'b') do end", "too many steps");
    dies("return (('a'):rep(4000)):gsub(('.-'):rep(4) .. 'b', '')", "too many steps");
    dies("return (('('):rep(100000)):find('%b()%b()%b()%b()')", "");
    dies("return ('x'):find(('x*'):rep(300))", "too complex");
    assert_int_equal(check_body("assert(not (('a'):rep(1e6)):find(('a'):rep(5e5) .. 'b', 1, true))", "{}"),
                     OUTCOME_PASS);
    assert_int_equal(check_body("assert(#(('a b '):rep(1e5)):gsub('%s', '') == 2e5)", "{}"), OUTCOME_PASS);
    options.deadline_ms = 50;
    dies("while true do pcall(string.find, ('a'):rep(4000), ('.-'):rep(4) .. 'b') end", LATE);
}

/* LuaJIT's own pcall wrote beyond its stack. */
TEST(nested_pcalls_end)
{
    assert_int_equal(
        check_body("assert(select('#', pcall(function(...) return ... end, 1, nil, nil)) == 4)", "{}"),
        OUTCOME_PASS);
    assert_int_equal(check_body("local ok, why = pcall(error, { 1 }) assert(not ok and why[1] == 1)", "{}"),
                     OUTCOME_PASS);
    assert_int_equal(
        check_body("local p = {} for i = 1, 20 do p[i] = pcall end assert(pcall(unpack(p)))", "{}"),
        OUTCOME_PASS);
    dies("pcall()", "bad argument #1");
    assert_int_equal(
        check_body("local p = {} for i = 1, 7000 do p[i] = pcall end local r = { pcall(unpack(p)) } "
                   "assert(r[#r]:find('too deep') or r[#r]:find('overflow'), r[#r])",
                   "{}"),
        OUTCOME_PASS);
}

/* An error value need not be a string, and a string may be long, empty or binary. */
TEST(error_objects_do_no_harm)
{
    dies("error({ code = 1 })", "the error raised is a table: error(…) takes a string");
    dies("local t = {} t.t = t error(t)", "takes a string");
    dies("error(function() while true do end end)", "takes a string");
    dies("error(string)", "takes a string");
    dies("error(call)", "takes a string");
    dies("error(null)", "takes a string");
    dies("error(12)", "12");
    dies("error()", "takes a string");
    dies("error('')", "p.lua:3: ");
    dies("error(('x'):rep(1e6))", "xxxx");
    dies("error(('x'):rep(1e6), 0)", "p.lua:2: check: xxxx");
    dies("error('a\\0b')", "p.lua:3: a");
    dies("error('%s%n%d')", "p.lua:3: %s%n%d");
    dies("error('p.lua:999: not here')", "p.lua:3: p.lua:999: not here");
    dies("error(select(2, pcall(error, { {} })))", "takes a string");
    dies("local ok, e = pcall(error, ('x'):rep(1e6)) error(e .. e)", "xxxx");
    dies("local function f(n) local ok, e = pcall(f, n + 1) error(tostring(e) .. n, 0) end f(1)", "");
}

TEST(loading_is_bounded_too)
{
    assert_has(fault_of("while true do end"), "took longer to load than the 200 ms");
    options.memory_kb = 8192;
    assert_has(fault_of("local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end"), MEMORY);
    char nested[1000] = "return ";
    memset(nested + 7, '(', 500);
    assert_has(fault_of(nested), "p.lua:1:");
}

TEST(the_deadline_is_the_options)
{
    options.deadline_ms = 5;
    options.memory_kb = 2048;
    struct policy_load_errors faults = {.arena = arena};
    struct str source =
        STR("return tool 't' { check = function(args) if args.big then return ('x'):rep(3e6) end "
            "while true do end end }");
    assert_int_equal(policy_set_load_string(STR_LIT("p.lua"), source, &options, &loaded, &faults), OK);
    assert_int_equal(check(policy_set_at(loaded, 0), "{}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "longer than its 5 ms");
    assert_int_equal(check(policy_set_at(loaded, 0), "{\"big\":true}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "2048 KB");
}

TEST(cdata_does_no_harm)
{
    options.deadline_ms = POLICY_DEADLINE_MS;
    dies("return (1LL):foo()", "");
    dies("local x = 1LL while true do x = x + 1 end", LATE);
    assert_int_equal(run_body("return { n = 1LL }", "{}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "result.n: expected plain data");
}

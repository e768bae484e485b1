/* The static check finds unknown names when a file loads, also in code that never runs. */
#include "policy/policy_hostile.h"

/* Returns every error in this source, joined by newlines. */
static const char *all_faults(const char *source)
{
    struct policy_load_errors faults = {.arena = arena};
    struct buf out = buf_in(arena);
    policy_set_free(loaded);
    loaded = NULL;
    policy_set_load_string(STR_LIT("some/p.lua"), str_of(source), &options, &loaded, &faults);
    for (size_t i = 0; i < faults.count; i++)
        buf_printf(&out, "%s" STR_FMT, i ? "\n" : "", STR_ARG(faults.list[i]));
    return text_of(buf_view(&out));
}

TEST(mistyped_globals_are_found)
{
    is_refused("return tol 't' {}");
    is_refused("return tool 't' {\n check = function(args)\n  return false or\n   refuze('a', 'b')\n end }");
    is_refused("local function later()\n return function()\n  return lenght end end\nreturn tool 't' {}");
    is_refused("function all_days() end\nreturn tool 't' { run = function() return al_days() end }");
    is_refused("return tool 't' { check = function() if nil then strin.x.y() end end }");
    is_refused("return tool 't' { examples = { { 'x', args = { a = nul }, gives = 'pass' } } }");
    golden_check_rows("load", "static check: mistyped globals");
}

TEST(mistyped_fields_of_libraries_are_found)
{
    is_refused("return tool 't' { check = function(a)\n return string.fnid(a.x, 'y') end }");
    is_refused("return tool 't' { check = function(a)\n\n table.isnert(a, 1) end }");
    body_is_refused("return math.foo");
    body_is_refused("return math.random(6)");
    body_is_refused("return bit.bandd(1, 2)");
    body_is_refused("return string['frmat']('x')");
    is_refused("return tool 't' { rules = { always : ned 'x' } }");
    golden_check_rows("load", "static check: mistyped members of libraries");
}

TEST(forgotten_locals_are_found)
{
    is_refused("return tool 't' { check = function(args)\n total = 1\n end }");
    is_refused("return tool 't' { check = function() for i = 1, 2 do last = i end end }");
    is_refused("return tool 't' { check = function() function inner() end end }");
    is_refused("local function set() later = 1 end set() return tool 't' {}");
    is_refused("return tool 't' { check = function() repair = 1 end }");
    golden_check_rows("load", "static check: forgotten locals");
}

TEST(mistyped_fields_of_call_are_found)
{
    body_is_refused("\n\n return call.goall");
    is_refused("return tool 't' { run = function(a, c)\n return c.histroy end }");
    is_refused("return gateway { prepare_tools = function(defs, call) return call.xyzzy and defs end }");
    is_refused("return tool 't' { prepare = function(def, call) if def.x then return call['usr'] end end }");
    golden_check_rows("load", "static check: mistyped members of call");
}

/* Code that may be right is not an error. */
TEST(correct_code_is_accepted)
{
    static const char *const right[] = {
        "local string = { fnid = 1 } return tool 't' { check = function() return string.fnid and nil end }",
        "local s = string return tool 't' { check = function(a) if a.never then return s.fnid end end }",
        "helper = 1 return tool 't' { check = function() if not helper then error 'x' end end }",
        "function one() return two() end function two() end return tool 't' { check = function() return "
        "one() end }",
        "local call = { goall = 1 } return tool 't' { check = function(a, b) if not call.goall then error "
        "'x' end end }",
        "return tool 't' { check = function(a, call) call.mine = 1 if call.mine ~= 1 then error 'x' end end "
        "}",
        "return tool 't' { check = function(a, call) call = { goall = 1 } if call.goall ~= 1 then error 'x' "
        "end end }",
        "return tool 't' { check = function(a, call) local f = function() call = { goall = 1 } end f() "
        "if call.goall ~= 1 then error 'x' end end }",
        "return tool 't' { check = function(call, a) if call.goall then error 'x' end end }",
        "return tool 't' { check = function(a, ...) local call = ... if a.never then return call.goall end "
        "end }",
        "return tool 't' { check = function(a) local b = { goall = 1 } if b.goall ~= 1 then error 'x' end "
        "end }",
        "return tool 't' { check = function(a, call) for _, call in ipairs { { goall = 1 } } do "
        "if call.goall ~= 1 then error 'x' end end end }",
        "return tool 't' { check = function(a) local s = a.x or string if a.x then return s.fnid end end }",
        "return tool 't' { check = function(a) if a.x then return (a.x and string or math).fnid end end }",
        "return tool 't' { check = function(a) if a.x then return (a.y or string).fnid end end }",
        "return tool 't' { check = function(a, b, call) if call then error 'x' end end }",
        "return tool 't' { check = function(a, call) a.goall = call a, call = call, { x = 1 } "
        "if call.x ~= 1 then error 'x' end end }",
    };
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        const struct policy *p = load(right[i]);
        if (check(p, "{}") != OUTCOME_PASS)
            fail_msg("%s: %s", right[i], said.why.text);
    }
}

TEST(all_errors_of_a_file_are_reported_at_once)
{
    assert_string_equal(
        all_faults("local x = strng\nreturn tool 't' {\n  check = function(args)\n    total = lenght(x)\n"
                   "    return string.fnid(x) or strng or strng\n  end }"),
        "some/p.lua:1: there is no builtin or global 'strng' (did you mean 'string'?)\n"
        "some/p.lua:4: there is no builtin or global 'lenght'\n"
        "some/p.lua:4: 'total' is set as a global inside of a function: a policy keeps nothing "
        "between calls; write local total\n"
        "some/p.lua:5: there is no string.fnid (did you mean 'find'?)\n"
        "some/p.lua:5: there is no builtin or global 'strng' (did you mean 'string'?)");
    struct buf many = buf_in(arena);
    for (int i = 1; i <= 20; i++)
        buf_printf(&many, "local a = zzz%d\n", i);
    buf_text(&many, "return tool 't' {}");
    assert_has(all_faults(text_of(buf_view(&many))), "some/p.lua:8: there is no builtin or global 'zzz8'\n"
                                                     "some/p.lua: and 12 more");
    assert_string_equal(all_faults("error 'a\\nb'"), "some/p.lua:1: a\nb");
}

/* The error has the complete path, even if Lua would truncate it. */
TEST(long_paths_are_complete)
{
    struct policy_load_errors faults = {.arena = arena};
    char name[200];
    snprintf(name, sizeof(name), "%0150d/p.lua", 7);
    assert_int_equal(
        policy_set_load_string(str_of(name), STR_LIT("local a = zzz\nreturn yyy"), NULL, &loaded, &faults),
        ERR_POLICY);
    assert_int_equal(faults.count, 2);
    assert_true(str_starts(faults.list[0], arena_printf(arena, "%s:1: there is no", name).at));
    assert_true(str_starts(faults.list[1], arena_printf(arena, "%s:2: there is no", name).at));
}

TEST(a_second_value_is_refused)
{
    is_refused("local a = 1\nreturn tool 't' {}, tool 'u' {}");
    is_refused("return tool 't' {}, nil");
    golden_check_rows("load", "static check: a second value");
}

/* The reader of bytecode handles everything that the compiler emits: long files, many constants, deep
 * functions. */
TEST(every_form_of_code_is_read)
{
    struct buf text = buf_in(arena);
    buf_text(&text,
             "local t = { 1, 2.5, -3, 'x', true, false, a = 1e300, [7] = 'y', [2.5] = 1, [true] = false }\n"
             "local i, u, c = 1LL, 2ULL, 3i\n");
    for (int i = 0; i < 700; i++)
        buf_printf(
            &text,
            "do local a%d = { 'k%d', %d, %d.5, -%d } local f = function() return a%d, 'k%d', %d.25 end end\n",
            i, i, i * 70000, i, i + 40000, i, i, i);
    for (int i = 0; i < 150; i++)
        buf_text(&text, "local function f() ");
    for (int i = 0; i < 150; i++)
        buf_text(&text, "return f end\n");
    size_t good = text.len;
    buf_text(&text, "return tool 't' {}");
    load(text_of(buf_view(&text)));
    text.len = good;
    buf_text(&text, "\nreturn tol 't' {}");
    assert_has(fault_of(text_of(buf_view(&text))), "p.lua:854: there is no builtin or global 'tol'");
}

/* What a policy cannot access: the rest of Lua, addresses, other policies, shared libraries. */
#include "folder.h"
#include "policy/policy_hostile.h"
#include "policy/reference_support.h"

#include <unistd.h>

/* The hook fails with the error in the golden text. */
static void breaks(const char *body)
{
    assert_int_equal(check(with_hook("check", "args, call", body), "{}"), OUTCOME_POLICY_ERROR);
    golden_row(body, said.why.text);
    dies(body, "");
}

TEST(errors_are_sentences)
{
    breaks("error('no good')");
    breaks("error('no place', 0)");
    breaks("return args.x.y");
    breaks("assert(false)");
    breaks("assert(nil, 'wanted')");
    breaks("local mistyped = { massage = 'x' } return repair(mistyped)");
    breaks("return (' x '):trim()");
    breaks("local c = call return c.gaol");
    breaks("return 42");
    breaks("return { message = 'x' }");
    breaks("return ok()");
    golden_check_rows("load", "policy fault: errors are sentences");
}

/* Reading the name is an error when the file loads, or when a computed name is read. */
TEST(the_rest_of_lua_is_out_of_reach)
{
    static const char *const names[] = {
        "io",         "os",      "ffi",       "jit",          "debug",          "load",
        "loadstring", "dofile",  "loadfile",  "package",      "xpcall",         "newproxy",
        "getfenv",    "setfenv", "coroutine", "_G",           "rawset",         "setmetatable",
        "rawget",     "rawlen",  "rawequal",  "getmetatable", "collectgarbage", "gcinfo",
        "module",     "print",   "_VERSION",  "native",       "_ENV",
    };
    static const char *const ways[] = {
        "local s = args.x or string return s.dump(function() end)",
        "return ('x').dump(function() end)",
        "return (''):dump()",
        "local m = args.x or math return m.random()",
        "local m = args.x or math return m.randomseed(1)",
        "local s = args.x or string return s.gfind",
        "local t = args.x or table return t.foreach",
        "local t = args.x or table return t.maxn",
        "local t = args.x or table return t.foreachi",
        "local t = args.x or table return t.move",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *quoted = arena_printf(arena, "'%s'", names[i]).at;
        assert_has(
            fault_of(
                arena_printf(arena, "return tool 't' { check = function() return %s end }", names[i]).at),
            quoted);
        assert_has(fault_of(arena_printf(arena, "if false then %s = 1 end local x = %s.y return tool 't' {}",
                                         names[i], names[i])
                                .at),
                   quoted);
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        dies(ways[i], "there is no ");
}

TEST(bytecode_is_refused)
{
    const char *fault = fault_of("\x1bLJ\x02\x02\x10\x02\x00");
    assert_non_null(fault);
    assert_has(fault, "attempt to load chunk with wrong mode");
}

TEST(shared_things_cannot_be_changed)
{
    breaks("string.find = nil");
    breaks("math.floor = function() return 7 end");
    breaks("string.leak = 1");
    breaks("table.insert(string, 'leak')");
    breaks("table.sort(table)");
    breaks("table.remove(math)");
    breaks("next(string)");
    breaks("for _ in pairs(bit) do end");
    breaks("always.leak = 1");
    breaks("str.leak = 1");
    breaks("local c = call c.x.y = 1");
    breaks("local s = 'text' s.leak = 1");
    dies("local r = when { a = 1 } r.needs('x')", "");
    breaks("local r = when { a = 1 } r.nees 'x'");
    golden_check_rows("load", "policy fault: shared things cannot be changed");
}

/* No word, including future ones, is a table that a policy could write to. */
TEST(no_word_can_be_changed)
{
    reference_read();
    const struct vocabulary_word *words = reference.words;
    size_t count = reference.word_count;
    for (size_t i = 0; i < count; i++) {
        const char *name = words[i].name;
        const char *fault = fault_of(arena_printf(arena, "%s.leak = 1 return tool 't' {}", name).at);
        if (!fault)
            fail_msg("the word '%s' can be changed", name);
        fault = fault_of(arena_printf(arena, "%s = 1 return tool 't' {}", name).at);
        if (!fault && !strstr(words[i].signature, "rule : "))
            fail_msg("the word '%s' can be set", name);
    }
}

static const char *const addresses[] = {
    "{}",
    "function() end",
    "check",
    "string",
    "string.find",
    "always",
    "call",
    "args",
    "null",
    "1LL",
    "when { a = 1 }",
    "('x'):gmatch('x')",
    "FILES",
    "select(2, pcall(error, {}))",
    "(ok())",
    "error",
    "pcall",
};

/* A string that a policy makes is the same on every worker: tables and functions are shown by their type
 * only.
 */
TEST(addresses_are_not_shown)
{
    static const char *const ways[] = {
        "tostring(v)",
        "string.format('%s', v)",
        "string.format('%-30s|%10.4s', v, v)",
        "string.format('\\0%s', v)",
        "select(2, pcall(string.format, '%d', v))",
        "select(2, pcall(string.format, '%q', v))",
        "select(2, pcall(string.format, '%p', v))",
        "select(2, pcall(function() return 'x' .. v end))",
        "select(2, pcall(function() return v + 1 end))",
        "select(2, pcall(function() return v < v end))",
        "select(2, pcall(function() return v.a.b end))",
        "select(2, pcall(function() return v() end))",
        "select(2, pcall(table.concat, { v }))",
        "select(2, pcall(string.rep, v, 2))",
        "select(2, pcall(string.gsub, 'x', 'x', function() return v end))",
        "select(2, pcall(refuse, v, v))",
        "select(2, pcall(tonumber, v))",
        "select(2, pcall(assert, false, v))",
        "select(2, pcall(time, v))",
        "select(2, pcall(next, v, v))",
    };
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
            const char *source =
                arena_printf(arena,
                             "local FILES = { 'a' }\nlocal function check() return FILES end\n"
                             "return tool 't' { run = function(args, call)\n"
                             "local v = %s\nreturn { said = tostring((%s)) }\nend }",
                             addresses[i], ways[w])
                    .at;
            policy_run(load(source), &a_call, value_of("{}"), arena, &said);
            const char *told = said.kind == OUTCOME_POLICY_ERROR ? said.why.text : json_of(said.value);
            if (strstr(told, "0x") || strstr(told, "builtin"))
                fail_msg("%s of %s: %s", ways[w], addresses[i], told);
        }
}

TEST(types_are_shown)
{
    assert_string_equal(
        eval("('%s %s %5.2f|%-4s|%%|%q|%s %s'):format({}, tostring, 2.25, 'x', 'q', nil, true)"),
        "{\"v\":\"table function  2.25|x   |%|\\\"q\\\"|nil true\"}");
    assert_string_equal(eval("tostring(call) .. tostring(null) .. tostring(string) .. tostring(-0.5)"),
                        "{\"v\":\"tablenulluserdata-0.5\"}");
    golden_row("('%p'):format({})", eval("('%p'):format({})"));
    golden_row("('%5'):format(1)", eval("('%5'):format(1)"));
    assert_has(eval("('%099d'):format(1)"), "0001");
    golden_row("('%100d'):format(1)", eval("('%100d'):format(1)"));
    golden_row("('%d'):format({})", eval("('%d'):format({})"));
    golden_row("('%s'):format()", eval("('%s'):format()"));
    golden_row("table.concat({ 1, {} })", eval("table.concat({ 1, {} })"));
    golden_check_rows("load", "policy fault: string functions");
}

TEST(policies_do_not_see_each_other)
{
    struct policy_load_errors faults = {.arena = arena};
#define TWO "return tool 'two' { check = function() return refuse(helper()) end }"
    make_folder();
    write_file("0.lua", "shared = 'one'\nfunction helper() return shared end\n"
                        "return tool 'one' { check = function() return refuse(helper()) end }");
    write_file("1.lua", TWO);
    assert_int_equal(policy_set_load(folder, NULL, &loaded, &faults), ERR_POLICY);
    assert_int_equal(faults.count, 1);
    assert_has(text_of(faults.list[0]), "1.lua:1: there is no builtin or global 'helper'");
    write_file("1.lua", "local never = false if never then helper = 1 end\n" TWO);
    assert_int_equal(policy_set_load(folder, NULL, &loaded, &faults), OK);
    policy_check(policy_set_at(loaded, 0), &a_call, value_of("{}"), arena, &said);
    assert_int_equal(said.kind, OUTCOME_REFUSE);
    assert_true(str_is(said.detail, "one"));
    policy_check(policy_set_at(loaded, 1), &a_call, value_of("{}"), arena, &said);
    assert_int_equal(said.kind, OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "1.lua:2: there is no builtin or global 'helper'");
    remove_folder();
}

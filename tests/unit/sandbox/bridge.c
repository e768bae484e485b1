/* JSON to Lua and back: unchanged values keep their bytes, and values that JSON does not have are refused. */
#include "policy/policy_support.h"
#include "golden.h"

static const char *const odd =
    "{ \"id\" : 9007199254740993, \"z\":1.10 ,\"big\":1e400,\"a\":[ ], \"o\":{ }, \"n\":null,"
    "\"s\":\"caf\\u00e9\",\"deep\":[{\"y\":-0,\"x\":[[[]]]}],\"t\":true}";

TEST(untouched_values_are_the_same)
{
    const struct json *args = value_of(odd);
    policy_normalise(with_hook("normalise", "args", "return args"), &a_call, args, arena, &said);
    assert_int_equal(said.kind, OUTCOME_PASS);
    assert_ptr_equal(said.args, args);
    policy_normalise(with_hook("normalise", "args", "local x = args.deep[1].x"), &a_call, args, arena, &said);
    assert_ptr_equal(said.args, args);
}

TEST(a_change_leaves_the_rest_as_it_was)
{
    assert_string_equal(normalised("args.t = false return args", odd),
                        "{\"id\":9007199254740993,\"z\":1.10,\"big\":1e400,\"a\":[ ],\"o\":{ "
                        "},\"n\":null,\"s\":\"caf\\u00e9\","
                        "\"deep\":[{\"y\":-0,\"x\":[[[]]]}],\"t\":false}");
    assert_string_equal(
        normalised("args.t = nil args.new = 1 args.also = 'x' return args", "{\"t\":1,\"z\":1.10}"),
        "{\"z\":1.10,\"also\":\"x\",\"new\":1}");
    assert_string_equal(
        normalised("args.deep[1].y = 5 return args", "{\"deep\":[{\"y\":-0,\"x\":1.10}],\"k\":1.0}"),
        "{\"deep\":[{\"y\":5,\"x\":1.10}],\"k\":1.0}");
    assert_string_equal(normalised("return { only = args.a }", "{\"a\":{\"b\":1},\"c\":2}"),
                        "{\"only\":{\"b\":1}}");
}

TEST(numbers_beyond_a_double_keep_their_text_when_moved)
{
    assert_string_equal(normalised("args.copy, args.id = args.id, nil", "{\"id\":9007199254740993}"),
                        "{\"copy\":9007199254740993}");
    assert_string_equal(normalised("args.copy = args.big", "{\"big\":1e400}"),
                        "{\"big\":1e400,\"copy\":1e400}");
    assert_has(normalised("args.copy = args.a", "{\"a\":9007199254740993,\"b\":9007199254740992}"),
               "arguments.copy: several numbers of the input are equal in Lua");
    assert_string_equal(
        normalised("args.c = { args.a }", "{\"a\":9007199254740992,\"b\":9007199254740992.0}"),
        "{\"a\":9007199254740992,\"b\":9007199254740992.0,\"c\":[9007199254740992]}");
    assert_string_equal(eval("123456789012345"), "{\"v\":123456789012345}");
    assert_string_equal(eval("-5"), "{\"v\":-5}");
    assert_string_equal(eval("0.1"), "{\"v\":0.1}");
    assert_string_equal(eval("1/3"), "{\"v\":0.3333333333333333}");
    golden_row("1/0", eval("1/0"));
    golden_row("0/0", eval("0/0"));
    golden_check_rows("load", "values from Lua: numbers");
}

TEST(empty_tables_keep_their_json_type)
{
    assert_string_equal(normalised("table.remove(args.l) args.o.x = nil", "{\"l\":[1],\"o\":{\"x\":1}}"),
                        "{\"l\":[],\"o\":{}}");
    assert_string_equal(normalised("args.a, args.b = args.b, args.a", "{\"a\":[],\"b\":{}}"),
                        "{\"a\":{},\"b\":[]}");
    assert_string_equal(normalised("return {}", "{\"a\":1}"), "{}");
    assert_string_equal(eval("{}"), "{\"v\":[]}");
    assert_string_equal(eval("array {}"), "{\"v\":[]}");
    assert_int_equal(run_body("return {}", "{}"), OUTCOME_VALUE);
    assert_string_equal(json_of(said.value), "{}");
    assert_int_equal(run_body("return array {}", "{}"), OUTCOME_VALUE);
    assert_string_equal(json_of(said.value), "[]");
    assert_int_equal(run_body("return nil", "{}"), OUTCOME_VALUE);
    assert_string_equal(json_of(said.value), "null");
}

TEST(values_without_a_json_equivalent_are_refused)
{
    golden_row("{ 1, nil, 3 }", eval("{ 1, nil, 3 }"));
    golden_row("{ 1, x = 2 }", eval("{ 1, x = 2 }"));
    golden_row("{ [1.5] = 2 }", eval("{ [1.5] = 2 }"));
    golden_row("{ [true] = 2 }", eval("{ [true] = 2 }"));
    golden_row("{ a = { function() end } }", eval("{ a = { function() end } }"));
    golden_row("call", eval("call"));
    golden_row("{ refuse 'x' }", eval("{ refuse 'x' }"));
    assert_int_equal(run_body("local t = {} t.a = { b = t } return t", "{}"), OUTCOME_POLICY_ERROR);
    golden_row("a table that holds itself", said.why.text);
    assert_int_equal(run_body("local t = {} for i = 1, 200 do t = { t } end return t", "{}"),
                     OUTCOME_POLICY_ERROR);
    golden_row("200 levels", said.why.text);
    assert_int_equal(run_body("local t = { 1 } for i = 1, 40 do t = { t, t } end return t", "{}"),
                     OUTCOME_POLICY_ERROR);
    golden_row("2^40 values", said.why.text);
    assert_int_equal(normalise(with_hook("normalise", "args", "return { 1, 2 }"), "{}"),
                     OUTCOME_POLICY_ERROR);
    golden_row("normalise: return { 1, 2 }", said.why.text);
    assert_int_equal(normalise(with_hook("normalise", "args", "return 5"), "{}"), OUTCOME_POLICY_ERROR);
    golden_check_rows("load", "values from Lua: what JSON cannot hold");
}

TEST(texts_are_utf8)
{
    assert_string_equal(eval("('caf\\195\\169'):sub(1, 4)"), "{\"v\":\"caf\xEF\xBF\xBD\"}");
    assert_string_equal(eval("'\\255a\\254\\195\\169'"), "{\"v\":\"\xEF\xBF\xBD"
                                                         "a\xEF\xBF\xBD\xC3\xA9\"}");
    golden_row("{ ['\\255'] = 1 }", eval("{ ['\\255'] = 1 }"));
    golden_check_rows("load", "values from Lua: UTF-8");
}

TEST(null_is_a_value)
{
    assert_string_equal(
        normalised("if args.a == null and args.b == nil then args.b = null end", "{\"a\":null}"),
        "{\"a\":null,\"b\":null}");
    assert_string_equal(eval("tostring(null)"), "{\"v\":\"null\"}");
    assert_string_equal(eval("{ null, null }"), "{\"v\":[null,null]}");
}

TEST(definitions_keep_their_bytes_when_they_move)
{
    load("return gateway { prepare_tools = function(defs)\n  local shown = {}\n"
         "  for _, def in ipairs(defs) do if def.name ~= 'a' then shown[#shown + 1] = def end end\n"
         "  shown[1].description = 'new'\n  return shown\nend }");
    const struct json *defs = value_of("[{\"name\":\"a\",\"s\":{}},{\"z\":1.10,\"name\":\"b\","
                                       "\"description\":\"old\",\"s\":{\"y\": {},\"x\":[]}},"
                                       "{\"q\": 1, \"name\":\"c\"}]");
    policy_prepare(policy_set_gateway(loaded), &a_call, defs, arena, &said);
    assert_int_equal(said.kind, OUTCOME_PASS);
    assert_string_equal(json_of(said.value),
                        "[{\"z\":1.10,\"name\":\"b\",\"description\":\"new\",\"s\":{\"y\": {},\"x\":[]}},"
                        "{\"q\": 1, \"name\":\"c\"}]");
    load("return gateway { prepare_tools = function(defs) return nil end }");
    policy_prepare(policy_set_gateway(loaded), &a_call, defs, arena, &said);
    assert_true(said.kind == OUTCOME_PASS && !said.value);
    load("return gateway { prepare_tools = function(defs) return {} end }");
    policy_prepare(policy_set_gateway(loaded), &a_call, defs, arena, &said);
    assert_string_equal(json_of(said.value), "[]");
}

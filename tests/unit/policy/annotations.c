/* LuaCATS annotations above run: the schema that they produce, and the errors in them. */
#include "policy/policy_support.h"
#include "golden.h"

static const char *source_of(const char *above, const char *fields)
{
    return arena_printf(arena, "return tool 't' {\n%s\n%s\n  run = function(args, call) return {} end,\n}",
                        fields, above)
        .at;
}

static const char *schema_of(const char *above)
{
    return json_of(load(source_of(above, ""))->schema);
}

/* The schema of one argument of this type. */
static const char *type(const char *text)
{
    const struct policy *p = load(source_of(arena_printf(arena, "---@param x %s", text).at, ""));
    return json_of(json_get_text(json_get_text(p->schema, "properties"), "x"));
}

static void one_line_per_argument(void **state)
{
    (void)state;
    assert_string_equal(
        schema_of("  ---@param city string Name of the city\n"
                  "  ---@param unit? \"c\"|\"f\" Unit of the temperature\n"
                  "  ---@param days integer[] # Which days,\n"
                  "  --- counted from today\n"
                  "  ---@param call toolgate.Call"),
        "{\"type\":\"object\",\"properties\":{"
        "\"city\":{\"type\":\"string\",\"description\":\"Name of the city\"},"
        "\"unit\":{\"type\":\"string\",\"description\":\"Unit of the temperature\",\"enum\":[\"c\",\"f\"]},"
        "\"days\":{\"type\":\"array\",\"description\":\"Which days, counted from "
        "today\",\"items\":{\"type\":\"integer\"}}},"
        "\"required\":[\"city\",\"days\"],\"additionalProperties\":false}");
}

static void types_become_schemas(void **state)
{
    (void)state;
    static const char *const types[][2] = {
        {"string", "{\"type\":\"string\"}"},
        {"number", "{\"type\":\"number\"}"},
        {"boolean", "{\"type\":\"boolean\"}"},
        {"any", "{}"},
        {"any Whatever it is", "{\"description\":\"Whatever it is\"}"},
        {"\"a\"|'b'|\"c d\"", "{\"type\":\"string\",\"enum\":[\"a\",\"b\",\"c d\"]}"},
        {"1 | 2.5 | -3 How far", "{\"description\":\"How far\",\"enum\":[1,2.5,-3]}"},
        {"\"a\"|string", "{\"type\":\"string\"}"},
        {"1|2|integer", "{\"type\":\"integer\"}"},
        {"string[][]", "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}"},
        {"(\"a\"|\"b\")[]", "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}}"},
        {"(string|nil)[]", "{\"type\":\"array\",\"items\":{\"type\":[\"string\",\"null\"]}}"},
        {"(\"a\"|nil)[]", "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\",\"enum\":[\"a\"]},{"
                          "\"type\":\"null\"}]}}"},
        {"table", "{\"type\":\"object\"}"},
        {"table<string, number>", "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}"},
        {"table<integer, string>", "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
        {"string|integer|boolean[]", "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"},{\"type\":"
                                     "\"array\",\"items\":{\"type\":\"boolean\"}}]}"},
        {"{ a: string, b?: integer }",
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"integer\"}},"
         "\"required\":[\"a\"],\"additionalProperties\":false}"},
        {"{ [string]: integer }[]", "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{},"
                                    "\"additionalProperties\":{\"type\":\"integer\"}}}"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(type(types[i][0]), types[i][1]) != 0)
            fail_msg("%s: expected %s, got %s", types[i][0], types[i][1], type(types[i][0]));
}

static void types_with_nil_are_optional(void **state)
{
    (void)state;
    assert_string_equal(
        schema_of("---@param a? string\n---@param b string?\n---@param c string|nil\n---@param d nil|1 One"),
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"string\"},"
        "\"c\":{\"type\":\"string\"},\"d\":{\"description\":\"One\",\"enum\":[1]}},"
        "\"additionalProperties\":false}");
}

static void a_class_for_all_arguments(void **state)
{
    (void)state;
    const char *source = "---@class Place\n"
                         "---@field city string Name of the city\n"
                         "---@field country? string\n"
                         "\n"
                         "---Where something is.\n"
                         "---@class Stop: Place  A stop on the way\n"
                         "---@field days integer How many days\n"
                         "--- one stays\n"
                         "---@field private secret fun()\n"
                         "\n"
                         "---@alias Pace\n"
                         "---| \"fast\" # by train\n"
                         "---| \"slow\"\n"
                         "---@class Unused\n"
                         "---@field what thread\n"
                         "\n"
                         "---@class TripArgs\n"
                         "---@field stops Stop[] The stops,\n"
                         "--- in their order\n"
                         "---@field pace? Pace How fast\n"
                         "---@field from Place Where it begins\n"
                         "---@field [string] any\n"
                         "\n"
                         "return tool 't' {\n"
                         "  -- A comment of nobody's.\n"
                         "  ---Plans a trip.\n"
                         "  --- Books nothing.\n"
                         "  ---@param args TripArgs\n"
                         "  ---@param call toolgate.Call\n"
                         "  ---@return table\n"
                         "  run = function(args, call) end }";
    const struct policy *p = load(source);
    assert_string_equal(text_of(p->description), "Plans a trip. Books nothing.");
    assert_string_equal(
        json_of(p->schema),
        "{\"type\":\"object\",\"properties\":{\"stops\":{\"type\":\"array\",\"description\":\"The stops, in "
        "their order\","
        "\"items\":{\"type\":\"object\",\"description\":\"A stop on the "
        "way\",\"properties\":{\"city\":{\"type\":\"string\",\"description\":\"Name "
        "of the city\"},"
        "\"country\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\",\"description\":\"How many days "
        "one stays\"}},"
        "\"required\":[\"city\",\"days\"],\"additionalProperties\":false}},"
        "\"pace\":{\"type\":\"string\",\"description\":\"How fast\",\"enum\":[\"fast\",\"slow\"]},"
        "\"from\":{\"type\":\"object\",\"description\":\"Where it "
        "begins\",\"properties\":{\"city\":{\"type\":\"string\","
        "\"description\":\"Name of the city\"},\"country\":{\"type\":\"string\"}},\"required\":[\"city\"],"
        "\"additionalProperties\":false}},\"required\":[\"stops\",\"from\"],\"additionalProperties\":{}}");
}

static void run_may_be_a_function_of_the_file(void **state)
{
    (void)state;
    assert_has(json_of(load("--- Not this one.\n---@param b string\nlocal function other() end\n\n"
                            "---@param a string\nlocal function go(args) return other(args) end\n"
                            "return tool 't' { run = go }")
                           ->schema),
               "\"properties\":{\"a\":{");
    assert_has(
        json_of(
            load("---@param a string\nlocal function go(args) return args end\nreturn tool 't' { run = go }")
                ->schema),
        "\"a\":{");
    assert_has(json_of(load("return tool 't' {\n---@param a string\nrun =\n  function() end }")->schema),
               "\"a\":{");
}

static void other_comments_are_ignored(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "return tool 't' {\n-- @param a string\nrun = function() end }",
        "return tool 't' {\n---@param a string\n\nrun = function() end }",
        "return tool 't' {\n--- Says nothing of arguments.\nrun = function() end }",
        "return tool 't' {\n---@param args table\n---@param call toolgate.Call\nrun = function(args, call) "
        "end }",
        "local text = [[\n---@param a string\n]] return tool 't' { run = function() return text end }",
        "return tool 't' {\n---@param a string\ncheck = function() end }",
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        const struct policy *p = load(sources[i]);
        if (p->schema || p->description.len)
            fail_msg("%s: %s", sources[i], json_of(p->schema));
    }
}

static void fields_replace_annotations(void **state)
{
    (void)state;
    const struct policy *p = load(source_of("--- From above.\n---@param b integer Anything",
                                            "schema = params { a = str, b = str }, description = 'Mine',"));
    assert_string_equal(text_of(p->description), "Mine");
    assert_has(json_of(p->schema), "\"b\":{\"type\":\"string\"}");
    assert_string_equal(
        fault_of(source_of("---@param a string\n---@param citty string",
                           "schema = params { a = str, city = str },")),
        "p.lua:4: annotations: 'citty' is not in the schema (did you mean 'city'?), which decides: "
        "correct the annotation");
    assert_has(fault_of("---@class A\n---@field x string\nreturn tool 't' { schema = params { y = str "
                        "},\n---@param args A\n"
                        "run = function(args) end }"),
               "p.lua:4: annotations: 'x' is not in the schema");
    assert_string_equal(text_of(load(source_of("---Reads it.\n---@param a string", ""))->description),
                        "Reads it.");
}

static void rules_accept_annotated_arguments(void **state)
{
    (void)state;
    assert_has(fault_of(source_of("---@param id string", "rules = { always : needs 'idd' },")),
               "the schema does not allow 'idd' (did you mean 'id'?)");
}

static void errors_have_their_line(void **state)
{
    (void)state;
    static const char *const slips[][1] = {
        {"---@param a strng"},
        {"---@param ok string\n---@param a Unknown[]"},
        {"---@param a"},
        {"---@param"},
        {"---@parm a string\n---@param b string"},
        {"---@param a fun(x: integer)"},
        {"---@param a (string"},
        {"---@param a string|"},
        {"---@param a string, the name"},
        {"---@param a table<boolean, string>"},
        {"---@param a { b string }"},
        {"---@param a nil"},
        {"---@param a string\n---@param a integer"},
        {"---@param args string"},
        {"---@param args { a: string }\n---@param b string"},
        {"---@class A\n---@field b A\n---@param args A"},
        {"---@class A: Bass\n---@field b string\n---@class Base\n---@param args A"},
        {"---@alias A B\n---@alias B A[]\n---@param x A"},
    };
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
        const char *fault = fault_of(source_of(slips[i][0], ""));
        if (!fault)
            fail_msg("%s loads: %s", slips[i][0], json_of(policy_set_at(loaded, 0)->schema));
        assert_has(fault, "p.lua:");
        golden_row(slips[i][0], fault);
    }
    golden_check_rows("load", "annotations: mistakes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_line_per_argument, set_up, tear_down),
        cmocka_unit_test_setup_teardown(types_become_schemas, set_up, tear_down),
        cmocka_unit_test_setup_teardown(types_with_nil_are_optional, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_class_for_all_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run_may_be_a_function_of_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_comments_are_ignored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fields_replace_annotations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rules_accept_annotated_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_have_their_line, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy_annotations", tests, NULL, NULL);
}

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

TEST(one_line_per_argument)
{
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

TEST(types_become_schemas)
{
    static const char *const types[][2] = {
        {"string", "{\"type\":\"string\"}"},
        {"number", "{\"type\":\"number\"}"},
        {"boolean", "{\"type\":\"boolean\"}"},
        {"any", "{}"},
        {"any Whatever it is", "{\"description\":\"Whatever it is\"}"},
        {"\"a\"|'b'|\"c d\"", "{\"type\":\"string\",\"enum\":[\"a\",\"b\",\"c d\"]}"},
        {"1 | 2.5 | -3 How far", "{\"type\":\"number\",\"description\":\"How far\",\"enum\":[1,2.5,-3]}"},
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
        {"table<string, integer> By name",
         "{\"type\":\"object\",\"description\":\"By name\",\"additionalProperties\":{\"type\":\"integer\"}}"},
        {"{ a: string } Where",
         "{\"type\":\"object\",\"description\":\"Where\",\"properties\":{\"a\":{\"type\":"
         "\"string\"}},\"required\":[\"a\"],\"additionalProperties\":false}"},
        {"(string|number) Either",
         "{\"description\":\"Either\",\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]}"},
        {"( 'a' | 'b' )[] Some",
         "{\"type\":\"array\",\"description\":\"Some\",\"items\":{\"type\":\"string\","
         "\"enum\":[\"a\",\"b\"]}}"},
        {"table<string, { x: number, y?: (string|boolean)[] }> Deep",
         "{\"type\":\"object\",\"description\":\"Deep\",\"additionalProperties\":{\"type\":\"object\","
         "\"properties\":{"
         "\"x\":{\"type\":\"number\"},\"y\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\"},{"
         "\"type\":"
         "\"boolean\"}]}}},\"required\":[\"x\"],\"additionalProperties\":false}}"},
        {"true|false Whether", "{\"type\":\"boolean\",\"description\":\"Whether\",\"enum\":[true,false]}"},
        {"1|'a'", "{\"enum\":[1,\"a\"]}"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(type(types[i][0]), types[i][1]) != 0)
            fail_msg("%s: expected %s, got %s", types[i][0], types[i][1], type(types[i][0]));
}

TEST(types_with_nil_are_optional)
{
    assert_string_equal(
        schema_of("---@param a? string\n---@param b string?\n---@param c string|nil\n---@param d nil|1 One"),
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"string\"},"
        "\"c\":{\"type\":\"string\"},\"d\":{\"type\":\"integer\",\"description\":\"One\",\"enum\":[1]}},"
        "\"additionalProperties\":false}");
}

TEST(defaults_are_in_the_schema)
{
    static const char *const types[][2] = {
        {"integer = 5 How many", "{\"type\":\"integer\",\"description\":\"How many\",\"default\":5}"},
        {"string = 'a b'", "{\"type\":\"string\",\"default\":\"a b\"}"},
        {"boolean = false", "{\"type\":\"boolean\",\"default\":false}"},
        {"\"a\"|\"b\" = \"b\" Which",
         "{\"type\":\"string\",\"description\":\"Which\",\"default\":\"b\",\"enum\":[\"a\","
         "\"b\"]}"},
        {"string[] = {} Tags",
         "{\"type\":\"array\",\"description\":\"Tags\",\"default\":[],\"items\":{\"type\":"
         "\"string\"}}"},
        {"string[] = { 'a', 'b' }",
         "{\"type\":\"array\",\"default\":[\"a\",\"b\"],\"items\":{\"type\":\"string\"}}"},
        {"table<string, integer> = {}",
         "{\"type\":\"object\",\"default\":{},\"additionalProperties\":{\"type\":\"integer\"}}"},
        {"number Price (default: 1.5)",
         "{\"type\":\"number\",\"description\":\"Price (default: 1.5)\",\"default\":1.5}"},
        {"integer Pages, defaults to `3`.",
         "{\"type\":\"integer\",\"description\":\"Pages, defaults to `3`.\",\"default\":3}"},
        {"\"asc\"|\"desc\" Order. Default: desc", "{\"type\":\"string\",\"description\":\"Order. Default: "
                                                  "desc\",\"default\":\"desc\",\"enum\":[\"asc\",\"desc\"]}"},
        {"string Zone (default: the user's)",
         "{\"type\":\"string\",\"description\":\"Zone (default: the user's)\"}"},
        {"integer Limit (default: \"all\")",
         "{\"type\":\"integer\",\"description\":\"Limit (default: \\\"all\\\")\"}"},
        {"string By default 5 items", "{\"type\":\"string\",\"description\":\"By default 5 items\"}"},
        {"integer Defaults to 3 pages of ten",
         "{\"type\":\"integer\",\"description\":\"Defaults to 3 pages of ten\"}"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(type(types[i][0]), types[i][1]) != 0)
            fail_msg("%s: expected %s, got %s", types[i][0], types[i][1], type(types[i][0]));
    assert_string_equal(
        schema_of("---@param a integer = 5\n---@param b integer"),
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"default\":5},\"b\":{\"type\":"
        "\"integer\"}},\"required\":[\"b\"],\"additionalProperties\":false}");
}

TEST(a_class_describes_the_tool)
{
    static const char *const classes[] = {"---Files a claim\n---for a customer.\n---@class Claim\n",
                                          "---@class Claim  Files a claim\n---for a customer.\n"};
    for (size_t i = 0; i < 2; i++) {
        const char *above = arena_printf(arena, "%s---@field id string\n", classes[i]).at;
        const struct policy *p = load(
            arena_printf(arena, "%s\nreturn tool 't' {\n---@param args Claim\n  run = function(args) end }",
                         above)
                .at);
        assert_string_equal(text_of(p->description), "Files a claim for a customer.");
        assert_null(json_get_text(p->schema, "description"));
        p = load(arena_printf(
                     arena,
                     "%s\nreturn tool 't' {\n---Of run.\n---@param args Claim\n  run = function(args) end }",
                     above)
                     .at);
        assert_string_equal(text_of(p->description), "Of run.");
        p = load(arena_printf(arena,
                              "%s\nreturn tool 't' { description = 'Own.',\n---@param args Claim\n  run = "
                              "function(args) end }",
                              above)
                     .at);
        assert_string_equal(text_of(p->description), "Own.");
    }
}

TEST(a_class_for_all_arguments)
{
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
        "\"items\":{\"type\":\"object\",\"description\":\"Where something is. A stop on the "
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

TEST(run_may_be_a_function_of_the_file)
{
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

TEST(other_comments_are_ignored)
{
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

TEST(fields_replace_annotations)
{
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

TEST(rules_accept_annotated_arguments)
{
    assert_has(fault_of(source_of("---@param id string", "rules = { always : needs 'idd' },")),
               "the schema does not allow 'idd' (did you mean 'id'?)");
}

TEST(errors_have_their_line)
{
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
        {"---@param a { string, integer }"},
        {"---@param a [string, integer]"},
        {"---@param a { [integer]: string }"},
        {"---@param a table<string>"},
        {"---@param a table<\"x\"|\"y\", integer>"},
        {"---@param a A & B"},
        {"---@param a string & B"},
        {"---@param a string..."},
        {"---@param a object"},
        {"---@param a int"},
        {"---@param a dict<string, integer>"},
        {"---@param a integer = five"},
        {"---@param a integer = \"5\""},
        {"---@param a \"x\"|\"y\" = \"z\""},
        {"---@param a string[] = { 1 }"},
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

/* params{…}: the JSON Schema that it produces, with the parameters in the author's order. */
#include "policy/policy_support.h"

static const char *schema_of(const char *source)
{
    return json_of(load(source)->schema);
}

static const char *params(const char *fields)
{
    return schema_of(arena_printf(arena, "return tool 't' {\n  schema = params {\n%s\n  },\n}", fields).at);
}

#define OBJECT(properties, required)                                                                         \
    "{\"type\":\"object\",\"properties\":{" properties "}," required "\"additionalProperties\":false}"

TEST(parameters_keep_the_authors_order)
{
    assert_string_equal(
        params("zebra = str,\nant = optional(int),\n['Yak'] = bool, mole = num"),
        OBJECT(
            "\"zebra\":{\"type\":\"string\"},\"ant\":{\"type\":\"integer\"},\"Yak\":{\"type\":\"boolean\"},"
            "\"mole\":{\"type\":\"number\"}",
            "\"required\":[\"zebra\",\"Yak\",\"mole\"],"));
}

TEST(keywords_have_a_fixed_order)
{
    assert_string_equal(
        params("t = str { max = 9, min = 1, 'T' }, e = optional(enum({ 'b', 'a' }, 'E'), 'a')"),
        OBJECT("\"t\":{\"type\":\"string\",\"description\":\"T\",\"maxLength\":9,\"minLength\":1},"
               "\"e\":{\"type\":\"string\",\"description\":\"E\",\"enum\":[\"b\",\"a\"],\"default\":\"a\"}",
               "\"required\":[\"t\"],"));
}

TEST(nested_objects_keep_the_order)
{
    assert_string_equal(
        params(
            "to = object({ street = str, city = str }, 'Where to'),\n"
            "by = list(object { z = int, a = optional(int) }), from = object({ city = str, street = str })"),
        OBJECT("\"to\":{\"type\":\"object\",\"description\":\"Where "
               "to\",\"properties\":{\"street\":{\"type\":\"string\"},"
               "\"city\":{\"type\":\"string\"}},\"required\":[\"street\",\"city\"],\"additionalProperties\":"
               "false},"
               "\"by\":{\"type\":\"array\",\"items\":" OBJECT(
                   "\"z\":{\"type\":\"integer\"},\"a\":{\"type\":\"integer\"}",
                   "\"required\":[\"z\"],") "},"
                                            "\"from\":" OBJECT("\"city\":{\"type\":\"string\"},\"street\":{"
                                                               "\"type\":\"string\"}",
                                                               "\"required\":[\"city\",\"street\"],"),
               "\"required\":[\"to\",\"by\",\"from\"],"));
}

TEST(the_order_is_found_anywhere_in_the_source)
{
    static const char *const sources[] = {
        "return tool 't' { schema = params\n  { -- b = \n b = int, --[[ c = 1 ]] a = int } }",
        "return tool 't' { schema = params({\n  b = int,\n  a = int,\n }, { }) }",
        "local p = params\nreturn tool 't' { schema = p { b = int; a = int; } }",
        "local fields = { b = int,\n a = int }\nreturn tool 't' { schema = params(fields) }",
        "local other = { a = 1, b = 2 }\nreturn tool 't' { schema = params { b = int { min = 1 }, a = int } "
        "}",
        "return tool 't' { schema = params { b = int \"a = {\", a = int [==[ b = } ]==] } }",
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        const struct json *properties = json_get_text(load(sources[i])->schema, "properties");
        if (!str_is(properties->members[0].key, "b") || !str_is(properties->members[1].key, "a"))
            fail_msg("%s: %s", sources[i], json_of(properties));
    }
}

/* Fields that are assigned one by one have no source order: they are sorted by name. */
TEST(fields_without_an_order_are_sorted_by_name)
{
    assert_string_equal(
        schema_of("local f = {}\nf.b = int\nf.a = int\nreturn tool 't' { schema = params(f) }"),
        OBJECT("\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}", "\"required\":[\"a\",\"b\"],"));
    assert_string_equal(params(""), OBJECT("", ""));
}

TEST(json_keeps_its_order)
{
    const char *text =
        "{\"required\":[\"b\"],\"type\":\"object\",\"properties\":{\"b\":{\"minimum\":1.0},\"a\":{}}}";
    assert_string_equal(schema_of(arena_printf(arena, "return tool 't' { schema = json [[%s]] }", text).at),
                        text);
    assert_string_equal(schema_of(arena_printf(arena,
                                               "local s = json [[%s]]\ns.properties.c = { type = 'string' }\n"
                                               "return tool 't' { schema = s }",
                                               text)
                                      .at),
                        "{\"required\":[\"b\"],\"type\":\"object\",\"properties\":{\"b\":{\"minimum\":1.0},"
                        "\"a\":{},\"c\":{\"type\":\"string\"}}}");
}

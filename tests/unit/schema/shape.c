/* What a schema takes, in a few words and as a small JSON Schema. */
#include "schema/schema_support.h"
#include "schema/schema_node.h"
#include "schema/shape.h"

static const char *shape_of(const char *schema)
{
    struct buf out = buf_in(arena);
    shape_put(&out, compile(schema)->root);
    buf_byte(&out, '\0');
    return out.at;
}

static const char *small_schema_of(const char *schema)
{
    struct buf out = buf_in(arena);
    struct json_out json = json_out(&out);
    shape_put_json(&json, compile(schema)->root);
    buf_byte(&out, '\0');
    return out.at;
}

TEST(each_kind_of_schema_has_a_shape)
{
    static const struct {
        const char *schema, *shape;
    } table[] = {
        {"{}", "any value"},
        {"true", "any value"},
        {"{`type`:`string`}", "string"},
        {"{`type`:[`integer`,`null`]}", "integer or null"},
        {"{`anyOf`:[{`type`:`null`},{`type`:`integer`}]}", "integer or null"},
        {"{`anyOf`:[{`type`:`string`},{`type`:`array`,`items`:{`type`:`string`}}]}",
         "string or list of string"},
        {"{`anyOf`:[{`type`:`array`,`items`:{`type`:`string`}},{`type`:`string`},{`type`:`string`}]}",
         "list of string or string"},
        {"{`enum`:[`a b`,`c`,1]}", "\"a b\"|c|1"},
        {"{`const`:`v2`}", "always v2"},
        {"{`type`:[`string`,`null`],`enum`:[`a`,null]}", "a|null"},
        {"{`type`:`integer`,`minimum`:1,`maximum`:9007199254740991}", "integer from 1"},
        {"{`type`:`integer`,`default`:5}", "integer (default 5)"},
        {"{`type`:`integer`,`minimum`:1,`maximum`:100}", "integer from 1 to 100"},
        {"{`type`:`number`,`exclusiveMinimum`:0}", "number above 0"},
        {"{`type`:`string`,`format`:`date`}", "ISO date (e.g. '2026-05-03')"},
        {"{`type`:`string`,`format`:`colour`}", "string (colour)"},
        {"{`type`:`string`,`pattern`:`^W[0-9]$`}", "string matching \"^W[0-9]$\""},
        {"{`type`:`array`}", "list"},
        {"{`type`:`array`,`items`:{`type`:[`integer`,`null`]},`minItems`:2,`maxItems`:2}",
         "list of (integer or null) (exactly 2)"},
        {"{`type`:`array`,`minItems`:1,`items`:{`type`:`string`}}", "list of string (at least 1)"},
        {"{`type`:`array`,`prefixItems`:[{`type`:`number`},{`type`:`string`}]}", "[number, string]"},
        {"{`type`:`object`}", "object"},
        {"{`type`:`object`,`additionalProperties`:{`type`:`integer`}}", "{any name: integer}"},
        {"{`type`:`object`,`properties`:{`end`:{`type`:[`integer`,`null`]},`start`:{`type`:`integer`}},"
         "`required`:[`start`]}",
         "{start: integer (required), end: integer or null}"},
        {"{`type`:`object`,`required`:[`a`]}", "{a: any value (required)}"},
        {"{`$ref`:`#/$defs/r`,`$defs`:{`r`:{`type`:`array`,`items`:{`type`:`boolean`}}}}", "list of boolean"},
        {"{`allOf`:[{`properties`:{`a`:{`type`:`string`}}},{`properties`:{`b`:{}},`required`:[`a`]}]}",
         "{a: string (required), b: any value}"},
        {"{`anyOf`:[{`type`:`object`,`properties`:{`k`:{`const`:`x`}}},{`type`:`object`,`properties`:{`k`:"
         "{`const`:`y`},`n`:{`type`:`integer`}}}]}",
         "{k: always x} or {k: always y, n: integer}"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        assert_string_equal(shape_of(table[i].schema), quoted(table[i].shape).at);
}

/* A tree of itself ends at SHAPE_DEPTH_MAX. */
TEST(a_recursive_schema_ends)
{
    assert_string_equal(
        shape_of("{`type`:`object`,`properties`:{`kids`:{`type`:`array`,`items`:{`$ref`:`#`}}}}"),
        "{kids: list of {kids: list of object}}");
    assert_true(strlen(shape_of("{`anyOf`:[{`type`:`array`,`items`:{`$ref`:`#`}},{`type`:`object`,"
                                "`additionalProperties`:{`$ref`:`#`}},{`type`:`string`}]}")) < 2000);
    const struct json *small = parse(
        small_schema_of("{`type`:`object`,`properties`:{`kids`:{`type`:`array`,`items`:{`$ref`:`#`}}}}"));
    assert_int_equal(small->type, JSON_OBJECT);
}

TEST(long_schemas_are_bounded)
{
    struct buf json = buf_in(arena), values = buf_in(arena);
    buf_text(&json, "{`type`:`object`,`properties`:{");
    for (int i = 0; i < 100; i++)
        buf_printf(&json, "%s`field_%d`:{`type`:`string`}", i ? "," : "", i);
    buf_text(&json, "}}");
    buf_byte(&json, '\0');
    assert_non_null(strstr(shape_of(json.at), "field_11: string, and 88 more}"));
    buf_text(&values, "{`enum`:[");
    for (int i = 0; i < 100; i++)
        buf_printf(&values, "%s`v_%d`", i ? "," : "", i);
    buf_text(&values, "]}");
    buf_byte(&values, '\0');
    assert_non_null(strstr(shape_of(values.at), "|v_29|… (70 more)"));
    assert_string_equal(small_schema_of(values.at), "{\"type\":\"string\"}");
}

TEST(a_small_schema_has_the_same_shape)
{
    static const char *const same[] = {
        "{`type`:`string`}",
        "{`type`:`string`,`enum`:[`a`,`b`]}",
        "{`type`:`string`,`format`:`date`}",
        "{`type`:`object`,`properties`:{`a`:{`type`:`integer`}},`required`:[`a`]}",
        "{`type`:`array`,`items`:{`type`:[`integer`,`null`]}}",
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        assert_string_equal(small_schema_of(same[i]), quoted(same[i]).at);
    assert_string_equal(small_schema_of("{}"), "{}");
}

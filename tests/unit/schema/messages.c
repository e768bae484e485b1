/* The exact messages that a model reads. */
#include "schema/schema_support.h"
#include "golden.h"

#define OBJECT(properties) "{`type`:`object`,`properties`:{" properties "}}"

TEST(each_kind_of_problem_has_its_line)
{
    static const struct {
        const char *schema, *instance;
    } table[] = {
        {"{`properties`:{`title`:{`type`:`string`}},`required`:[`title`]}", "{}"},
        {OBJECT("`count`:{`type`:`integer`}"), "{`count`:`three`}"},
        {OBJECT("`count`:{`type`:`integer`}"), "{`count`:2.5}"},
        {OBJECT("`name`:{`type`:`string`}"), "{`name`:[1]}"},
        {OBJECT("`name`:{`type`:[`string`,`null`]}"), "{`name`:5}"},
        {OBJECT("`name`:{`anyOf`:[{`type`:`string`},{`type`:`integer`},{`type`:`null`}]}"), "{`name`:true}"},
        {OBJECT("`due_date`:{`type`:`string`,`format`:`date-time`}"), "{`due_date`:`tomorrow`}"},
        {OBJECT("`day`:{`format`:`date`}"), "{`day`:`2026-02-30`}"},
        {OBJECT("`page`:{`format`:`uri`}"), "{`page`:`example.com/a`}"},
        {OBJECT("`page`:{`format`:`uri`}"), "{`page`:`the second one`}"},
        {OBJECT("`page`:{`format`:`uri`}"), "{`page`:`https://example.com/{id}`}"},
        {OBJECT("`tags`:{`type`:`array`}"), "{`tags`:`a`}"},
        {OBJECT("`tags`:{`type`:[`array`,`null`]}"), "{`tags`:1}"},
        {"{`properties`:{`title`:{}},`additionalProperties`:false}", "{`titel`:1}"},
        {"{`properties`:{`title`:{}},`additionalProperties`:false}", "{`title`:1,`titel`:1}"},
        {"{`properties`:{`title`:{}},`unevaluatedProperties`:false}", "{`titel`:1}"},
        {OBJECT("`status`:{`enum`:[`placed`,`shipped`,`delivered`]}"), "{`status`:`shipping`}"},
        {OBJECT("`status`:{`type`:`string`,`enum`:[`True`,`False`,`dontcare`]}"), "{`status`:true}"},
        {OBJECT("`v`:{`const`:`v2`}"), "{`v`:7}"},
        {OBJECT("`items`:{`items`:{`properties`:{`price`:{`minimum`:0}}}}"), "{`items`:[{`price`:-1}]}"},
        {OBJECT("`n`:{`exclusiveMinimum`:0}"), "{`n`:0}"},
        {OBJECT("`n`:{`maximum`:10}"), "{`n`:11}"},
        {OBJECT("`n`:{`exclusiveMaximum`:10}"), "{`n`:1e1}"},
        {OBJECT("`n`:{`multipleOf`:0.01}"), "{`n`:1.005}"},
        {OBJECT("`s`:{`pattern`:`^[A-Z]+$`}"), "{`s`:`abc`}"},
        {OBJECT("`s`:{`minLength`:2}"), "{`s`:`ä`}"},
        {OBJECT("`l`:{`minItems`:1}"), "{`l`:[]}"},
        {OBJECT("`l`:{`maxItems`:1}"), "{`l`:[1,2]}"},
        {OBJECT("`o`:{`minProperties`:1}"), "{`o`:{}}"},
        {OBJECT("`l`:{`uniqueItems`:true}"), "{`l`:[1,2,1.0]}"},
        {OBJECT("`l`:{`contains`:{`type`:`string`}}"), "{`l`:[1]}"},
        {OBJECT("`a`:false"), "{`a`:1}"},
        {OBJECT("`a`:{`not`:{`enum`:[`x`]}}"), "{`a`:`x`}"},
        {"{`not`:{`required`:[`a`,`b`]}}", "{`a`:1,`b`:1}"},
        {"{`dependentRequired`:{`a`:[`b`]}}", "{`a`:1}"},
        {"{`propertyNames`:{`pattern`:`^[a-z]+$`}}", "{`A`:1}"},
        {"{`type`:`object`}", "[]"},
        {"{`if`:{`required`:[`a`]},`then`:{`required`:[`b`]}}", "{`a`:1}"},
        {OBJECT("`a.b`:{`properties`:{`c d`:{`type`:`null`}}}"), "{`a.b`:{`c d`:1}}"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        expect_lines(table[i].schema, table[i].instance);
    golden_check_rows("feedback", "schema: each keyword");
}

TEST(every_problem_is_reported_at_once)
{
    expect_lines("{`properties`:{`a`:{`type`:`string`,`minLength`:3,`pattern`:`^x`},`b`:{`type`:`integer`}},"
                 "`required`:[`c`]}",
                 "{`a`:`y`,`b`:null}");
    golden_check_rows("feedback", "schema: several problems");
}

TEST(equal_problems_are_reported_once)
{
    expect_lines("{`allOf`:[{`required`:[`a`]},{`required`:[`a`]}]}", "{}");
    golden_check_rows("feedback", "schema: the same problem twice");
}

TEST(long_values_are_cut)
{
    struct buf json = buf_in(arena);
    buf_text(&json, "{`a`:`");
    for (int i = 0; i < 1000; i++)
        buf_text(&json, "é");
    buf_text(&json, "`}");
    buf_byte(&json, '\0');
    const char *lines = lines_of(compile(OBJECT("`a`:{`type`:`integer`}")), parse(json.at));
    assert_true(strlen(lines) < 160);
    assert_non_null(strstr(lines, "é…\"\n"));
}

TEST(lists_of_choices_are_cut)
{
    expect_lines("{`enum`:[1,2,3,4,5,6,7,8,9,10,11,12,13,14,`fifteen`]}", "`fiveteen`");
    golden_check_rows("feedback", "schema: a long enum");
}

TEST(problems_of_items_are_one_line)
{
    struct buf json = buf_in(arena);
    buf_byte(&json, '[');
    for (int i = 0; i < 100; i++)
        buf_text(&json, i ? ",`x`" : "`x`");
    buf_text(&json, "]");
    buf_byte(&json, '\0');
    const char *lines = lines_of(compile("{`items`:{`type`:`integer`}}"), parse(json.at));
    assert_string_equal(lines, "- '[0…99]': each expected integer, got string \"x\"\n");
}

/* Different problems are not grouped; those beyond the limit are counted. */
TEST(many_different_problems_are_counted)
{
    struct buf json = buf_in(arena);
    for (int i = 0; i < 100; i++)
        buf_printf(&json, "%s`f%d`:`x`", i ? "," : "{", i);
    buf_text(&json, "}");
    buf_byte(&json, '\0');
    const char *lines = lines_of(compile("{`patternProperties`:{`^f`:{`type`:`integer`}}}"), parse(json.at));
    assert_non_null(strstr(lines, "- 'f31': expected integer"));
    assert_null(strstr(lines, "'f32'"));
    assert_non_null(strstr(lines, "- and 68 more\n"));
}

TEST(problems_are_written_as_json)
{
    struct problems problems;
    struct buf out = buf_in(arena);
    struct json_out json = json_out(&out);
    problems_init(&problems, arena);
    schema_explain(compile(OBJECT("`items`:{`items`:{`properties`:{`s`:{`enum`:[`aaaa`,`bb`]}}}}")),
                   parse("{`items`:[{`s`:`aaa`}]}"), &problems, NULL);
    problem_json(&json, &problems.list[0]);
    buf_byte(&out, '\0');
    assert_string_equal(
        out.at,
        quoted("{`path`:`args.items[0].s`,`code`:`enum`,`message`:`expected one of aaaa, bb, got "
               "\\`aaa\\` (did you mean 'aaaa'?)`,`severity`:`error`,`expected`:{`enum`:[`aaaa`,`bb`]},"
               "`got`:`aaa`}")
            .at);
    assert_true(str_is(problems.list[0].suggestion, "\"aaaa\""));
}

TEST(a_missing_field_may_have_been_sent_under_another_name)
{
#define FILE_SCHEMA "{`properties`:{`file_path`:{},`mode`:{}},`required`:[`file_path`]"
    expect_lines(FILE_SCHEMA "}", "{`path`:`a`,`mode`:1}");
    expect_lines(FILE_SCHEMA "}", "{`mode`:1,`colour`:2}");
    expect_lines(FILE_SCHEMA ",`additionalProperties`:false}", "{`path`:`a`}");
#undef FILE_SCHEMA
    golden_check_rows("feedback", "schema: a field under another name");
}

/* ---- descriptions ---- */

static struct str described(const char *schema, const char *instance)
{
    struct problems problems;
    problems_init(&problems, arena);
    schema_explain(compile(schema), parse(instance), &problems, NULL);
    assert_int_equal(problems.count, 1);
    return problems.list[0].description;
}

TEST(a_problem_carries_the_description_of_its_schema)
{
#define ORDER                                                                                                \
    "{`properties`:{`id`:{`description`:` The order's id\\nin "                                              \
    "full`,`type`:`string`,`pattern`:`^W[0-9]+$`}},"
    assert_true(
        str_is(described(ORDER "`required`:[`id`],`description`:`An order`}", "{}"), "The order's id"));
    assert_true(str_is(described(ORDER "`description`:`An order`}", "{`id`:7}"), "The order's id"));
    assert_true(
        str_is(described(ORDER "`additionalProperties`:false,`description`:`An order`}", "{`x`:1}"), ""));
    assert_true(str_is(described(ORDER "`required`:[`x`],`description`:`An order`}", "{}"), ""));
    /* through a reference: the description beside it, unless its target has one */
    assert_true(str_is(
        described("{`$defs`:{`n`:{`minimum`:3}},`$ref`:`#/$defs/n`,`description`:`Outer`}", "1"), "Outer"));
    assert_true(str_is(described("{`$defs`:{`n`:{`minimum`:3,`description`:`Inner`}},`$ref`:`#/$defs/n`,"
                                 "`description`:`Outer`}",
                                 "1"),
                       "Inner"));
    /* a pattern shows the description */
    expect_lines(ORDER "`type`:`object`}", "{`id`:`77`}");
#undef ORDER
    golden_check_rows("feedback", "schema: the description of a pattern");
}

/* ---- alternatives ---- */

TEST(only_the_alternative_that_was_meant_is_explained)
{
    static const char kinds[] =
        "{`oneOf`:[{`properties`:{`x`:{`type`:`integer`},`kind`:{`const`:`a`}},`required`:[`kind`,`x`]},"
        "{`properties`:{`kind`:{`const`:`b`},`y`:{`type`:`integer`}},`required`:[`kind`,`y`]}]}";
    static const struct {
        const char *schema, *instance;
    } table[] = {
        {kinds, "{`kind`:`a`,`x`:`1`}"},
        {kinds, "{`kind`:`b`,`x`:1}"},
        {kinds, "{`kind`:`c`,`x`:1}"},
        {kinds, "{`x`:1}"},
        /* one branch takes strings, the other lists: the value's type selects */
        {"{`anyOf`:[{`type`:`string`,`minLength`:2},{`type`:`array`,`items`:{`type`:`string`}}]}", "[1]"},
        {"{`anyOf`:[{`type`:`string`,`enum`:[`a`,`b`]},{`type`:`null`}]}", "`c`"},
        {"{`oneOf`:[{`const`:`x`},{`const`:`y`},{`type`:`null`}]}", "`z`"},
        /* closeness: the second has the fields, one with a wrong value */
        {"{`anyOf`:[{`required`:[`p`,`q`]},{`required`:[`r`,`s`],`properties`:{`r`:{`type`:`integer`}}}]}",
         "{`r`:`1`,`s`:2}"},
        {"{`oneOf`:[{`required`:[`id`]},{`required`:[`query`]}]}", "{}"},
        {"{`anyOf`:[{`required`:[`id`]},{`required`:[`query`]}]}", "{}"},
        {"{`oneOf`:[{`required`:[`id`]},{`required`:[`query`]}]}", "{`id`:1,`query`:2}"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        expect_lines(table[i].schema, table[i].instance);
    golden_check_rows("feedback", "schema: alternatives");
}

/* ---- unknown properties ---- */

TEST(unknown_properties_are_found)
{
    static const struct {
        const char *schema, *instance;
    } table[] = {
        {"{`properties`:{`limit`:{}}}", "{`lmit`:1,`other`:2}"},
        {"{`properties`:{`limit`:{}}}", "{`limit`:1}"},
        {"{`properties`:{},`patternProperties`:{`^x-`:{}}}", "{`x-a`:1}"},
        {"{`properties`:{},`additionalProperties`:{`type`:`integer`}}", "{`a`:1}"},
        {"{`type`:`object`}", "{`a`:1}"},
        {"{`allOf`:[{`properties`:{`a`:{}}},{`$ref`:`#/$defs/b`}],`$defs`:{`b`:{`properties`:{`b`:{}}}}}",
         "{`a`:1,`b`:2,`c`:3}"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct problems problems;
        struct buf out = buf_in(arena);
        problems_init(&problems, arena);
        schema_unknown_properties(compile(table[i].schema), parse(table[i].instance), &problems, NULL);
        problems_text(&out, &problems);
        buf_byte(&out, '\0');
        golden_row(arena_printf(arena, "%s  %s", table[i].schema, table[i].instance).at, out.at);
        assert_int_equal(problems.errors, 0);
    }
    golden_check_rows("feedback", "schema: unknown properties");
}

/* The sentences a model reads, letter by letter. */
#include "schema/schema_support.h"

#define OBJECT(properties) "{`type`:`object`,`properties`:{" properties "}}"

static void each_kind_has_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *instance, *line;
    } table[] = {
        {"{`properties`:{`title`:{`type`:`string`}},`required`:[`title`]}", "{}",
         "- 'title': required field is missing — provide a value\n"},
        {OBJECT("`count`:{`type`:`integer`}"), "{`count`:`three`}",
         "- 'count': expected integer, got `three`\n"},
        {OBJECT("`count`:{`type`:`integer`}"), "{`count`:2.5}", "- 'count': expected integer, got 2.5\n"},
        {OBJECT("`name`:{`type`:`string`}"), "{`name`:[1]}", "- 'name': expected string, got array\n"},
        {OBJECT("`name`:{`type`:[`string`,`null`]}"), "{`name`:5}",
         "- 'name': expected string or null, got 5\n"},
        {OBJECT("`name`:{`anyOf`:[{`type`:`string`},{`type`:`integer`},{`type`:`null`}]}"), "{`name`:true}",
         "- 'name': expected string, integer or null, got true\n"},
        {OBJECT("`due_date`:{`type`:`string`,`format`:`date-time`}"), "{`due_date`:`tomorrow`}",
         "- 'due_date': expected ISO datetime (e.g. '2026-05-03T00:00:00Z'), got `tomorrow`\n"},
        {OBJECT("`day`:{`format`:`date`}"), "{`day`:`2026-02-30`}",
         "- 'day': expected ISO date (e.g. '2026-05-03'), got `2026-02-30`\n"},
        {OBJECT("`tags`:{`type`:`array`}"), "{`tags`:`a`}", "- 'tags': expected list/array, got string\n"},
        {OBJECT("`tags`:{`type`:[`array`,`null`]}"), "{`tags`:1}",
         "- 'tags': expected list/array or null, got number\n"},
        {"{`properties`:{`title`:{}},`additionalProperties`:false}", "{`titel`:1}",
         "- 'titel': unknown field — remove it (did you mean 'title'?)\n"},
        {"{`properties`:{`title`:{}},`additionalProperties`:false}", "{`title`:1,`titel`:1}",
         "- 'titel': unknown field — remove it\n"},
        {"{`properties`:{`title`:{}},`unevaluatedProperties`:false}", "{`titel`:1}",
         "- 'titel': unknown field — remove it (did you mean 'title'?)\n"},
        {OBJECT("`status`:{`enum`:[`placed`,`shipped`,`delivered`]}"), "{`status`:`shipping`}",
         "- 'status': expected one of placed, shipped, delivered, got `shipping` (did you mean "
         "'shipped'?)\n"},
        {OBJECT("`status`:{`type`:`string`,`enum`:[`True`,`False`,`dontcare`]}"), "{`status`:true}",
         "- 'status': expected one of `True`, `False`, dontcare, got true (did you mean the string "
         "`True`?)\n"},
        {OBJECT("`v`:{`const`:`v2`}"), "{`v`:7}", "- 'v': must be `v2`, got 7\n"},
        {OBJECT("`items`:{`items`:{`properties`:{`price`:{`minimum`:0}}}}"), "{`items`:[{`price`:-1}]}",
         "- 'items[0].price': must be at least 0, got -1\n"},
        {OBJECT("`n`:{`exclusiveMinimum`:0}"), "{`n`:0}", "- 'n': must be more than 0, got 0\n"},
        {OBJECT("`n`:{`maximum`:10}"), "{`n`:11}", "- 'n': must be at most 10, got 11\n"},
        {OBJECT("`n`:{`exclusiveMaximum`:10}"), "{`n`:1e1}", "- 'n': must be less than 10, got 1e1\n"},
        {OBJECT("`n`:{`multipleOf`:0.01}"), "{`n`:1.005}", "- 'n': must be a multiple of 0.01, got 1.005\n"},
        {OBJECT("`s`:{`pattern`:`^[A-Z]+$`}"), "{`s`:`abc`}",
         "- 's': must match the pattern ^[A-Z]+$, got `abc`\n"},
        {OBJECT("`s`:{`minLength`:2}"), "{`s`:`ä`}", "- 's': must have at least 2 characters, got 1\n"},
        {OBJECT("`l`:{`minItems`:1}"), "{`l`:[]}", "- 'l': must have at least 1 item, got 0\n"},
        {OBJECT("`l`:{`maxItems`:1}"), "{`l`:[1,2]}", "- 'l': must have at most 1 item, got 2\n"},
        {OBJECT("`o`:{`minProperties`:1}"), "{`o`:{}}", "- 'o': must have at least 1 field, got 0\n"},
        {OBJECT("`l`:{`uniqueItems`:true}"), "{`l`:[1,2,1.0]}",
         "- 'l': items must differ from each other, but [0] and [2] are both 1.0\n"},
        {OBJECT("`l`:{`contains`:{`type`:`string`}}"), "{`l`:[1]}",
         "- 'l': must contain at least 1 item of the kind the schema describes (string), found 0\n"},
        {OBJECT("`a`:false"), "{`a`:1}", "- 'a': not allowed here — remove it\n"},
        {OBJECT("`a`:{`not`:{`enum`:[`x`]}}"), "{`a`:`x`}", "- 'a': must not be `x`\n"},
        {"{`not`:{`required`:[`a`,`b`]}}", "{`a`:1,`b`:1}",
         "- arguments: must not have 'a' and 'b' together\n"},
        {"{`dependentRequired`:{`a`:[`b`]}}", "{`a`:1}",
         "- 'b': required field is missing — provide a value (needed with 'a')\n"},
        {"{`propertyNames`:{`pattern`:`^[a-z]+$`}}", "{`A`:1}",
         "- 'A': invalid field name: must match the pattern ^[a-z]+$, got `A`\n"},
        {"{`type`:`object`}", "[]", "- arguments: expected object, got array\n"},
        {"{`if`:{`required`:[`a`]},`then`:{`required`:[`b`]}}", "{`a`:1}",
         "- 'b': required field is missing — provide a value\n"},
        {OBJECT("`a.b`:{`properties`:{`c d`:{`type`:`null`}}}"), "{`a.b`:{`c d`:1}}",
         "- '[`a.b`][`c d`]': expected null, got 1\n"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        expect_lines(table[i].schema, table[i].instance, table[i].line);
}

static void every_problem_is_said_at_once(void **state)
{
    (void)state;
    expect_lines("{`properties`:{`a`:{`type`:`string`,`minLength`:3,`pattern`:`^x`},`b`:{`type`:`integer`}},"
                 "`required`:[`c`]}",
                 "{`a`:`y`,`b`:null}",
                 "- 'c': required field is missing — provide a value\n"
                 "- 'a': must have at least 3 characters, got 1\n"
                 "- 'a': must match the pattern ^x, got `y`\n"
                 "- 'b': expected integer, got null\n");
}

static void what_two_rules_say_is_said_once(void **state)
{
    (void)state;
    expect_lines("{`allOf`:[{`required`:[`a`]},{`required`:[`a`]}]}", "{}",
                 "- 'a': required field is missing — provide a value\n");
}

static void long_values_are_cut(void **state)
{
    (void)state;
    struct buf json = buf_in(arena);
    buf_text(&json, "{`a`:`");
    for (int i = 0; i < 1000; i++)
        buf_text(&json, "é");
    buf_text(&json, "`}");
    buf_byte(&json, '\0');
    const char *lines = lines_of(compile(OBJECT("`a`:{`type`:`integer`}")), parse(json.at));
    assert_true(strlen(lines) < 130);
    assert_non_null(strstr(lines, "é…\"\n"));
}

static void lists_of_choices_are_cut(void **state)
{
    (void)state;
    expect_lines(
        "{`enum`:[1,2,3,4,5,6,7,8,9,10,11,12,13,14,`fifteen`]}", "`fiveteen`",
        "- arguments: expected one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, … (3 more), got `fiveteen` "
        "(did you mean 'fifteen'?)\n");
}

static void many_problems_are_counted(void **state)
{
    (void)state;
    struct buf json = buf_in(arena);
    buf_byte(&json, '[');
    for (int i = 0; i < 100; i++)
        buf_text(&json, i ? ",`x`" : "`x`");
    buf_text(&json, "]");
    buf_byte(&json, '\0');
    const char *lines = lines_of(compile("{`items`:{`type`:`integer`}}"), parse(json.at));
    assert_non_null(strstr(lines, "- '[31]': expected integer"));
    assert_null(strstr(lines, "'[32]'"));
    assert_non_null(strstr(lines, "- and 68 more\n"));
}

static void programs_get_json(void **state)
{
    (void)state;
    struct problems problems;
    struct buf out = buf_in(arena);
    struct json_out json = json_out(&out);
    problems_init(&problems, arena);
    schema_explain(compile(OBJECT("`items`:{`items`:{`properties`:{`s`:{`enum`:[`aa`,`bb`]}}}}")),
                   parse("{`items`:[{`s`:`aaa`}]}"), &problems);
    problem_json(&json, &problems.list[0]);
    buf_byte(&out, '\0');
    assert_string_equal(
        out.at, quoted("{`path`:`args.items[0].s`,`code`:`enum`,`message`:`expected one of aa, bb, got "
                       "\\`aaa\\` (did you mean 'aa'?)`,`severity`:`error`,`expected`:[`aa`,`bb`],"
                       "`got`:`aaa`}")
                    .at);
    assert_true(str_is(problems.list[0].suggestion, "\"aa\""));
}

static void what_is_missing_may_have_been_sent_under_another_name(void **state)
{
    (void)state;
#define FILE_SCHEMA "{`properties`:{`file_path`:{},`mode`:{}},`required`:[`file_path`]"
    expect_lines(
        FILE_SCHEMA "}", "{`path`:`a`,`mode`:1}",
        "- 'file_path': required field is missing — provide a value (did you send it as 'path'?)\n");
    expect_lines(FILE_SCHEMA "}", "{`mode`:1,`colour`:2}",
                 "- 'file_path': required field is missing — provide a value\n");
    expect_lines(FILE_SCHEMA ",`additionalProperties`:false}", "{`path`:`a`}",
                 "- 'file_path': required field is missing — provide a value\n"
                 "- 'path': unknown field — remove it (did you mean 'file_path'?)\n");
#undef FILE_SCHEMA
}

/* ---- the schema's own words ---- */

static struct str described(const char *schema, const char *instance)
{
    struct problems problems;
    problems_init(&problems, arena);
    schema_explain(compile(schema), parse(instance), &problems);
    assert_int_equal(problems.count, 1);
    return problems.list[0].description;
}

static void what_the_schema_says_of_a_place_goes_with_its_problem(void **state)
{
    (void)state;
#define ORDER                                                                                                \
    "{`properties`:{`id`:{`description`:` The order's id\\nin "                                              \
    "full`,`type`:`string`,`pattern`:`^W[0-9]+$`}},"
    assert_true(
        str_is(described(ORDER "`required`:[`id`],`description`:`An order`}", "{}"), "The order's id"));
    assert_true(str_is(described(ORDER "`description`:`An order`}", "{`id`:7}"), "The order's id"));
    assert_true(
        str_is(described(ORDER "`additionalProperties`:false,`description`:`An order`}", "{`x`:1}"), ""));
    assert_true(str_is(described(ORDER "`required`:[`x`],`description`:`An order`}", "{}"), ""));
    /* through a reference: what stands beside it, unless what it leads to says more */
    assert_true(str_is(
        described("{`$defs`:{`n`:{`minimum`:3}},`$ref`:`#/$defs/n`,`description`:`Outer`}", "1"), "Outer"));
    assert_true(str_is(described("{`$defs`:{`n`:{`minimum`:3,`description`:`Inner`}},`$ref`:`#/$defs/n`,"
                                 "`description`:`Outer`}",
                                 "1"),
                       "Inner"));
    /* an expression alone says little to a model */
    expect_lines(ORDER "`type`:`object`}", "{`id`:`77`}",
                 "- 'id': must match the pattern ^W[0-9]+$, got `77` (the schema says: The order's id)\n");
#undef ORDER
}

/* ---- alternatives ---- */

static void alternatives_are_never_noise(void **state)
{
    (void)state;
    static const char kinds[] =
        "{`oneOf`:[{`properties`:{`x`:{`type`:`integer`},`kind`:{`const`:`a`}},`required`:[`kind`,`x`]},"
        "{`properties`:{`kind`:{`const`:`b`},`y`:{`type`:`integer`}},`required`:[`kind`,`y`]}]}";
    static const struct {
        const char *schema, *instance, *lines;
    } table[] = {
        {kinds, "{`kind`:`a`,`x`:`1`}", "- 'x': expected integer, got `1`\n"},
        {kinds, "{`kind`:`b`,`x`:1}", "- 'y': required field is missing — provide a value\n"},
        {kinds, "{`kind`:`c`,`x`:1}", "- 'kind': expected one of a, b, got `c`\n"},
        {kinds, "{`x`:1}", "- 'kind': required field is missing — provide a value\n"},
        /* one branch takes strings, the other lists: the value's type chooses */
        {"{`anyOf`:[{`type`:`string`,`minLength`:2},{`type`:`array`,`items`:{`type`:`string`}}]}", "[1]",
         "- '[0]': expected string, got 1\n"},
        {"{`anyOf`:[{`type`:`string`,`enum`:[`a`,`b`]},{`type`:`null`}]}", "`c`",
         "- arguments: expected one of a, b or null, got `c`\n"},
        {"{`oneOf`:[{`const`:`x`},{`const`:`y`},{`type`:`null`}]}", "`z`",
         "- arguments: expected one of x, y or null, got `z`\n"},
        /* closeness: the second has the fields, one with a wrong value */
        {"{`anyOf`:[{`required`:[`p`,`q`]},{`required`:[`r`,`s`],`properties`:{`r`:{`type`:`integer`}}}]}",
         "{`r`:`1`,`s`:2}", "- 'r': expected integer, got `1`\n"},
        {"{`oneOf`:[{`required`:[`id`]},{`required`:[`query`]}]}", "{}",
         "- arguments: exactly one is required: 'id' or 'query'\n"},
        {"{`anyOf`:[{`required`:[`id`]},{`required`:[`query`]}]}", "{}",
         "- arguments: at least one is required: 'id' or 'query'\n"},
        {"{`oneOf`:[{`required`:[`id`]},{`required`:[`query`]}]}", "{`id`:1,`query`:2}",
         "- arguments: must fit exactly one alternative, but fits 'id' and 'query' — keep one\n"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        expect_lines(table[i].schema, table[i].instance, table[i].lines);
}

/* ---- strangers ---- */

static void strangers_are_told_from_the_declared(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *instance, *lines;
    } table[] = {
        {"{`properties`:{`limit`:{}}}", "{`lmit`:1,`other`:2}",
         "- 'lmit': unknown field — remove it (did you mean 'limit'?)\n- 'other': unknown field — remove "
         "it\n"},
        {"{`properties`:{`limit`:{}}}", "{`limit`:1}", ""},
        {"{`properties`:{},`patternProperties`:{`^x-`:{}}}", "{`x-a`:1}", ""},
        {"{`properties`:{},`additionalProperties`:{`type`:`integer`}}", "{`a`:1}", ""},
        {"{`type`:`object`}", "{`a`:1}", ""},
        {"{`allOf`:[{`properties`:{`a`:{}}},{`$ref`:`#/$defs/b`}],`$defs`:{`b`:{`properties`:{`b`:{}}}}}",
         "{`a`:1,`b`:2,`c`:3}", "- 'c': unknown field — remove it\n"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct problems problems;
        struct buf out = buf_in(arena);
        problems_init(&problems, arena);
        schema_unknown_properties(compile(table[i].schema), parse(table[i].instance), &problems);
        problems_text(&out, &problems);
        buf_byte(&out, '\0');
        assert_string_equal(out.at, table[i].lines);
        assert_int_equal(problems.errors, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_kind_has_its_line),
        TEST(every_problem_is_said_at_once),
        TEST(what_two_rules_say_is_said_once),
        TEST(long_values_are_cut),
        TEST(lists_of_choices_are_cut),
        TEST(many_problems_are_counted),
        TEST(programs_get_json),
        TEST(what_is_missing_may_have_been_sent_under_another_name),
        TEST(what_the_schema_says_of_a_place_goes_with_its_problem),
        TEST(alternatives_are_never_noise),
        TEST(strangers_are_told_from_the_declared),
    };
    return cmocka_run_group_tests_name("schema words", tests, NULL, NULL);
}

/* Which schemas compile with which warning, which are refused with which message, and the bounds of
 * validation. */
#include "schema/schema_support.h"

#include "base/map.h"
#include "golden.h"

static const char *refusal(const char *text)
{
    struct schema *schema;
    struct why why;
    enum err err = schema_compile(arena, parse(text), NULL, &schema, NULL, &why);
    assert_true(err == ERR_SCHEMA || err == ERR_LIMIT);
    assert_null(schema);
    return arena_dup(arena, str_of(why.text)).at;
}

TEST(invalid_schemas_are_refused_with_their_pointer)
{
    static const struct {
        const char *schema;
    } table[] = {
        {"5"},
        {"{`properties`:{`a/b`:7}}"},
        {"{`properties`:[]}"},
        {"{`items`:{`pattern`:`(`}}"},
        {"{`pattern`:`(?<=a+)b`}"},
        {"{`properties`:{`a`:{`$ref`:`#/$defs/x`}}}"},
        {"{`$ref`:`http://example.com/x.json`}"},
        {"{`$ref`:`#`}"},
        {"{`$schema`:`http://example.com/s`}"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        golden_row(table[i].schema, refusal(table[i].schema));
    golden_check_rows("load", "schema: what is refused");
}

TEST(small_faults_are_understood_with_a_warning)
{
    static const struct {
        const char *schema, *good, *bad, *warned_at;
    } table[] = {
        {"{`minimum`:1,`exclusiveMinimum`:true}", "2", "1", "#/exclusiveMinimum"},
        {"{`enum`:[`a`,`a`]}", "`a`", "`b`", "#/enum"},
        {"{`type`:`any`}", "1", NULL, "#/type"},
        {"{`type`:`float`}", "1.5", "`x`", "#/type"},
        {"{`type`:`string`,`nullable`:true,`enum`:[`a`]}", "null", "1", "#/type"},
        {"{`properties`:{`a`:{`required`:true}}}", "{}", NULL, "#/properties/a/required"},
        {"{`items`:[{`type`:`string`}]}", "[`a`]", "[1]", "#/items"},
        {"{`required`:[1],`type`:`object`}", "{}", "1", "#/required"},
        {"{`minLength`:`1`}", "``", NULL, "#/minLength"},
        {"{`anyOf`:[]}", "1", NULL, "#/anyOf"},
        {"{`properties`:{`a`:{`type`:`array`,`enum`:[`x`]}}}", "{}", "{`a`:[`x`]}", "#/properties/a"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct schema *schema;
        struct problems warnings;
        problems_init(&warnings, arena);
        assert_int_equal(schema_compile(arena, parse(table[i].schema), NULL, &schema, &warnings, NULL), OK);
        assert_int_equal(schema_validate(schema, parse(table[i].good)), SCHEMA_VALID);
        if (table[i].bad)
            assert_int_equal(schema_validate(schema, parse(table[i].bad)), SCHEMA_INVALID);
        assert_int_equal(warnings.count, 1);
        assert_true(warnings.list[0].warning);
        assert_true(str_is(warnings.list[0].path, table[i].warned_at));
    }
}

TEST(formats_can_be_annotations)
{
    struct schema_options options = {.annotate_format = true};
    struct schema *schema;
    assert_int_equal(schema_compile(arena, parse("{`format`:`ipv4`}"), &options, &schema, NULL, NULL), OK);
    assert_int_equal(schema_validate(schema, parse("`x`")), SCHEMA_VALID);
    assert_int_equal(schema_validate(compile("{`format`:`ipv4`}"), parse("`x`")), SCHEMA_INVALID);
    assert_int_equal(schema_validate(compile("{`format`:`uuid4`}"), parse("`x`")), SCHEMA_VALID);
}

TEST(documents_come_from_the_registry)
{
    struct map *registry = map_new(arena);
    struct schema_options options = {.registry = registry};
    struct schema *schema;
    schema_registry_add(registry, STR_LIT("http://example.com/n.json"), parse("{`type`:`integer`}"));
    assert_int_equal(schema_compile(arena, parse("{`$id`:`http://example.com/a/b`,`$ref`:`../n.json`}"),
                                    &options, &schema, NULL, NULL),
                     OK);
    assert_int_equal(schema_validate(schema, parse("1")), SCHEMA_VALID);
    assert_int_equal(schema_validate(schema, parse("`x`")), SCHEMA_INVALID);
}

/* ---- bounds ---- */

/* {"kind":"a","child":{"kind":…}} `levels` deep, the kind before its child or after it. */
static const char *nested(unsigned levels, bool kind_first, const char *leaf)
{
    struct buf out = buf_in(arena);
    for (unsigned i = 0; i < levels; i++)
        buf_text(&out, kind_first ? "{`kind`:`b`,`child`:" : "{`child`:");
    buf_text(&out, leaf);
    for (unsigned i = 0; i < levels; i++)
        buf_text(&out, kind_first ? "}" : ",`kind`:`b`}");
    buf_byte(&out, '\0');
    return out.at;
}

#define BRANCH(kind)                                                                                         \
    "{`type`:`object`,`properties`:{`child`:{`$ref`:`#/$defs/n`},`kind`:{`const`:`" kind                     \
    "`}},`required`:[`kind`]}"

TEST(nested_alternatives_are_selected_by_discriminator)
{
    const struct schema *schema =
        compile("{`$ref`:`#/$defs/n`,`$defs`:{`n`:{`oneOf`:[{`type`:`null`}," BRANCH("a") "," BRANCH(
            "b") "," BRANCH("c") "]}}}");
    for (int kind_first = 0; kind_first < 2; kind_first++) {
        const struct json *good = parse(nested(20, kind_first, "null")),
                          *bad = parse(nested(20, kind_first, "5"));
        struct schema_work work = {0};
        struct schema_remarks remarks;
        assert_int_equal(schema_inspect(schema, good, &remarks, &work), SCHEMA_VALID);
        assert_int_equal(schema_inspect(schema, bad, &remarks, &work), SCHEMA_INVALID);
        assert_true(work.steps < 2000); /* each level would double them */
        assert_non_null(strstr(lines_of(schema, bad), ", got number 5"));
    }
}

TEST(too_many_steps_are_reported)
{
    const struct schema *schema =
        compile("{`$ref`:`#/$defs/n`,`$defs`:{`n`:{`anyOf`:["
                "{`type`:`object`,`properties`:{`c`:{`$ref`:`#/$defs/n`}},`required`:[`x`]},"
                "{`type`:`object`,`properties`:{`c`:{`$ref`:`#/$defs/n`}}},{`type`:`null`}]}}}");
    struct buf out = buf_in(arena);
    for (int i = 0; i < 40; i++)
        buf_text(&out, "{`c`:");
    buf_text(&out, "null");
    for (int i = 0; i < 40; i++)
        buf_text(&out, ",`x`:1}");
    buf_byte(&out, '\0');
    assert_int_equal(schema_validate(schema, parse(out.at)), SCHEMA_VALID);
    /* never valid at the bottom, so that every alternative of every level is tried */
    const char *text = out.at;
    char *leaf = strstr(text, "null");
    memcpy(leaf, "7777", 4);
    struct problems problems;
    problems_init(&problems, arena);
    assert_int_equal(schema_explain(schema, parse(text), &problems, NULL), SCHEMA_TOO_COMPLEX);
    assert_int_equal(problems.count, 1);
    assert_string_equal(problems.list[0].code, "too_complex");
}

TEST(patterns_are_bounded)
{
    const struct schema *schema = compile("{`pattern`:`^(a+)+$`}");
    struct buf out = buf_in(arena);
    buf_byte(&out, '"');
    for (int i = 0; i < 4000; i++)
        buf_byte(&out, 'a');
    buf_text(&out, "b\"");
    buf_byte(&out, '\0');
    assert_int_equal(schema_validate(schema, parse(out.at)), SCHEMA_TOO_COMPLEX);
}

TEST(deep_schemas_are_refused)
{
    struct buf deep = buf_in(arena), chain = buf_in(arena);
    for (int i = 0; i < 70; i++)
        buf_text(&deep, "{`not`:");
    buf_text(&deep, "{}");
    for (int i = 0; i < 70; i++)
        buf_byte(&deep, '}');
    buf_byte(&deep, '\0');
    golden_check("load", "schema: nested too deep", refusal(deep.at));
    buf_text(&chain, "{`$ref`:`#/$defs/d0`,`$defs`:{");
    for (int i = 0; i < 5000; i++)
        buf_printf(&chain, "`d%d`:{`$ref`:`#/$defs/d%d`},", i, i + 1);
    buf_text(&chain, "`d5000`:{}}}");
    buf_byte(&chain, '\0');
    golden_check("load", "schema: too many references in a row", refusal(chain.at));
}

TEST(validation_allocates_nothing)
{
    const struct schema *schema = compile(
        "{`properties`:{`a`:{`type`:`array`,`items`:{`type`:`integer`,`multipleOf`:1},`uniqueItems`:true},"
        "`s`:{`pattern`:`^[a-z]+$`,`format`:`hostname`},`o`:{`anyOf`:[{`type`:`null`},{`type`:`string`}]}},"
        "`required`:[`a`],`unevaluatedProperties`:false}");
    const struct json *v = parse("{`a`:[1,2,3],`s`:`abc`,`o`:null}");
    assert_int_equal(schema_validate(schema, v), SCHEMA_VALID);
    size_t bytes = arena_live_bytes(), mallocs = arena_malloc_count();
    for (int i = 0; i < 1000; i++)
        assert_int_equal(schema_validate(schema, v), SCHEMA_VALID);
    assert_int_equal(arena_live_bytes(), bytes);
    assert_int_equal(arena_malloc_count(), mallocs);
}

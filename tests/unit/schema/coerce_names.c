/* Names that differ from one declared name in case, separators or a final s: which are renamed, in invalid
 * values and in valid ones, and which never are. */
#include "schema/schema_support.h"

#include "schema/coerce.h"

static const char *renamed(const char *schema_text, const char *instance)
{
    const struct schema *schema = compile(schema_text);
    const struct json *v = parse(instance), *named;
    struct coerce_options without = coerce_options_all;
    without.names = false;
    if (schema_validate(schema, v) == SCHEMA_VALID) {
        assert_ptr_equal(schema_coerce(schema, v, &coerce_options_all, arena, NULL), v);
        named = schema_coerce_names(schema, v, &coerce_options_all, arena, NULL);
        assert_ptr_equal(schema_coerce_names(schema, v, &without, arena, NULL), v);
    } else {
        named = schema_coerce(schema, v, &coerce_options_all, arena, NULL);
        const struct json *again = schema_coerce(schema, named, &coerce_options_all, arena, NULL);
        assert_string_equal(written(again), written(named)); /* idempotent */
    }
    return named == v ? "as it was" : written(named);
}

#define CLOSED "`additionalProperties`:false,"
#define OPEN(rest)                                                                                           \
    "{" rest "`properties`:{`file_path`:{`type`:`string`},`limit`:{`type`:`integer`},`ids`:{`type`:`array`," \
    "`items`:{`type`:`string`}}}}"
#define PATH OPEN("`required`:[`file_path`],")

static const struct {
    const char *schema, *instance, *renamed;
} names[] = {
    {PATH, "{`filePath`:`x`}", "{`file_path`:`x`}"},
    {PATH, "{`FILE-PATH`:`x`}", "{`file_path`:`x`}"},
    {PATH, "{`file_paths`:`x`}", "{`file_path`:`x`}"},
    {PATH, "{ `b`:1.0, `filepath`:`x`, `limit`: 2 }", "{`b`:1.0,`file_path`:`x`,`limit`:2}"},
    {PATH, "{`path`:`x`}", "as it was"},
    {PATH, "{`file_path`:`x`,`Limit`:5}", "{`file_path`:`x`,`limit`:5}"},
    {PATH, "{`file_path`:`x`,`Limit`:`5`}", "{`file_path`:`x`,`limit`:5}"},
    {PATH, "{`file_path`:`x`,`Limit`:`five`}", "as it was"},
    {PATH, "{`file_path`:`x`,`id`:`7`}", "{`file_path`:`x`,`ids`:[`7`]}"},
    {PATH, "{`filePath`:`x`,`Limit`:1,`ID`:`a`}", "{`file_path`:`x`,`limit`:1,`ids`:[`a`]}"},
    {OPEN(CLOSED), "{`Limit`:5}", "{`limit`:5}"},
    {OPEN(CLOSED), "{`Limits`:5}", "{`limit`:5}"},
    /* the right name is there too, or two spellings of it */
    {PATH, "{`file_path`:`x`,`filePath`:`y`}", "as it was"},
    {OPEN(CLOSED), "{`limit`:4,`Limit`:5}", "as it was"},
    {OPEN(CLOSED), "{`LIMIT`:4,`Limit`:5}", "as it was"},
    {OPEN(""), "{`limit`:null,`Limit`:5}", "as it was"},
    {PATH, "{`filePath`:`x`,`FilePath`:`x`}", "as it was"},
    /* two declared names */
    {"{`properties`:{`tag`:{},`tags`:{}}}", "{`Tag`:1}", "{`tag`:1}"}, /* case and separators come first */
    {"{`properties`:{`tag`:{},`tags`:{}}}", "{`TAGS`:1,`tag`:2}", "{`tags`:1,`tag`:2}"},
    {"{`properties`:{`tag`:{},`TAGS`:{}}}", "{`tags`:1,`tag`:2}", "{`TAGS`:1,`tag`:2}"},
    {"{`properties`:{`Alias`:{},`alia`:{},`aliass`:{}}}", "{`aliasS`:1}", "{`aliass`:1}"},
    {"{`properties`:{`alias`:{},`aliasss`:{}}}", "{`aliass`:1}", "as it was"},
    {"{`properties`:{`user_id`:{},`userId`:{}}}", "{`user-id`:1}", "as it was"},
    {"{`properties`:{`tag`:{}}}", "{`tag`:1,`Tags`:1}", "as it was"},
    /* a separator between digits counts, and so does the case of one letter */
    {"{`properties`:{`v1_1`:{}}}", "{`v11`:1}", "as it was"},
    {"{`properties`:{`v1_1`:{}}}", "{`v1-1`:1}", "{`v1_1`:1}"},
    {"{`properties`:{`-i`:{}}}", "{`I`:1}", "as it was"},
    {"{`properties`:{`-i`:{}}}", "{`i`:1}", "{`-i`:1}"},
    {"{`properties`:{`K`:{}}}", "{`Ks`:1}", "{`K`:1}"},
    {"{`properties`:{`-i`:{}}}", "{`is`:1}", "{`-i`:1}"},
    {"{`properties`:{`_`:{}}}", "{`-`:1}", "as it was"},
    /* the keys of a map are data */
    {"{`properties`:{`limit`:{}},`additionalProperties`:{`type`:`integer`}}", "{`Limit`:5}", "as it was"},
    {"{`properties`:{`limit`:{}},`patternProperties`:{`^x-`:{}}}", "{`Limit`:5}", "as it was"},
    {"{`properties`:{`limit`:{}},`unevaluatedProperties`:{`type`:`integer`}}", "{`Limit`:5}", "as it was"},
    {"{`type`:`object`}", "{`Limit`:5}", "as it was"},
    {"{`required`:[`limit`]}", "{`Limit`:5}", "as it was"},
    {"{`properties`:{`limit`:{}},`additionalProperties`:true}", "{`Limit`:5}", "{`limit`:5}"},
    {"{`properties`:{`meta`:{`properties`:{`source`:{}},`additionalProperties`:true}}}",
     "{`meta`:{`Source`:1}}", "as it was"},
    {"{`properties`:{`meta`:{`properties`:{`source`:{}},`required`:[`source`],`additionalProperties`:true}}}",
     "{`meta`:{`Source`:1}}", "{`meta`:{`source`:1}}"},
    {"{`properties`:{`headers`:{`additionalProperties`:{`type`:`string`}},`limit`:{}}}",
     "{`headers`:{`Limit`:`5`}}", "as it was"},
    /* at every depth */
    {"{`properties`:{`edits`:{`type`:`array`,`items`:" OPEN("") "}}}", "{`edits`:[{`Limit`:5},{`limit`:6}]}",
     "{`edits`:[{`limit`:5},{`limit`:6}]}"},
    {"{`properties`:{`edits`:{`type`:`array`,`items`:" PATH "}}}", "{`Edits`:{`filePath`:`x`}}",
     "{`edits`:[{`file_path`:`x`}]}"},
    {"{`$ref`:`#/$defs/a`,`$defs`:{`a`:" PATH "}}", "{`filePath`:`x`}", "{`file_path`:`x`}"},
    {"{`allOf`:[" PATH ",{`properties`:{`to`:{}}}]}", "{`filePath`:`x`,`To`:1}", "{`file_path`:`x`,`to`:1}"},
    {"{`allOf`:[" PATH ",{`properties`:{`filePath`:{}}}]}", "{`filePath`:`x`,`file_path`:`y`}", "as it was"},
    /* in branches: of the one that applies, or where the object fits in no other way */
    {"{`anyOf`:[" PATH ",{`type`:`null`}]}", "{`filePath`:`x`}", "{`file_path`:`x`}"},
    {"{`anyOf`:[{`properties`:{`a1`:{}},`required`:[`a1`]},{`properties`:{`b1`:{}},`required`:[`b1`]}]}",
     "{`a1`:1,`B1`:2}", "as it was"},
    {"{`anyOf`:[{`properties`:{`a1`:{}},`required`:[`a1`]},{`properties`:{`b1`:{}},`required`:[`b1`]}]}",
     "{`B1`:2}", "{`b1`:2}"},
    {"{`oneOf`:[{`properties`:{`kind`:{`const`:`x`},`n`:{`type`:`integer`}},`required`:[`kind`]},"
     "{`properties`:{`kind`:{`const`:`y`},`n`:{`type`:`string`}},`required`:[`kind`]}]}",
     "{`Kind`:`y`,`n`:1}", "{`kind`:`y`,`n`:`1`}"},
};

TEST(are_renamed_if_one_declared_name_is_meant)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *got = renamed(names[i].schema, names[i].instance);
        if (strcmp(got, quoted(names[i].renamed).at) != 0)
            fail_msg("%s %s became %s", names[i].schema, names[i].instance, got);
    }
}

TEST(of_many_undeclared_members_are_left_alone)
{
    struct buf text = buf_in(arena);
    buf_text(&text, "{");
    for (unsigned i = 0; i < 64; i++)
        buf_printf(&text, "`k%u`:1,", i);
    buf_text(&text, "`Limit`:5}");
    assert_string_equal(renamed(OPEN(""), arena_dup(arena, buf_view(&text)).at), "as it was");
}

/* Every sample is valid, and most schemas have one. */
#include "schema/sample.h"
#include "schema/schema_support.h"

#include <glob.h>
#include <sys/stat.h>

#define BESIDE_US "../shared/data/corpus"

static const char *sample_of(const char *source, enum sample_extent extent)
{
    struct json out;
    if (!schema_sample(arena, compile(source), extent, &out))
        return "none";
    return written(&out);
}

static void expect(const char *source, enum sample_extent extent, const char *wanted)
{
    assert_string_equal(sample_of(source, extent), quoted(wanted).at);
}

TEST(uses_the_values_that_the_schema_names)
{
    expect("{`const`:7}", SAMPLE_ALL, "7");
    expect("{`enum`:[`low`,`high`]}", SAMPLE_ALL, "`low`");
    expect("{`enum`:[`low`,`high`],`default`:`high`}", SAMPLE_ALL, "`high`");
    expect("{`type`:`integer`,`examples`:[42]}", SAMPLE_ALL, "42");
    expect("{`type`:`integer`,`default`:`x`}", SAMPLE_ALL, "1");
    expect("{`type`:[`null`,`boolean`]}", SAMPLE_ALL, "true");
}

/* Many alternatives over one large object: each was to copy all of it. */
TEST(copies_no_large_object_for_each_part)
{
    struct buf source = buf_in(arena);
    size_t before = arena_bytes(arena);
    buf_text(&source, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 4000; i++)
        buf_printf(&source, "%s\"p%d\":true", i ? "," : "", i);
    buf_text(&source, "},\"allOf\":[{}");
    for (int i = 0; i < 2500; i++)
        buf_printf(&source, ",{\"properties\":{\"q%d\":true}}", i);
    buf_text(&source, "]}");
    buf_byte(&source, '\0');
    sample_of(source.at, SAMPLE_REQUIRED);
    assert_true(arena_bytes(arena) - before < 100000000);
}

TEST(stays_within_bounds)
{
    expect("{`type`:`integer`,`minimum`:10}", SAMPLE_ALL, "10");
    expect("{`type`:`integer`,`maximum`:-3}", SAMPLE_ALL, "-3");
    assert_string_equal(sample_of("{`type`:`integer`,`exclusiveMinimum`:10,`multipleOf`:5}", SAMPLE_ALL),
                        "15");
    expect("{`type`:`number`,`minimum`:0.25,`maximum`:0.5}", SAMPLE_ALL, "0.5");
    expect("{`type`:`string`,`minLength`:6}", SAMPLE_ALL, "`textxx`");
    expect("{`type`:`string`,`maxLength`:2}", SAMPLE_ALL, "`te`");
    expect("{`type`:`string`,`format`:`date`}", SAMPLE_ALL, "`2026-05-03`");
    expect("{`type`:`array`,`items`:{`type`:`integer`},`minItems`:3,`uniqueItems`:true}", SAMPLE_ALL,
           "[1,2,3]");
    expect("{`type`:`array`,`maxItems`:0}", SAMPLE_ALL, "[]");
}

#define ORDER                                                                                                \
    "{`type`:`object`,`properties`:{`id`:{`$ref`:`#/$defs/id`},`note`:{`type`:`string`},"                    \
    "`lines`:{`type`:`array`,`items`:{`$ref`:`#/$defs/line`}}},`required`:[`id`,`by`],"                      \
    "`$defs`:{`id`:{`type`:`integer`},`line`:{`type`:`object`,`properties`:{`n`:"                            \
    "{`type`:`integer`},`of`:{`$ref`:`#/$defs/line`}},`required`:[`n`]}}}"

TEST(gives_required_or_all_properties)
{
    expect(ORDER, SAMPLE_REQUIRED, "{`id`:1,`by`:`by`}");
    const char *all = sample_of(ORDER, SAMPLE_ALL);
    assert_non_null(strstr(all, quoted("`note`:`note`,`lines`:[{`n`:1,`of`:{`n`:1").at));
    expect("{`properties`:{`a`:{},`b`:{}},`minProperties`:1}", SAMPLE_REQUIRED, "{`a`:`a`}");
    expect("{`properties`:{`a`:{},`b`:{}},`required`:[`a`],`dependentRequired`:{`a`:[`b`]}}", SAMPLE_REQUIRED,
           "{`a`:`a`,`b`:`b`}");
}

TEST(selects_a_branch_that_is_valid)
{
    expect("{`anyOf`:[{`type`:`integer`},{`type`:`null`}]}", SAMPLE_ALL, "1");
    expect("{`anyOf`:[false,{`type`:`integer`}]}", SAMPLE_ALL, "1");
    expect("{`allOf`:[{`properties`:{`a`:{`type`:`integer`}},`required`:[`a`]},{`required`:[`b`]}]}",
           SAMPLE_REQUIRED, "{`a`:1,`b`:`b`}");
}

TEST(reports_that_there_is_no_sample)
{
    expect("false", SAMPLE_ALL, "none");
    expect("{`type`:`integer`,`minimum`:3,`maximum`:2}", SAMPLE_ALL, "none");
    expect("{`type`:`string`,`pattern`:`^(?=.*a)(?=.*b)c$`}", SAMPLE_ALL, "none");
    expect("{`not`:{}}", SAMPLE_ALL, "none");
}

TEST(makes_strings_for_patterns)
{
    static const char *const patterns[] = {"^ord_[0-9a-f]{8}$",
                                           "^[A-Z]{2,3}-\\\\d+$",
                                           "^(low|high)$",
                                           "^\\\\w+@\\\\w+\\\\.[a-z]{2,}$",
                                           "^\\\\+?[1-9]\\\\d{6,14}$",
                                           "^(?:a|b)(?<n>c)?d*$",
                                           "^[^/]+/[^/]+$",
                                           "^[\\\\w.-]+$",
                                           "^$",
                                           "x",
                                           "^[a-z][a-z0-9_]{2,}$"};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct str source = arena_printf(arena, "{`type`:`string`,`pattern`:`%s`}", patterns[i]);
        if (strcmp(sample_of(source.at, SAMPLE_ALL), "none") == 0)
            fail_msg("no text for %s", patterns[i]);
    }
    assert_int_equal(sample_pattern(arena, STR_LIT("(a")).len, 0);
    assert_int_equal(sample_pattern(arena, STR_LIT("a{500}")).len, 0);
    assert_int_equal(sample_pattern(arena, STR_LIT("[a")).len, 0);
    assert_int_equal(sample_pattern(arena, STR_LIT("a)b")).len, 0);
}

/* ---- recorded tools ---------------------------------------------------------- */

struct tally {
    unsigned schemas, required, all;
};

static void sample_tool(struct tally *tally, const struct json *tool)
{
    const struct json *source = json_get_text(tool, "inputSchema");
    struct schema *schema;
    struct json out;
    struct why why;
    if (!source || schema_compile(arena, source, NULL, &schema, NULL, &why) != OK)
        return;
    tally->schemas++;
    tally->required += schema_sample(arena, schema, SAMPLE_REQUIRED, &out);
    tally->all += schema_sample(arena, schema, SAMPLE_ALL, &out);
}

TEST(most_recorded_tools_have_a_sample)
{
    const char *told = getenv("TOOLGATE_CORPUS"), *root = told ? told : BESIDE_US;
    struct tally tally = {0};
    glob_t files;
    struct str pattern = arena_printf(arena, "%s/tools-*.json", root);
    if (glob(pattern.at, 0, NULL, &files)) {
        printf("schema_sample: no corpus at %s, skipped\n", root);
        skip();
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct json *tools = ARENA_NEW(arena, struct json);
        struct why why;
        assert_int_equal(json_read_file(arena, files.gl_pathv[i], 16u << 20, tools, &why), OK);
        for (uint32_t k = 0; k < tools->len; k++)
            sample_tool(&tally, &tools->items[k]);
    }
    globfree(&files);
    printf("schema_sample: %u schemas, %u with a required sample, %u with a full one\n", tally.schemas,
           tally.required, tally.all);
    assert_true(tally.required * 1000 >= tally.schemas * 995);
    assert_true(tally.all * 1000 >= tally.schemas * 995);
}

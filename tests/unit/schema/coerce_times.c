/* Date-times without their zone: where they are valid, what a zone makes of them, and that a value that fits
 * without that leniency is judged and kept as before. */
#include "schema/schema_support.h"

#include "base/date.h"
#include "schema/coerce.h"

#define TIME  "{`type`:`string`,`format`:`date-time`}"
#define LOCAL "`2026-05-03T10:00:00`"

static struct schema *compile_lenient(const char *text)
{
    const struct schema_options options = {.local_times = true};
    struct schema *schema;
    struct why why;
    if (schema_compile(arena, parse(text), &options, &schema, NULL, &why) != OK)
        fail_msg("%s: %s", text, why.text);
    return schema;
}

static const struct time_zone *zone(const char *name)
{
    const struct time_zone *found;
    struct why why;
    if (time_zone_load(arena, str_of(name), &found, &why) != OK)
        fail_msg("%s", why.text);
    return found;
}

/* What the instance becomes, or "invalid"; its warnings and errors are counted. */
static const char *timed(const char *schema_text, const char *instance, const char *zone_name,
                         size_t *reports)
{
    const struct schema *schema = compile_lenient(schema_text);
    const struct json *v = parse(instance);
    struct schema_remarks remarks;
    struct problems problems;
    problems_init(&problems, arena);
    assert_int_equal(schema_explain(schema, v, &problems, NULL), schema_inspect(schema, v, &remarks, NULL));
    assert_int_equal(schema_validate(schema, v) == SCHEMA_VALID, problems.errors == 0);
    *reports = 0;
    if (problems.errors)
        return "invalid";
    if (remarks.local_times)
        v = schema_coerce_times(schema, v, zone_name ? zone(zone_name) : NULL, &problems, NULL);
    *reports = problems.count;
    return problems.errors ? "refused" : written(v);
}

static const struct {
    const char *schema, *instance, *zone, *becomes;
    size_t reports;
} times[] = {
    {TIME, LOCAL, NULL, LOCAL, 1},
    {TIME, LOCAL, "Europe/Berlin", "`2026-05-03T10:00:00+02:00`", 0},
    {TIME, "`2026-01-03T10:00:00.25`", "Europe/Berlin", "`2026-01-03T10:00:00.25+01:00`", 0},
    {TIME, LOCAL, "America/St_Johns", "`2026-05-03T10:00:00-02:30`", 0},
    {TIME, LOCAL, "UTC", "`2026-05-03T10:00:00Z`", 0},
    {TIME, "`2026-05-03T10:00:00Z`", "Europe/Berlin", "`2026-05-03T10:00:00Z`", 0},
    {TIME, "`2026-03-29T02:30:00`", "Europe/Berlin", "refused", 1},
    {TIME, "`2026-10-25T02:30:00`", "Europe/Berlin", "refused", 1},
    {TIME, "`1880-01-01T00:00:00`", "Europe/Berlin", "refused", 1}, /* an offset with seconds */
    {TIME, "`2026-05-03T10:00:60`", "UTC", "invalid", 0},
    {TIME, "`2026-02-29T10:00:00`", "UTC", "invalid", 0},
    {TIME, "`2026-05-03 10:00:00`", "UTC", "invalid", 0},
    {TIME, "`2026-05-03`", "UTC", "invalid", 0},
    {"{`type`:`string`,`format`:`time`}", "`10:00:00`", "UTC", "`10:00:00`", 0}, /* no zone is made up */
    /* through references, lists, patterns and branches */
    {"{`properties`:{`a`:{`$ref`:`#/$defs/t`}},`$defs`:{`t`:" TIME "}}", "{`b`:1.0,`a`:" LOCAL "}", "UTC",
     "{`b`:1.0,`a`:`2026-05-03T10:00:00Z`}", 0},
    {"{`items`:" TIME "}", "[" LOCAL ",`2026-05-03T10:00:00Z`," LOCAL "]", NULL,
     "[" LOCAL ",`2026-05-03T10:00:00Z`," LOCAL "]", 1}, /* one for the group */
    {"{`patternProperties`:{`^t`:" TIME "}}", "{`t1`:" LOCAL "}", "UTC", "{`t1`:`2026-05-03T10:00:00Z`}", 0},
    {"{`anyOf`:[{`type`:`null`}," TIME "]}", LOCAL, "UTC", "`2026-05-03T10:00:00Z`", 0},
    {"{`oneOf`:[{`properties`:{`k`:{`const`:1},`t`:" TIME "}},{`properties`:{`k`:{`const`:2}}}]}",
     "{`k`:1,`t`:" LOCAL "}", "UTC", "{`k`:1,`t`:`2026-05-03T10:00:00Z`}", 0},
    /* what fits without leniency is not touched, and not refused because of it */
    {"{`anyOf`:[" TIME ",{`type`:`string`}]}", LOCAL, "UTC", LOCAL, 0},
    {"{`oneOf`:[" TIME ",{`pattern`:`^2026`}]}", LOCAL, "UTC", LOCAL, 0},
    {"{`not`:" TIME "}", LOCAL, "UTC", LOCAL, 0},
    {"{`properties`:{`a`:{`not`:" TIME "},`b`:" TIME "}}", "{`a`:" LOCAL ",`b`:" LOCAL "}", "UTC", "invalid",
     0},
    /* another rule of the same field still holds */
    {"{`type`:`string`,`format`:`date-time`,`maxLength`:19}", LOCAL, NULL, LOCAL, 1},
    {"{`type`:`string`,`format`:`date-time`,`maxLength`:19}", LOCAL, "UTC", LOCAL, 1},
    {"{`type`:`string`,`format`:`date-time`,`pattern`:`Z$`}", LOCAL, "UTC", "invalid", 0},
};

TEST(get_a_zone_or_a_warning)
{
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        size_t reports;
        const char *got = timed(times[i].schema, times[i].instance, times[i].zone, &reports);
        if (strcmp(got, quoted(times[i].becomes).at) != 0 || reports != times[i].reports)
            fail_msg("%s %s became %s with %zu reports", times[i].schema, times[i].instance, got, reports);
    }
}

TEST(are_invalid_for_a_strict_schema)
{
    const struct json *v = parse(LOCAL);
    struct schema_remarks remarks;
    assert_int_equal(schema_inspect(compile(TIME), v, &remarks, NULL), SCHEMA_INVALID);
    assert_false(remarks.local_times);
}

/* A repair elsewhere does not stumble over them. */
TEST(stay_beside_a_coerced_value)
{
    const struct schema *schema =
        compile_lenient("{`properties`:{`n`:{`type`:`integer`},`l`:{`type`:`array`,`items`:" TIME "}}}");
    const struct json *v =
        schema_coerce(schema, parse("{`n`:`5`,`l`:" LOCAL "}"), &coerce_options_all, arena, NULL);
    assert_string_equal(written(v), quoted("{`n`:5,`l`:[" LOCAL "]}").at);
}

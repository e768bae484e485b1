/* Verdicts conform to the JSON Schema that toolgate publishes. */
#include "arena_case.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "schema/schema.h"

static const struct schema *published(struct str text)
{
    struct schema *schema;
    struct why why;
    if (schema_compile(arena, value_of_str(text), NULL, &schema, NULL, &why) != OK)
        fail_msg("%s", why.text);
    return schema;
}

static struct verdict verdict_of(enum error_class class)
{
    struct verdict v = {.class = class, .kind = error_class_info(class)->verdict, .after_s = -1};
    problems_init(&v.problems, arena);
    return v;
}

static const struct json *json_of(const struct verdict *v)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    verdict_write(&out, v);
    json_close(&out, '}');
    return value_of_str(buf_view(&text));
}

TEST(every_class_fits_the_schema)
{
    const struct schema *schema = published(verdict_schema());
    for (int i = 0; i < CLASS_COUNT; i++) {
        struct verdict v = verdict_of((enum error_class)i);
        const struct json *json = json_of(&v);
        assert_int_equal(schema_validate(schema, json), SCHEMA_VALID);
        assert_true(str_is(json_str(json_get_text(json, "error_class")),
                           error_class_info((enum error_class)i)->name));
    }
}

TEST(a_full_verdict_fits_the_schema)
{
    struct verdict v = verdict_of(CLASS_INVALID_ARGUMENTS);
    v.code = STR_LIT("invalid_arguments");
    v.hint = STR_LIT("correct it");
    v.attempt = 1;
    v.attempts_left = 2;
    v.has_budget = true;
    v.rewrites = value_of_str(STR_LIT("[{\"op\":\"remove\",\"path\":\"/limit\"}]"));
    v.facts = value_of_str(STR_LIT("{\"events\":3}"));
    v.coverage = STR_LIT("SATISFIED");
    v.engine = "local";
    v.no_progress = VERDICT_NO_PROGRESS;
    problems_add(&v.problems, (struct problem){.path = STR_LIT("status"),
                                               .code = "enum",
                                               .message = STR_LIT("expected one of a, b"),
                                               .got = STR_LIT("\"c\""),
                                               .suggestion = STR_LIT("\"a\"")});
    const struct json *json = json_of(&v);
    assert_int_equal(schema_validate(published(verdict_schema()), json), SCHEMA_VALID);
    const struct json *suggestion = &json_get_text(json, "suggestions")->items[0];
    assert_true(str_is(json_str(json_get_text(suggestion, "path")), "args.status"));
    assert_true(str_is(json_str(json_get_text(suggestion, "value")), "a"));
    int64_t left;
    assert_true(json_int(json_get_text(json, "attempts_left"), &left));
    assert_int_equal(left, 2);
}

TEST(a_coverage_fits_its_schema)
{
    const struct schema *schema = published(coverage_schema());
    assert_int_equal(
        schema_validate(schema, value_of_str(STR_LIT("{\"coverage\":\"SATISFIED\",\"facts\":{\"a\":1}}"))),
        SCHEMA_VALID);
    assert_int_equal(schema_validate(schema, value_of_str(STR_LIT("{\"coverage\":\"DONE\"}"))),
                     SCHEMA_INVALID);
}

/* What of a result does not make it a new one. */

#include "arena_case.h"
#include "result/result.h"

static struct str masked(const char *json, bool digits)
{
    struct buf out = buf_in(arena);
    result_mask_write(&out, arena, value_of(json), digits);
    buf_byte(&out, '\0');
    return buf_view(&out);
}

TEST(texts_without_what_changes_by_itself)
{
    static const struct {
        const char *text, *result;
    } table[] = {
        {"\"done at 2026-05-03T10:00:00.5Z.\"", "\"done at #.\""},
        {"\"on 2026-05-03, 9:05, not 19.5 or 12\"", "\"on #, #, not 19.5 or 12\""},
        {"\"id 3f2504e0-4f89-41d3-9a0c-0305e82c3301 deadbeef9 12345678 v1.2.3\"",
         "\"id # # 12345678 v1.2.3\""},
        {"{\"elapsed_ms\":12,\"createdAt\":\"x\",\"flat\":1,\"at\":3}",
         "{elapsed_ms:#,createdAt:#,flat:1,at:#,}"},
        {"[{\"text\":\"{\\\"time\\\": 3, \\\"price\\\": 4}\"}]", "[{text:\"{time:#,price:4,}\",},]"},
        {"\"{not json 10:00\"", "\"{not json #\""},
        {"{\"traceId\":{\"deep\":1}}", "{traceId:{deep:1,},}"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_string_equal(table[i].result, masked(table[i].text, false).at);
}

TEST(digits_of_failures)
{
    assert_string_equal("\"try #: queue #, port#\"", masked("\"try 12: queue 7, port80\"", true).at);
    assert_string_equal("{n:#,}", masked("{\"n\":12.5}", true).at);
}

/* ---- without fresh ids: two answers of a write differ in ids and times alone; two of anything else in more
 * ---- */

static struct str left_of(const char *text)
{
    return json_to_str(arena, fresh_ids_without(arena, value_of(text)));
}

static void compare(const char *a, const char *b, bool alike)
{
    if (str_eq(left_of(a), left_of(b)) != alike)
        fail_msg("%s and %s are %s", a, b, alike ? "not alike" : "alike");
}

TEST(answers_that_differ_in_ids_and_times_alone_are_alike)
{
    static const char *const pairs[][2] = {
        {"{\"id\":\"a1\",\"status\":\"made\"}", "{\"id\":\"b2\",\"status\":\"made\"}"},
        {"{\"task\":{\"taskId\":7,\"title\":\"x\"}}", "{\"task\":{\"taskId\":8,\"title\":\"x\"}}"},
        {"{\"id\":1}", "{\"id\":2}"},
        {"{\"ok\":true,\"created_at\":\"2026-01-01\"}", "{\"ok\":true,\"created_at\":\"2026-01-02\"}"},
        {"[{\"uuid\":\"1\",\"n\":1}]", "[{\"uuid\":\"2\",\"n\":1}]"},
        {"{\"text\":\"Order ORD-20391 was placed.\"}", "{\"text\":\"Order ORD-20392 was placed.\"}"},
        {"{\"text\":\"8f14e45f-ceea-467f-a3c1-1b2f made\"}",
         "{\"text\":\"9a14e45f-ceea-467f-a3c1-1b2f made\"}"},
        {"{\"text\":\"at 2026-01-01T10:00:00Z: done\"}", "{\"text\":\"at 2026-01-01T10:00:07Z: done\"}"},
        {"{\"text\":\"#100292817\"}", "{\"text\":\"#100292818\"}"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        compare(pairs[i][0], pairs[i][1], true);
}

TEST(any_other_difference_counts)
{
    static const char *const pairs[][2] = {
        {"{\"id\":1,\"status\":\"queued\"}", "{\"id\":1,\"status\":\"done\"}"},
        {"{\"text\":\"12 of 40 rows\"}", "{\"text\":\"13 of 40 rows\"}"},
        {"{\"text\":\"10240 rows\"}", "{\"text\":\"20480 rows\"}"},
        {"{\"flat\":\"a\",\"n\":1}", "{\"flat\":\"b\",\"n\":1}"},
        {"{\"paid\":1,\"n\":1}", "{\"paid\":2,\"n\":1}"},
        {"{\"id\":{\"a\":1},\"n\":1}", "{\"id\":{\"a\":2},\"n\":1}"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        compare(pairs[i][0], pairs[i][1], false);
}

TEST(a_value_without_ids_is_returned_itself)
{
    const struct json *value = value_of("{\"a\":[1,{\"b\":\"c 12\"}]}");
    assert_ptr_equal(fresh_ids_without(arena, value), value);
}

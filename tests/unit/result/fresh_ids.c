/* Two answers of a write differ in ids and times alone; two answers of anything else differ in more. */
#include "result/result_mask.h"

#include "base/arena.h"
#include "json/parse.h"
#include "json/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct str left_of(struct arena *arena, const char *text)
{
    struct json value;
    struct json_error fault;
    assert_int_equal(json_parse(arena, str_of(text), NULL, &value, &fault), OK);
    return json_to_str(arena, fresh_ids_without(arena, &value));
}

static void compare(const char *a, const char *b, bool alike)
{
    struct arena *arena = arena_new();
    if (str_eq(left_of(arena, a), left_of(arena, b)) != alike)
        fail_msg("%s and %s are %s", a, b, alike ? "not alike" : "alike");
    arena_free(arena);
}

static void answers_that_differ_in_ids_and_times_alone_are_alike(void **state)
{
    (void)state;
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

static void any_other_difference_counts(void **state)
{
    (void)state;
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

static void a_value_without_ids_is_returned_itself(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct json value;
    struct json_error fault;
    assert_int_equal(json_parse(arena, STR_LIT("{\"a\":[1,{\"b\":\"c 12\"}]}"), NULL, &value, &fault), OK);
    assert_ptr_equal(fresh_ids_without(arena, &value), &value);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_differ_in_ids_and_times_alone_are_alike),
        cmocka_unit_test(any_other_difference_counts),
        cmocka_unit_test(a_value_without_ids_is_returned_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Results in every form that tools send them. */
#include "base/arena.h"
#include "gate/result.h"
#include "json/parse.h"
#include "json/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct arena *arena;
static struct result result;

static int begin(void **state)
{
    (void)state;
    arena = arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static const struct json *parsed(const char *text)
{
    struct json *value = arena_alloc(arena, sizeof(*value));
    struct json_fault fault;
    if (json_parse(arena, str_of(text), NULL, value, &fault) != OK)
        fail_msg("%s in %s", fault.text, text);
    return value;
}

static void reads(const char *sent, const char *value)
{
    result_read(arena, parsed(sent), &result);
    if (!json_equal(result.value, parsed(value)))
        fail_msg("%s was not read as %s", sent, value);
}

static void structured_content_comes_first(void **state)
{
    (void)state;
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"structuredContent\":{\"a\":1}}", "{\"a\":1}");
    assert_non_null(result.structured);
}

static void a_text_that_is_json_is_read_as_json(void **state)
{
    (void)state;
    reads("{\"content\":[{\"type\":\"text\",\"text\":\" {\\\"a\\\": 1}\\n\"}]}", "{\"a\":1}");
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"[1,2]\"}]}", "[1,2]");
}

static void any_other_text_stays_text(void **state)
{
    (void)state;
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"sunny\"}]}", "{\"text\":\"sunny\"}");
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"{broken\"}]}", "{\"text\":\"{broken\"}");
    reads("\"sunny\"", "{\"text\":\"sunny\"}");
}

static void texts_are_joined_and_other_blocks_left_out(void **state)
{
    (void)state;
    reads("{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"data\":"
          "\"\"},"
          "{\"type\":\"text\",\"text\":\"b\"}]}",
          "{\"text\":\"a\\nb\"}");
    assert_true(result.is_error);
    assert_true(str_is(result.error_text, "a\nb"));
}

static void a_plain_value_is_the_value(void **state)
{
    (void)state;
    reads("{\"events\":[]}", "{\"events\":[]}");
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "text")), "{\"events\":[]}"));
}

static void empty_is_what_holds_nothing(void **state)
{
    (void)state;
    const char *empty[] = {"null", "\"\"", "\"  \"", "{}", "[]", "{\"a\":[],\"b\":\"\"}"};
    const char *full[] = {"0", "false", "[0]", "{\"a\":0}", "\"x\""};
    for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++)
        assert_true(result_is_empty(parsed(empty[i])));
    for (size_t i = 0; i < sizeof(full) / sizeof(*full); i++)
        assert_false(result_is_empty(parsed(full[i])));
    assert_true(result_is_empty(NULL));
}

static void a_made_result_is_json_text_and_structured_only_with_a_schema(void **state)
{
    (void)state;
    const struct json *value = parsed("{\"id\":12345678901234567890,\"price\":1.10}");
    result_make(arena, value, NULL, NULL, false, &result);
    assert_null(result.structured);
    struct str text = json_str(json_get_text(&result.content->items[0], "text"));
    assert_true(str_is(text, "{\"id\":12345678901234567890,\"price\":1.10}"));
    result_make(arena, value, NULL, NULL, true, &result);
    assert_ptr_equal(result.structured, value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(structured_content_comes_first, begin, end),
        cmocka_unit_test_setup_teardown(a_text_that_is_json_is_read_as_json, begin, end),
        cmocka_unit_test_setup_teardown(any_other_text_stays_text, begin, end),
        cmocka_unit_test_setup_teardown(texts_are_joined_and_other_blocks_left_out, begin, end),
        cmocka_unit_test_setup_teardown(a_plain_value_is_the_value, begin, end),
        cmocka_unit_test_setup_teardown(empty_is_what_holds_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_made_result_is_json_text_and_structured_only_with_a_schema, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

static void reads_as_plain(const char *sent)
{
    result_read(arena, parsed(sent), &result);
    if (!json_equal(result.value, parsed(sent)) || result.metadata || result.is_error)
        fail_msg("%s was not left as it is", sent);
}

static void only_what_has_the_form_of_mcp_is_read_as_such(void **state)
{
    (void)state;
    reads_as_plain("{\"content\":[{\"id\":1},{\"id\":2}],\"totalPages\":3}");
    reads_as_plain("{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"author\":\"b\"}");
    reads_as_plain("{\"content\":[{\"type\":\"paragraph\",\"text\":\"a\"}]}");
    reads_as_plain("{\"content\":\"text\",\"_meta\":{}}");
    reads_as_plain("{\"value\":1,\"metadata\":{\"unit\":\"m\"}}");
    reads_as_plain("{\"value\":1,\"content\":[]}");
    result_read(arena, parsed("{\"content\":[],\"isError\":true}"), &result);
    assert_true(result.is_error);
}

static void a_server_of_mcp_is_taken_at_its_word(void **state)
{
    (void)state;
    result_read_mcp(arena, parsed("{\"content\":[{\"type\":\"hologram\"}],\"extra\":1}"), &result);
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "type")), "hologram"));
    result_read_mcp(arena, parsed("{\"structuredContent\":{\"a\":1}}"), &result);
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "text")), "{\"a\":1}"));
}

static void a_command_may_print_what_tool_return_takes(void **state)
{
    (void)state;
    result_read_command(arena,
                        parsed("{\"value\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"one\"}],"
                               "\"metadata\":{\"m\":2}}"),
                        &result);
    assert_true(json_equal(result.value, parsed("{\"a\":1}")));
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "text")), "one"));
    assert_true(json_equal(result.metadata, parsed("{\"m\":2}")));
    result_read_command(arena, parsed("{\"value\":[1],\"metadata\":{\"m\":2}}"), &result);
    assert_true(json_equal(result.value, parsed("[1]")));
    assert_true(json_equal(result.metadata, parsed("{\"m\":2}")));
    result_read_command(arena, parsed("{\"value\":5}"), &result);
    assert_true(json_equal(result.value, parsed("{\"value\":5}")));
    result_read_command(
        arena, parsed("{\"value\":5,\"content\":[{\"type\":\"image\",\"data\":\"?\",\"mimeType\":\"x\"}]}"),
        &result);
    assert_true(
        str_is(json_str(json_get_text(&result.content->items[0], "type")), "text")); /* no client takes it */
}

static void structure_is_put_in_where_a_schema_promises_it(void **state)
{
    (void)state;
    result_read_mcp(arena, parsed("{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"}]}"), &result);
    result_complete(&result, false);
    assert_null(result.structured);
    result_complete(&result, true);
    assert_true(json_equal(result.structured, parsed("{\"a\":1}")));
    reads("\"sunny\"", "{\"text\":\"sunny\"}");
    result_complete(&result, true);
    assert_null(result.structured);
}

static bool brings_nothing(const char *sent, enum policy_effects effects)
{
    result_read(arena, parsed(sent), &result);
    return result_brings_nothing(&result, effects);
}

static void what_brings_nothing_depends_on_what_was_asked_for(void **state)
{
    (void)state;
    const char *nothing[] = {"null",
                             "\"\"",
                             "{}",
                             "[]",
                             "\"None\"",
                             "\"No results found for 'x'.\"",
                             "{\"a\":[]}",
                             "\"No matches.\"",
                             "{\"results\":[],\"total\":0,\"has_more\":false}"};
    const char *something[] = {"0",
                               "false",
                               "\"no\"",
                               "{\"count\":0}",
                               "\"No results today, but two tomorrow:\\na\\nb\"",
                               "{\"results\":[],\"total\":7}",
                               "{\"ok\":false}"};
    const char *done[] = {"\"ok\"", "\"Done.\"", "\"success!\""};
    for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++) {
        assert_true(brings_nothing(nothing[i], EFFECTS_READ));
        assert_true(brings_nothing(nothing[i], EFFECTS_UNDECLARED));
        assert_false(brings_nothing(nothing[i], EFFECTS_WRITE));
    }
    for (size_t i = 0; i < sizeof(something) / sizeof(*something); i++)
        if (brings_nothing(something[i], EFFECTS_READ))
            fail_msg("%s", something[i]);
    for (size_t i = 0; i < sizeof(done) / sizeof(*done); i++) {
        assert_true(brings_nothing(done[i], EFFECTS_READ));
        assert_false(brings_nothing(done[i], EFFECTS_UNDECLARED));
    }
}

static void blank_is_what_nobody_can_see(void **state)
{
    (void)state;
    result_read(arena, parsed("{\"content\":[]}"), &result);
    assert_true(result_is_blank(&result));
    result_read(arena, parsed("{\"content\":[{\"type\":\"text\",\"text\":\" \\n\"}]}"), &result);
    assert_true(result_is_blank(&result));
    result_read(arena, parsed("{\"content\":[{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"a/b\"}]}"),
                &result);
    assert_false(result_is_blank(&result));
    result_read(arena, parsed("[]"), &result);
    assert_false(result_is_blank(&result));
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
        cmocka_unit_test_setup_teardown(only_what_has_the_form_of_mcp_is_read_as_such, begin, end),
        cmocka_unit_test_setup_teardown(a_server_of_mcp_is_taken_at_its_word, begin, end),
        cmocka_unit_test_setup_teardown(a_command_may_print_what_tool_return_takes, begin, end),
        cmocka_unit_test_setup_teardown(structure_is_put_in_where_a_schema_promises_it, begin, end),
        cmocka_unit_test_setup_teardown(what_brings_nothing_depends_on_what_was_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(blank_is_what_nobody_can_see, begin, end),
        cmocka_unit_test_setup_teardown(a_made_result_is_json_text_and_structured_only_with_a_schema, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

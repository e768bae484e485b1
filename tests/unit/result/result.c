/* Results in every form that tools send them. */
#include "arena_case.h"
#include "result/result.h"

static struct result result;

static void reads(const char *sent, const char *value)
{
    result_read(arena, value_of(sent), &result);
    if (!json_equal(result.value, value_of(value)))
        fail_msg("%s was not read as %s", sent, value);
}

TEST(structured_content_comes_first)
{
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"structuredContent\":{\"a\":1}}", "{\"a\":1}");
    assert_non_null(result.structured);
}

TEST(a_text_that_is_json_is_read_as_json)
{
    reads("{\"content\":[{\"type\":\"text\",\"text\":\" {\\\"a\\\": 1}\\n\"}]}", "{\"a\":1}");
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"[1,2]\"}]}", "[1,2]");
}

TEST(any_other_text_stays_text)
{
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"sunny\"}]}", "{\"text\":\"sunny\"}");
    reads("{\"content\":[{\"type\":\"text\",\"text\":\"{broken\"}]}", "{\"text\":\"{broken\"}");
    reads("\"sunny\"", "{\"text\":\"sunny\"}");
}

TEST(texts_are_joined_and_other_blocks_left_out)
{
    reads("{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"data\":"
          "\"\"},"
          "{\"type\":\"text\",\"text\":\"b\"}]}",
          "{\"text\":\"a\\nb\"}");
    assert_true(result.is_error);
    assert_true(str_is(result.error_text, "a\nb"));
}

static void becomes(const char *block, const char *sent_on)
{
    char text[512];
    snprintf(text, sizeof(text), "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},%s]}", block);
    result_read_mcp(arena, value_of(text), &result);
    assert_int_equal(result.content->len, 2);
    if (!json_equal(&result.content->items[1], value_of(sent_on)))
        fail_msg("%s is not sent as %s", block, sent_on);
}

/* A client rejects the whole result for one of them. */
TEST(invalid_content_blocks_are_repaired)
{
    static const char text[] = "{\"type\":\"text\",\"text\":\"b\"}";
    becomes("{\"type\":\"text\",\"text\":\"b\",\"annotations\":null,\"_meta\":null}", text);
    becomes("{\"type\":\"text\",\"text\":\"b\",\"annotations\":{\"priority\":7}}", text);
    becomes("{\"type\":\"text\",\"text\":\"b\",\"_meta\":5}", text);
    becomes("{\"type\":\"hologram\"}", "{\"type\":\"text\",\"text\":\"{\\\"type\\\":\\\"hologram\\\"}\"}");
    becomes("{\"type\":\"image\",\"data\":\"AA=A\",\"mimeType\":\"x\"}",
            "{\"type\":\"text\",\"text\":\"{\\\"type\\\":\\\"image\\\",\\\"data\\\":\\\"AA=A\\\","
            "\\\"mimeType\\\":"
            "\\\"x\\\"}\"}");
    assert_true(str_is(result.error_text, "a"));
}

TEST(valid_content_blocks_are_unchanged)
{
    static const char *const blocks[] = {
        "{\"type\":\"text\",\"text\":\"b\",\"more\":1}",
        "{\"type\":\"image\",\"data\":\"AAA\",\"mimeType\":\"png\"}",
        "{\"type\":\"audio\",\"data\":\"AA==\",\"mimeType\":\"audio/wav\"}",
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"a path\",\"text\":\"\",\"blob\":\"AAAA\"}}",
        "{\"type\":\"resource_link\",\"uri\":\"a path\",\"name\":\"n\"}",
    };
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        becomes(blocks[i], blocks[i]);
}

TEST(is_error_may_be_a_string_or_a_number)
{
    static const struct {
        const char *said;
        bool error;
    } ways[] = {{"true", true},  {"\"true\"", true}, {"1", true},     {"false", false},
                {"null", false}, {"0", false},       {"\"\"", false}, {"\"false\"", false}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        char text[80];
        snprintf(text, sizeof(text), "{\"content\":[],\"isError\":%s}", ways[i].said);
        result_read_mcp(arena, value_of(text), &result);
        assert_int_equal(result.is_error, ways[i].error);
    }
}

TEST(a_plain_value_is_the_value)
{
    reads("{\"events\":[]}", "{\"events\":[]}");
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "text")), "{\"events\":[]}"));
}

TEST(empty_values_are_recognised)
{
    const char *empty[] = {"null", "\"\"", "\"  \"", "{}", "[]", "{\"a\":[],\"b\":\"\"}"};
    const char *full[] = {"0", "false", "[0]", "{\"a\":0}", "\"x\""};
    for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++)
        assert_true(result_is_empty(value_of(empty[i])));
    for (size_t i = 0; i < sizeof(full) / sizeof(*full); i++)
        assert_false(result_is_empty(value_of(full[i])));
    assert_true(result_is_empty(NULL));
}

TEST(a_value_becomes_text_and_structured_only_with_a_schema)
{
    const struct json *value = value_of("{\"id\":12345678901234567890,\"price\":1.10}");
    result_from_value(arena, value, NULL, NULL, false, &result);
    assert_null(result.structured);
    struct str text = json_str(json_get_text(&result.content->items[0], "text"));
    assert_true(str_is(text, "{\"id\":12345678901234567890,\"price\":1.10}"));
    result_from_value(arena, value, NULL, NULL, true, &result);
    assert_ptr_equal(result.structured, value);
}

static void reads_as_plain(const char *sent)
{
    result_read(arena, value_of(sent), &result);
    if (!json_equal(result.value, value_of(sent)) || result.metadata || result.is_error)
        fail_msg("%s was not left as it is", sent);
}

TEST(only_objects_of_the_mcp_form_are_read_as_such)
{
    reads_as_plain("{\"content\":[{\"id\":1},{\"id\":2}],\"totalPages\":3}");
    reads_as_plain("{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"author\":\"b\"}");
    reads_as_plain("{\"content\":[{\"type\":\"paragraph\",\"text\":\"a\"}]}");
    reads_as_plain("{\"content\":\"text\",\"_meta\":{}}");
    reads_as_plain("{\"value\":1,\"metadata\":{\"unit\":\"m\"}}");
    reads_as_plain("{\"value\":1,\"content\":[]}");
    result_read(arena, value_of("{\"content\":[],\"isError\":true}"), &result);
    assert_true(result.is_error);
}

TEST(results_of_an_mcp_server_are_read_as_sent)
{
    result_read_mcp(arena, value_of("{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"extra\":1}"),
                    &result);
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "text")), "a"));
    result_read_mcp(arena, value_of("{\"structuredContent\":{\"a\":1}}"), &result);
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "text")), "{\"a\":1}"));
}

TEST(a_command_may_print_a_tool_return)
{
    result_read_command(arena,
                        value_of("{\"value\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"one\"}],"
                                 "\"metadata\":{\"m\":2}}"),
                        &result);
    assert_true(json_equal(result.value, value_of("{\"a\":1}")));
    assert_true(str_is(json_str(json_get_text(&result.content->items[0], "text")), "one"));
    assert_true(json_equal(result.metadata, value_of("{\"m\":2}")));
    result_read_command(arena, value_of("{\"value\":[1],\"metadata\":{\"m\":2}}"), &result);
    assert_true(json_equal(result.value, value_of("[1]")));
    assert_true(json_equal(result.metadata, value_of("{\"m\":2}")));
    result_read_command(arena, value_of("{\"value\":5}"), &result);
    assert_true(json_equal(result.value, value_of("{\"value\":5}")));
    result_read_command(
        arena, value_of("{\"value\":5,\"content\":[{\"type\":\"image\",\"data\":\"?\",\"mimeType\":\"x\"}]}"),
        &result);
    assert_true(
        str_is(json_str(json_get_text(&result.content->items[0], "type")), "text")); /* clients reject it */
}

TEST(structured_content_is_filled_in_for_an_output_schema)
{
    result_read_mcp(arena, value_of("{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"}]}"),
                    &result);
    result_complete(arena, &result, false);
    assert_null(result.structured);
    result_complete(arena, &result, true);
    assert_true(json_equal(result.structured, value_of("{\"a\":1}")));
    reads("\"sunny\"", "{\"text\":\"sunny\"}");
    result_complete(arena, &result, true);
    assert_null(result.structured);
}

static bool brings_nothing(const char *sent, enum policy_effects effects)
{
    result_read(arena, value_of(sent), &result);
    return result_is_uninformative(&result, effects);
}

TEST(uninformative_depends_on_the_effects)
{
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

TEST(blank_results_are_recognised)
{
    result_read(arena, value_of("{\"content\":[]}"), &result);
    assert_true(result_is_blank(&result));
    result_read(arena, value_of("{\"content\":[{\"type\":\"text\",\"text\":\" \\n\"}]}"), &result);
    assert_true(result_is_blank(&result));
    result_read(arena, value_of("{\"content\":[{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"a/b\"}]}"),
                &result);
    assert_false(result_is_blank(&result));
    result_read(arena, value_of("[]"), &result);
    assert_false(result_is_blank(&result));
}

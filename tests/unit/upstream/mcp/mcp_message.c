/* The kind and the id of a line from a server. */

#include "unit.h"
#include "upstream/mcp/mcp_message.h"

static void expect(const char *text, enum mcp_message_kind wanted)
{
    struct mcp_message line = mcp_message_scan(str_of(text));
    if (line.kind != wanted)
        fail_msg("%s: kind %d, wanted %d", text, line.kind, wanted);
}

static void expect_str(struct str got, const char *wanted)
{
    if (!str_is(got, wanted))
        fail_msg("got " STR_FMT ", wanted %s", STR_ARG(got), wanted);
}

TEST(responses_have_an_id_and_a_result)
{
    struct mcp_message line =
        mcp_message_scan(STR_LIT("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":[1,\"}\"]}}"));
    assert_int_equal(line.kind, MCP_MESSAGE_RESPONSE);
    expect_str(line.id, "7");
    expect_str(line.result, "{\"a\":[1,\"}\"]}");
    line = mcp_message_scan(STR_LIT(" { \"result\" : { } , \"jsonrpc\" : \"2.0\" , \"id\" : 7 } \r"));
    assert_int_equal(line.kind, MCP_MESSAGE_RESPONSE);
    expect_str(line.id, "7");
    expect_str(line.result, "{ }");
    line = mcp_message_scan(STR_LIT("{\"id\":7,\"result\":{},\"error\":null}"));
    assert_int_equal(line.kind, MCP_MESSAGE_RESPONSE);
    assert_int_equal(line.error.len, 0);
    line = mcp_message_scan(STR_LIT("{\"id\":7,\"result\":null,\"error\":{\"code\":1}}"));
    assert_int_equal(line.kind, MCP_MESSAGE_RESPONSE);
    expect_str(line.error, "{\"code\":1}");
}

TEST(nested_ids_are_ignored)
{
    struct mcp_message line =
        mcp_message_scan(STR_LIT("{\"result\":{\"id\":1,\"x\":\"\\\\\\\",\\\"id\\\":2}\"},\"id\":3}"));
    assert_int_equal(line.kind, MCP_MESSAGE_RESPONSE);
    expect_str(line.id, "3");
    line = mcp_message_scan(STR_LIT("{\"meta\":{\"id\":9,\"result\":{}},\"id\":3,\"result\":[]}"));
    expect_str(line.id, "3");
    expect_str(line.result, "[]");
}

TEST(requests_and_notifications_have_a_method)
{
    struct mcp_message line = mcp_message_scan(STR_LIT("{\"id\":\"a\\\"b\",\"method\":\"ping\"}"));
    assert_int_equal(line.kind, MCP_MESSAGE_REQUEST);
    expect_str(line.id, "\"a\\\"b\"");
    expect_str(line.method, "ping");
    line = mcp_message_scan(STR_LIT("{\"method\":\"notifications/x\",\"params\":{\"a\":1}}"));
    assert_int_equal(line.kind, MCP_MESSAGE_NOTIFICATION);
    expect_str(line.params, "{\"a\":1}");
    expect("{\"method\":\"x\",\"id\":null}", MCP_MESSAGE_NOTIFICATION);
}

TEST(other_lines_are_noise)
{
    static const char *const noise[] = {"",      "   ", "Server listening on stdio", "[1,2]", "42", "null",
                                        "\"x\"", "{",   "{ not json at all",         "}"};
    for (size_t i = 0; i < sizeof(noise) / sizeof(*noise); i++)
        expect(noise[i], MCP_MESSAGE_NOISE);
}

TEST(id_of_a_truncated_line_is_recovered)
{
    static const char *const broken[] = {
        "{\"id\":7,\"result\":{\"content\":[", "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"abc",
        "{\"id\":7,\"result\":}", "{\"jsonrpc\":\"2.0\",\"id\":7}", "{\"id\":7,\"result\":{},}"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        struct mcp_message line = mcp_message_scan(str_of(broken[i]));
        if (line.kind != MCP_MESSAGE_MALFORMED || mcp_message_own_id(line.id) != 7)
            fail_msg("%s: kind %d, id " STR_FMT, broken[i], line.kind, STR_ARG(line.id));
        assert_non_null(line.problem);
    }
    /* a line of a log is none */
    assert_int_equal(mcp_message_scan(STR_LIT("{\"level\":30,\"id\":7}")).id.len, 0);
    /* a truncated request is not a response, even with an id */
    struct mcp_message line = mcp_message_scan(STR_LIT("{\"method\":\"ping\",\"id\":7,\"par"));
    assert_int_equal(line.kind, MCP_MESSAGE_MALFORMED);
    assert_int_equal(line.id.len, 0);
}

TEST(messages_are_found_beside_other_text)
{
    static const char *const texts[] = {"{\"id\":7,\"result\":{}} trailing", "[{\"id\":7,\"result\":{}}]",
                                        "Loading {model} ... {\"id\":7,\"result\":{}}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct str rest = str_of(texts[i]);
        struct mcp_message message = mcp_message_next(&rest);
        assert_int_equal(message.kind, MCP_MESSAGE_RESPONSE);
        assert_int_equal(mcp_message_own_id(message.id), 7);
    }
    struct str rest = STR_LIT("{\"method\":\"a\"}{\"id\":7,\"result\":{}},{\"id\":8,\"result\":{}}");
    assert_int_equal(mcp_message_next(&rest).kind, MCP_MESSAGE_NOTIFICATION);
    assert_int_equal(mcp_message_own_id(mcp_message_next(&rest).id), 7);
    assert_int_equal(mcp_message_own_id(mcp_message_next(&rest).id), 8);
    assert_int_equal(rest.len, 0);
    /* The data in a broken message is none. */
    rest = STR_LIT("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":{\"id\":8,\"result\":{}}");
    struct mcp_message broken = mcp_message_next(&rest);
    assert_int_equal(broken.kind, MCP_MESSAGE_MALFORMED);
    assert_true(broken.is_response);
    assert_int_equal(mcp_message_own_id(broken.id), 7);
    assert_int_equal(rest.len, 0);
}

TEST(duplicate_members_are_malformed)
{
    expect("{\"id\":1,\"id\":2,\"result\":{}}", MCP_MESSAGE_MALFORMED);
    expect("{\"id\":1,\"result\":{},\"result\":{}}", MCP_MESSAGE_MALFORMED);
}

TEST(own_ids_are_digits)
{
    static const struct {
        const char *id;
        uint64_t own;
    } ids[] = {{"7", 7},
               {"4096000001", 4096000001},
               {"\"7\"", 7},
               {"7.0", 7},
               {"70.00", 70},
               {"\"\"", 0},
               {"7.", 0},
               {"-7", 0},
               {"7.5", 0},
               {"", 0},
               {"0", 0},
               {"1e3", 0},
               {"9007199254740991", 9007199254740991},
               {"90071992547409910", 0}};
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        assert_int_equal(mcp_message_own_id(str_of(ids[i].id)), ids[i].own);
    expect("{\"id\":1.5,\"result\":{}}", MCP_MESSAGE_MALFORMED);
    expect("{\"id\":true,\"result\":{}}", MCP_MESSAGE_MALFORMED);
    expect("{\"id\":[1],\"result\":{}}", MCP_MESSAGE_MALFORMED);
}

/* Every prefix of a line, each in memory of its own so that a sanitizer reports an overrun. */
TEST(truncated_lines_are_not_read_past_their_end)
{
    static const char whole[] = "{\"jsonrpc\":\"2.0\",\"id\":12,\"result\":{\"a\":[\"\\\\\",{\"b\":null}],"
                                "\"c\":-1.5e3},\"error\":null}";
    for (size_t len = 0; len < sizeof(whole); len++) {
        char *copy = test_malloc(len ? len : 1);
        memcpy(copy, whole, len);
        struct mcp_message line = mcp_message_scan((struct str){copy, len});
        assert_int_equal(line.kind == MCP_MESSAGE_RESPONSE, len == sizeof(whole) - 1);
        test_free(copy);
    }
}

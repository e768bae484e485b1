/* The bridge adds the session to requests without one, and leaves all other bytes unchanged. */
#include "unit.h"
#include "cli/connect.h"

#include "base/arena.h"
#include "json/parse.h"

#define SESSION "\"dev.toolgate/session\":\"s1\""

static void becomes(const char *line, const char *expected)
{
    struct arena *arena = arena_new();
    struct buf out = {0};
    struct json message;
    struct json_error fault;
    assert_true(json_parse(arena, str_of(line), NULL, &message, &fault) == OK || fault.soft);
    bridge_put_session(&out, str_of(line), &message, str_of("\"s1\""));
    buf_byte(&out, '\0');
    assert_string_equal(out.at, expected);
    buf_clear(&out);
    arena_free(arena);
}

static void stays(const char *line)
{
    becomes(line, line);
}

TEST(adds_the_session_to_meta)
{
    becomes("{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"a\":1}}}",
            "{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{" SESSION ",\"a\":1}}}");
    becomes("{\"id\":1,\"method\":\"m\",\"params\":{\"x\":[ 1.10 ],\"_meta\" : { } }}",
            "{\"id\":1,\"method\":\"m\",\"params\":{\"x\":[ 1.10 ],\"_meta\" : {" SESSION " } }}");
}

TEST(adds_meta_to_params)
{
    becomes("  {\"method\":\"m\", \"params\" : { \"n\":12345678901234567890 },\"id\":\"x\"}\r",
            "  {\"method\":\"m\", \"params\" : {\"_meta\":{" SESSION
            "}, \"n\":12345678901234567890 },\"id\":\"x\"}\r");
    becomes("{\"method\":\"m\",\"params\":{},\"id\":1}",
            "{\"method\":\"m\",\"params\":{\"_meta\":{" SESSION "}},\"id\":1}");
}

TEST(adds_params_to_the_request)
{
    becomes("{\"id\":1,\"method\":\"tools/list\"}",
            "{\"params\":{\"_meta\":{" SESSION "}},\"id\":1,\"method\":\"tools/list\"}");
}

TEST(keeps_a_given_session)
{
    stays("{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"dev.toolgate/session\":\"mine\"}}}");
}

TEST(keeps_params_of_a_wrong_type)
{
    stays("{\"id\":1,\"method\":\"m\",\"params\":[1]}");
    stays("{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":7}}");
}

TEST(replaces_what_the_daemon_reads_as_absent)
{
    becomes("{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\" : null ,\"a\":1}}",
            "{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\" : {" SESSION "} ,\"a\":1}}");
    becomes("{\"id\":1,\"method\":\"m\",\"params\":{\"a\":1,\"_meta\":[]}}",
            "{\"id\":1,\"method\":\"m\",\"params\":{\"a\":1,\"_meta\":{" SESSION "}}}");
    becomes("{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"dev.toolgate/session\":null}}}",
            "{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{" SESSION "}}}");
    becomes("{\"params\":null,\"id\":1,\"method\":\"m\"}",
            "{\"params\":{\"_meta\":{" SESSION "}},\"id\":1,\"method\":\"m\"}");
    becomes("{\"id\":1,\"method\":\"m\",\"params\":[]}",
            "{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{" SESSION "}}}");
}

TEST(adds_the_session_despite_a_soft_fault)
{
    becomes("{\"id\":1,\"method\":\"m\",\"params\":{\"a\":1,\"a\":2}}",
            "{\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{" SESSION "},\"a\":1,\"a\":2}}");
}

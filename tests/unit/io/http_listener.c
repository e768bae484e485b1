/* The head of an HTTP request: one reading, or a refusal. */
#include "unit.h"
#include "io/http_listener.h"

static struct http_request request;

static unsigned parse(const char *head)
{
    const char *why = NULL;
    struct str text = str_of(head);
    assert_int_equal(http_head_length(text), text.len);
    unsigned status = http_request_parse(text, &request, &why);
    assert_true(!status || why);
    return status;
}

#define IS(field, text) assert_true(str_is(request.field, text))

TEST(the_parts_of_a_request_are_read)
{
    assert_int_equal(
        parse("GET /metrics?x=%20&y HTTP/1.1\r\nhOST: localhost:9464 \r\nOrigin:http://a\r\n"
              "Authorization: Bearer abc\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"),
        0);
    IS(method, "GET");
    IS(path, "/metrics");
    IS(query, "x=%20&y");
    IS(host, "localhost:9464");
    IS(origin, "http://a");
    IS(authorization, "Bearer abc");
    IS(content_type, "application/json");
    assert_int_equal(request.length, 12);
    assert_int_equal(request.minor, 1);
}

TEST(lines_may_end_in_a_line_feed_alone)
{
    assert_int_equal(parse("GET / HTTP/1.0\n\n"), 0);
    assert_int_equal(parse("HEAD / HTTP/1.0\nHost: x\r\n\n"), 0);
    IS(host, "x");
    assert_int_equal(request.minor, 0);
}

TEST(an_unfinished_head_has_no_length)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    for (size_t len = 0; len < sizeof(head) - 1; len++)
        assert_int_equal(http_head_length((struct str){head, len}), 0);
    assert_int_equal(http_head_length((struct str){head, sizeof(head) - 1}), sizeof(head) - 1);
    assert_int_equal(http_head_length(STR_LIT("GET / HTTP/1.0\n\nGET /next")), strlen("GET / HTTP/1.0\n\n"));
}

TEST(anything_ambiguous_is_refused)
{
    static const struct {
        unsigned status;
        const char *head;
    } bad[] = {
        {400, "GET\r\n\r\n"},
        {400, "GET /\r\n\r\n"},
        {400, "\r\n\r\n"},
        {400, "GET  / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1 \r\nHost: x\r\n\r\n"},
        {400, "GET metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET http://x/metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "G\x01T / HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nOrigin: a\r\nOrigin: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {505, "GET / HTTP/2.0\r\nHost: x\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (parse(bad[i].head) != bad[i].status)
            fail_msg("%s", bad[i].head);
}

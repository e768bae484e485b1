/* Event streams, whole and split anywhere: the events must not depend on where the network split them. */

#include "unit.h"
#include "upstream/http/sse.h"

#define EVENT_MAX 64u

/* "type=data;" for each event, then "TOO LONG" if it is. */
static void feed(struct sse *sse, struct str bytes, struct buf *heard)
{
    struct sse_event event;
    enum sse_result got;
    while ((got = sse_next(sse, &bytes, &event)) == SSE_EVENT) {
        buf_str(heard, event.type);
        buf_byte(heard, '=');
        buf_str(heard, event.data);
        buf_byte(heard, ';');
    }
    if (got == SSE_TOO_LONG)
        buf_text(heard, "TOO LONG");
    else
        assert_int_equal(bytes.len, 0);
}

struct expectation {
    struct str stream;
    const char *events, *id;
    uint32_t retry_ms;
};

#define STREAM(text, events, ...)                                                                            \
    {                                                                                                        \
        STR(text), events, __VA_ARGS__                                                                       \
    }

static const struct expectation expectations[] = {
    STREAM("data: a\n\n", "message=a;", "", 0),
    STREAM("data: a\r\rdata: b\r\r", "message=a;message=b;", "", 0),
    STREAM("data: a\r\n\r\ndata: b\r\n\r\n", "message=a;message=b;", "", 0),
    STREAM("data: a\r\n\ndata: b\n\r\n", "message=a;message=b;", "", 0),
    STREAM("data: one\ndata: two\ndata\ndata:\n\n", "message=one\ntwo\n\n;", "", 0),
    STREAM("data:tight\ndata:  wide\n\n", "message=tight\n wide;", "", 0),
    STREAM(": a comment\n:\n\ndata: after\n: within\n\n", "message=after;", "", 0),
    STREAM("event: add\ndata: 1\n\ndata: 2\n\n", "add=1;message=2;", "", 0),
    STREAM("event: lonely\n\ndata: x\n\n", "message=x;", "", 0),
    STREAM("data\n\n", "message=;", "", 0),
    STREAM("id: 7\n\n", "", "7", 0),
    STREAM("id: 7\ndata:\n\ndata: b\n\nid\ndata: c\n\n", "message=;message=b;message=c;", "", 0),
    STREAM("id: 7\ndata: a\n\nid: 8\ndata: half", "message=a;", "7", 0),
    STREAM("id: a\0b\nid: ok\nid: bell\a\ndata: a\n\n", "message=a;", "ok", 0),
    STREAM("retry: 250\n\n", "", "", 250),
    STREAM("retry: 2.5\nretry: -1\nretry:\nretry: soon\n\n", "", "", 0),
    STREAM("retry: 99999999999999999999\n\n", "", "", SSE_RETRY_MAX_MS),
    STREAM("\xEF\xBB\xBF"
           "data: marked\n\n\xEF\xBB\xBF"
           "data: not again\n\n",
           "message=marked;", "", 0),
    STREAM("data: never ended", "", "", 0),
    STREAM("DATA: big\nunknown: field\nda ta: x\n\n", "", "", 0),
    STREAM("\n\n\n\r\n\r\r\n", "", "", 0),
    STREAM("data: 0123456789012345678901234567890123456789012345678901234567890\n\n",
           "message=0123456789012345678901234567890123456789012345678901234567890;", "", 0),
    STREAM("data: 0123456789012345678901234567890\ndata: 0123456789012345678901234567890123\n\n", "TOO LONG",
           "", 0),
    STREAM("data: 0123456789012345678901234567890123456789012345678901234567890123456789", "TOO LONG", "", 0),
    STREAM(": 01234567890123456789012345678901234567890123456789012345678901234567890", "TOO LONG", "", 0),
};

static void compare(const struct expectation *e, const struct sse *sse, const struct buf *heard)
{
    assert_int_equal(heard->len, strlen(e->events));
    assert_memory_equal(heard->len ? heard->at : "", e->events, heard->len);
    assert_int_equal(sse_last_id(sse).len, strlen(e->id));
    assert_memory_equal(e->id, sse_last_id(sse).len ? sse_last_id(sse).at : "", strlen(e->id));
    assert_int_equal(sse->retry_ms, e->retry_ms);
}

TEST(reads_streams_as_the_standard_requires)
{
    for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
        struct sse sse;
        struct buf heard = {0};
        sse_init(&sse, EVENT_MAX);
        feed(&sse, expectations[i].stream, &heard);
        compare(&expectations[i], &sse, &heard);
        sse_clear(&sse);
        buf_clear(&heard);
    }
}

/* Each stream 300 times, in pieces of one to eight bytes, copied so that a sanitizer reports an overrun. */
TEST(reads_the_same_however_the_bytes_are_split)
{
    srand(7);
    for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
        for (int round = 0; round < 300; round++) {
            struct str rest = expectations[i].stream;
            struct sse sse;
            struct buf heard = {0};
            sse_init(&sse, EVENT_MAX);
            while (rest.len && !sse.too_long) {
                size_t n = 1 + (size_t)rand() % (round ? 8 : 1);
                n = n < rest.len ? n : rest.len;
                char *piece = malloc(n);
                memcpy(piece, rest.at, n);
                feed(&sse, (struct str){piece, n}, &heard);
                free(piece);
                rest = str_from(rest, n);
            }
            compare(&expectations[i], &sse, &heard);
            sse_clear(&sse);
            buf_clear(&heard);
        }
    }
}

/* Random bytes, mostly significant ones: the parser must keep its bounds and terminate. */
TEST(survives_random_bytes)
{
    static const char alphabet[] = "\r\n:data idevnt\0\xEF\xBB\xBFx";
    srand(11);
    for (int round = 0; round < 3000; round++) {
        char text[200];
        struct sse sse;
        struct buf heard = {0};
        size_t n = (size_t)rand() % sizeof(text);
        for (size_t i = 0; i < n; i++)
            text[i] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
        sse_init(&sse, EVENT_MAX);
        feed(&sse, (struct str){text, n}, &heard);
        assert_true(sse.data.len <= EVENT_MAX && sse.line.len <= EVENT_MAX + 16);
        sse_clear(&sse);
        buf_clear(&heard);
    }
}

TEST(resumes_after_a_broken_connection)
{
    struct sse sse;
    struct buf heard = {0};
    sse_init(&sse, EVENT_MAX);
    feed(&sse, STR_LIT("id: 1\nretry: 9\ndata: a\n\nid: 2\ndata: hal"), &heard);
    sse_restart(&sse);
    assert_memory_equal(sse_last_id(&sse).at, "1", 1);
    feed(&sse, STR_LIT("data: whole\n\n"), &heard);
    assert_memory_equal(heard.at, "message=a;message=whole;", heard.len);
    assert_memory_equal(sse_last_id(&sse).at, "1", 1);
    assert_int_equal(sse.retry_ms, 9);
    sse_clear(&sse);
    buf_clear(&heard);
}

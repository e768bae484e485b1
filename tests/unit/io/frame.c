/* Splitting bytes into lines, in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/frame.h"

#define MAX 100u

static void feed(struct frame *frame, const char *bytes, size_t len)
{
    while (len) {
        size_t room;
        char *at = frame_reserve(frame, &room);
        size_t n = len < room ? len : room;
        memcpy(at, bytes, n);
        frame_commit(frame, n);
        bytes += n;
        len -= n;
    }
}

static void feed_text(struct frame *frame, const char *text)
{
    feed(frame, text, strlen(text));
}

static void expect_line(struct frame *frame, const char *text)
{
    struct str line;
    assert_int_equal(frame_next(frame, &line), FRAME_LINE);
    assert_int_equal(line.len, strlen(text));
    assert_memory_equal(line.at, text, line.len);
}

static void expect_more(struct frame *frame)
{
    struct str line;
    assert_int_equal(frame_next(frame, &line), FRAME_MORE);
}

static void lines_of_one_feed(void **state)
{
    struct frame frame;
    (void)state;
    frame_init(&frame, MAX);
    expect_more(&frame);
    feed_text(&frame, "one\n\ntwo\nthr");
    expect_line(&frame, "one");
    expect_line(&frame, "");
    expect_line(&frame, "two");
    expect_more(&frame);
    assert_int_equal(frame_partial_bytes(&frame), 3);
    feed_text(&frame, "ee\n");
    expect_line(&frame, "three");
    expect_more(&frame);
    assert_int_equal(frame_partial_bytes(&frame), 0);
    frame_clear(&frame);
}

static void lines_byte_by_byte(void **state)
{
    struct frame frame;
    struct str line;
    const char *text = "{\"a\":1}\nb\n";
    size_t lines = 0;
    (void)state;
    frame_init(&frame, MAX);
    for (size_t i = 0; text[i]; i++) {
        feed(&frame, text + i, 1);
        lines += frame_next(&frame, &line) == FRAME_LINE;
    }
    assert_int_equal(lines, 2);
    frame_clear(&frame);
}

static void a_line_of_the_limit_is_a_line(void **state)
{
    struct frame frame;
    char text[MAX + 2];
    (void)state;
    memset(text, 'x', MAX);
    memcpy(text + MAX, "\n", 2);
    frame_init(&frame, MAX);
    feed_text(&frame, text);
    text[MAX] = '\0';
    expect_line(&frame, text);
    frame_clear(&frame);
}

/* Independent of the pieces in which it arrives. */
static void a_line_over_the_limit_is_reported_once(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 300; piece += 7) {
        struct frame frame;
        struct str line;
        char text[] = "{\"id\":7,";
        size_t told = 0, tails = 0, lines = 0, left = 250;
        frame_init(&frame, MAX);
        feed_text(&frame, "before\n");
        feed_text(&frame, text);
        for (; left; left -= left < piece ? left : piece) {
            char xs[300];
            memset(xs, 'x', sizeof(xs));
            feed(&frame, xs, left < piece ? left : piece);
            for (enum frame_event said = FRAME_LINE; said != FRAME_MORE;) {
                said = frame_next(&frame, &line);
                told += said == FRAME_TOO_LONG;
                lines += said == FRAME_LINE;
                if (said == FRAME_TOO_LONG)
                    assert_memory_equal(line.at, text, strlen(text));
            }
        }
        feed_text(&frame, ",\"id\":8}\nafter\n");
        for (enum frame_event said = FRAME_LINE; said != FRAME_MORE;) {
            said = frame_next(&frame, &line);
            told += said == FRAME_TOO_LONG;
            lines += said == FRAME_LINE;
            if (said == FRAME_TAIL) {
                assert_int_equal(line.len, FRAME_TAIL_BYTES);
                assert_memory_equal(line.at + FRAME_TAIL_BYTES - 11, "xxx,\"id\":8}", 11);
                tails++;
            }
        }
        assert_int_equal(tails, 1);
        assert_int_equal(told, 1);
        assert_int_equal(lines, 2);
        frame_clear(&frame);
    }
}

static void a_refused_line_is_skipped_too(void **state)
{
    struct frame frame;
    struct str head;
    (void)state;
    frame_init(&frame, MAX);
    feed_text(&frame, "half");
    expect_more(&frame);
    frame_discard(&frame, &head);
    assert_true(str_is(head, "half"));
    feed_text(&frame, " a line\nwhole\n");
    assert_int_equal(frame_next(&frame, &head), FRAME_TAIL);
    assert_true(str_is(head, "half a line"));
    expect_line(&frame, "whole");
    frame_clear(&frame);
}

static void a_large_buffer_is_given_back(void **state)
{
    struct frame frame;
    struct str line;
    char *text = test_malloc(FRAME_KEEP_BYTES * 4);
    size_t room;
    (void)state;
    memset(text, 'x', FRAME_KEEP_BYTES * 4);
    text[FRAME_KEEP_BYTES * 4 - 1] = '\n';
    frame_init(&frame, FRAME_KEEP_BYTES * 8);
    feed(&frame, text, FRAME_KEEP_BYTES * 4);
    assert_int_equal(frame_next(&frame, &line), FRAME_LINE);
    assert_int_equal(line.len, FRAME_KEEP_BYTES * 4 - 1);
    frame_reserve(&frame, &room);
    assert_int_equal(room, FRAME_FIRST_BYTES);
    feed(&frame, text, FRAME_KEEP_BYTES * 4);
    frame_shrink(&frame); /* not while a line is in it */
    assert_int_equal(frame_next(&frame, &line), FRAME_LINE);
    frame_shrink(&frame);
    assert_int_equal(frame.in.cap, 0);
    frame_clear(&frame);
    test_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_one_feed),
        cmocka_unit_test(lines_byte_by_byte),
        cmocka_unit_test(a_line_of_the_limit_is_a_line),
        cmocka_unit_test(a_line_over_the_limit_is_reported_once),
        cmocka_unit_test(a_refused_line_is_skipped_too),
        cmocka_unit_test(a_large_buffer_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

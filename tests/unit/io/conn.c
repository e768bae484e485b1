/* A connection on a loop; the test holds the other end of its socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/conn.h"

#define LINE_MAX_BYTES 1000u

struct side {
    struct loop *loop;
    struct conn *conn;
    int peer; /* our end */
    struct buf received;
    size_t lines, too_long, half_line, tail_len, write_closed;
    char tail[64];
    size_t answer; /* bytes written for each line; 0: the line itself */
    bool ended, closed, finish_after_line;
};

static void on_line(void *owner, struct str line)
{
    struct side *side = owner;
    side->lines++;
    buf_str(&side->received, line);
    buf_byte(&side->received, '|');
    struct buf *out = conn_out(side->conn);
    for (size_t i = 0; i < side->answer; i++)
        buf_byte(out, 'x');
    if (!side->answer)
        buf_str(out, line);
    buf_byte(out, '\n');
    if (side->finish_after_line)
        conn_finish(side->conn);
}

static void on_too_long(void *owner, struct str head, bool for_memory)
{
    struct side *side = owner;
    (void)for_memory;
    assert_true(head.len > 0);
    side->too_long++;
}

static void on_tail(void *owner, struct str tail)
{
    struct side *side = owner;
    side->tail_len = tail.len;
    memcpy(side->tail, tail.at, tail.len);
}

static void on_write_closed(void *owner)
{
    struct side *side = owner;
    side->write_closed++;
}

static void on_eof(void *owner, size_t half_line)
{
    struct side *side = owner;
    side->ended = true;
    side->half_line = half_line;
    conn_finish(side->conn);
}

static void on_closed(void *owner)
{
    struct side *side = owner;
    side->closed = true;
}

static const struct conn_callbacks hooks = {on_line,   on_too_long, on_eof,
                                            on_closed, on_tail,     on_write_closed};

static int set_up(void **state)
{
    struct side *side = calloc(1, sizeof(*side));
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    side->loop = loop_new();
    side->peer = pair[1];
    side->conn = conn_new(side->loop, pair[0], pair[0], LINE_MAX_BYTES, &hooks, side);
    *state = side;
    return 0;
}

static int tear_down(void **state)
{
    struct side *side = *state;
    loop_free(side->loop);
    assert_true(side->closed);
    if (side->peer >= 0)
        close(side->peer);
    buf_clear(&side->received);
    free(side);
    return 0;
}

static void send_text(struct side *side, const char *text)
{
    assert_int_equal(send(side->peer, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Turns until nothing more happens. */
static void turn(struct side *side)
{
    for (int i = 0; i < 50; i++)
        loop_turn(side->loop, false);
}

static void expect_answer(struct side *side, const char *text)
{
    char got[4096];
    ssize_t n = recv(side->peer, got, sizeof(got), 0);
    assert_int_equal(n, (ssize_t)strlen(text));
    assert_memory_equal(got, text, strlen(text));
}

static void answers_lines_in_one_send(void **state)
{
    struct side *side = *state;
    send_text(side, "a\nbb\nccc");
    turn(side);
    expect_answer(side, "a\nbb\n");
    send_text(side, "c\n");
    turn(side);
    expect_answer(side, "cccc\n");
    assert_true(str_is(buf_view(&side->received), "a|bb|cccc|"));
}

static void reads_data_from_before_a_hang_up(void **state)
{
    struct side *side = *state;
    send_text(side, "last\nhalf");
    shutdown(side->peer, SHUT_WR);
    turn(side);
    assert_true(side->ended);
    assert_int_equal(side->half_line, 4);
    assert_true(side->closed);
    expect_answer(side, "last\n");
    char byte;
    assert_int_equal(recv(side->peer, &byte, 1, 0), 0);
}

static void notices_a_hang_up_after_idle_time(void **state)
{
    struct side *side = *state;
    send_text(side, "x\n");
    turn(side);
    assert_false(side->ended);
    close(side->peer);
    side->peer = -1;
    turn(side);
    assert_true(side->closed);
    assert_int_equal(side->lines, 1);
}

static void survives_a_long_line(void **state)
{
    struct side *side = *state;
    char line[LINE_MAX_BYTES * 3];
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    send_text(side, line);
    turn(side);
    send_text(side, line);
    turn(side);
    send_text(side, "its end\nok\n");
    turn(side);
    assert_int_equal(side->too_long, 1);
    assert_int_equal(side->tail_len, sizeof(side->tail));
    assert_memory_equal(side->tail + sizeof(side->tail) - 9, "xxits end", 9);
    assert_true(str_is(buf_view(&side->received), "ok|"));
}

static void stops_reading_while_the_peer_does_not_read(void **state)
{
    struct side *side = *state;
    size_t said = 0, answers = 0;
    side->answer = 10000;
    for (int i = 0; i < 3000; i++) {
        ssize_t n = send(side->peer, "line\n", 5, MSG_NOSIGNAL);
        if (n == 5)
            said++;
        loop_turn(side->loop, false);
    }
    turn(side);
    assert_true(side->lines < 200); /* 256 KiB and the kernel's buffer, at 10 kB per line */
    assert_true(loop_bytes(side->loop) < 2 * 1024 * 1024);
    char sink[65536];
    for (int idle = 0; idle < 3;) {
        ssize_t n = recv(side->peer, sink, sizeof(sink), 0);
        for (ssize_t i = 0; i < n; i++)
            answers += sink[i] == '\n';
        idle = n > 0 ? 0 : idle + 1;
        loop_turn(side->loop, false);
    }
    assert_int_equal(side->lines, said);
    assert_int_equal(answers, said);
}

static void finishes_after_the_last_write(void **state)
{
    struct side *side = *state;
    side->finish_after_line = true;
    send_text(side, "bye\nmore\n");
    turn(side);
    assert_true(side->closed);
    assert_int_equal(side->lines, 1);
    expect_answer(side, "bye\n");
}

/* All connections together: an unfinished line is given up, the connection goes on. */
static void gives_up_lines_beyond_the_memory_of_all(void **state)
{
    struct side *side = *state;
    char block[65536];
    conn_limit_line(side->conn, 100000000);
    loop_limit_bytes(side->loop, 200000);
    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 16; i++) {
        assert_true(send(side->peer, block, sizeof(block), MSG_NOSIGNAL) > 0);
        turn(side);
    }
    assert_int_equal(side->too_long, 1);
    assert_true(loop_bytes(side->loop) < 400000);
    send_text(side, "\nok\n");
    turn(side);
    assert_true(str_is(buf_view(&side->received), "ok|"));
}

/* ---- pairs of descriptors, as a process's pipes are ---- */

struct pipes {
    struct side side;
    int to_read; /* our end of what the pair writes */
};

static void open_pair(struct pipes *p, bool sockets)
{
    int in[2], out[2];
    memset(p, 0, sizeof(*p));
    if (sockets) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, in), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, out), 0);
    } else {
        assert_int_equal(pipe2(in, O_NONBLOCK), 0);
        assert_int_equal(pipe2(out, O_NONBLOCK), 0);
    }
    p->side.loop = loop_new();
    p->side.peer = in[1];
    p->to_read = out[0];
    p->side.conn = conn_new(p->side.loop, in[0], out[1], LINE_MAX_BYTES, &hooks, &p->side);
}

static void close_pair(struct pipes *p)
{
    loop_free(p->side.loop);
    if (p->side.peer >= 0)
        close(p->side.peer);
    if (p->to_read >= 0)
        close(p->to_read);
    buf_clear(&p->side.received);
}

static void put(struct pipes *p, const char *text)
{
    assert_int_equal(write(p->side.peer, text, strlen(text)), (ssize_t)strlen(text));
}

static void expect_read(struct pipes *p, const char *text)
{
    char got[4096];
    ssize_t n = read(p->to_read, got, sizeof(got));
    assert_int_equal(n, (ssize_t)strlen(text));
    assert_memory_equal(got, text, strlen(text));
}

static void speaks_by_a_pair(bool sockets)
{
    struct pipes p;
    open_pair(&p, sockets);
    put(&p, "a\nbb\n");
    turn(&p.side);
    expect_read(&p, "a\nbb\n");
    put(&p, "last\nhalf");
    close(p.side.peer);
    p.side.peer = -1;
    turn(&p.side);
    assert_true(p.side.ended);
    assert_int_equal(p.side.half_line, 4);
    assert_true(p.side.closed);
    expect_read(&p, "last\n");
    close_pair(&p);
}

static void speaks_by_pipes(void **state)
{
    (void)state;
    speaks_by_a_pair(false);
}

static void speaks_by_two_sockets(void **state)
{
    (void)state;
    speaks_by_a_pair(true);
}

/* A peer that stopped reading may still send. */
static void reads_a_peer_that_stopped_reading(void **state)
{
    struct pipes p;
    (void)state;
    open_pair(&p, false);
    close(p.to_read);
    p.to_read = -1;
    put(&p, "one\n");
    turn(&p.side);
    assert_false(conn_can_send(p.side.conn));
    assert_int_equal(p.side.write_closed, 1);
    assert_false(p.side.closed);
    put(&p, "two\n");
    turn(&p.side);
    assert_true(str_is(buf_view(&p.side.received), "one|two|"));
    close_pair(&p);
}

/* The end is noticed without a write. */
static void notices_that_the_peer_stops_reading(void **state)
{
    (void)state;
    for (int sockets = 0; sockets < 2; sockets++) {
        struct pipes p;
        open_pair(&p, sockets);
        put(&p, "one\n"); /* its answer is never read */
        turn(&p.side);
        assert_int_equal(p.side.write_closed, 0);
        close(p.to_read);
        p.to_read = -1;
        turn(&p.side);
        assert_int_equal(p.side.write_closed, 1);
        assert_false(p.side.closed);
        close_pair(&p);
    }
}

static void closes_one_direction_and_reads_on(void **state)
{
    struct pipes p;
    char byte;
    (void)state;
    open_pair(&p, true);
    put(&p, "x\n");
    turn(&p.side);
    expect_read(&p, "x\n");
    buf_text(conn_out(p.side.conn), "bye\n");
    conn_close_out(p.side.conn);
    expect_read(&p, "bye\n");
    assert_int_equal(read(p.to_read, &byte, 1), 0);
    put(&p, "thanks\n");
    turn(&p.side);
    assert_true(str_is(buf_view(&p.side.received), "x|thanks|"));
    close_pair(&p);
}

/* A peer that blocks on writing its answer does not read: the loop must read to avoid a deadlock. */
static void reads_on_while_the_peer_does_not_read(void **state)
{
    struct pipes p;
    (void)state;
    open_pair(&p, true);
    p.side.answer = 100000;
    for (int i = 0; i < 20; i++) {
        put(&p, "line\n");
        turn(&p.side);
    }
    assert_int_equal(p.side.lines, 20);
    assert_true(conn_unsent_bytes(p.side.conn) > CONN_OUT_HIGH_BYTES);
    close_pair(&p);
}

static void fires_no_callback_after_it_is_dropped(void **state)
{
    struct pipes p;
    (void)state;
    open_pair(&p, true);
    put(&p, "x\n");
    conn_drop(p.side.conn);
    turn(&p.side);
    assert_int_equal(p.side.lines, 0);
    assert_false(p.side.closed);
    close_pair(&p);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_lines_in_one_send, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_data_from_before_a_hang_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(notices_a_hang_up_after_idle_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_a_long_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stops_reading_while_the_peer_does_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(finishes_after_the_last_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gives_up_lines_beyond_the_memory_of_all, set_up, tear_down),
        cmocka_unit_test(speaks_by_pipes),
        cmocka_unit_test(speaks_by_two_sockets),
        cmocka_unit_test(reads_a_peer_that_stopped_reading),
        cmocka_unit_test(notices_that_the_peer_stops_reading),
        cmocka_unit_test(closes_one_direction_and_reads_on),
        cmocka_unit_test(reads_on_while_the_peer_does_not_read),
        cmocka_unit_test(fires_no_callback_after_it_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

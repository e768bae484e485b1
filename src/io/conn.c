/*
 * Raw libevent events, edge-triggered: a connection is read until the kernel
 * has no more, or until its share of the turn is used up and it queues again.
 * Output is collected and sent once a turn (5 times the throughput at depth
 * 16), EV_WRITE is asked for only when the kernel takes no more. Reading
 * stops while a peer does not read: without that its output grows unbounded.
 */
#include "io/conn.h"

#include "base/log.h"
#include "io/frame.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn {
    struct loop *loop;
    struct conn *next, *previous; /* all of them */
    struct conn *next_dirty, *next_more;
    int fd, out_fd; /* the same for a socket; -1: closed, or none */
    struct event readable, writable;
    struct event hung_up_out; /* of a pair's way out */
    struct frame frame;
    struct buf out;
    size_t sent;    /* of `out` */
    size_t counted; /* bytes of both buffers, as the loop has them in its sum */
    const struct conn_callbacks *hooks;
    void *owner;
    bool dirty, more; /* is in that list */
    bool hung_up;     /* an event said that end of file follows the data */
    bool ended;       /* end of file was read */
    bool reads;       /* still wants lines */
    bool stopping;    /* what has arrived is served, then no more */
    bool paused;      /* too much is unsent */
    bool blocked;     /* waits for EV_WRITE */
    bool finishing;   /* close when sent */
    bool pair;        /* two descriptors */
    bool pipe;        /* it reads from no socket */
    bool dead;        /* close now */
};

struct loop {
    struct event_base *base;
    struct conn *conns, *dirty, *more;
    size_t bytes, max_bytes;
    uint64_t turn, gone_turn; /* the turn, and the one for which `gone` was counted */
    size_t gone;
    struct {
        const void *key;
        void *thing;
        void (*free)(void *thing);
    } kept[LOOP_SINGLETONS_MAX]; /* things of other rooms */
    size_t kept_count;
};

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    if (!loop || !(loop->base = event_base_new())) {
        free(loop);
        return NULL;
    }
    loop->max_bytes = SIZE_MAX;
    return loop;
}

struct event_base *loop_base(struct loop *loop)
{
    return loop->base;
}

size_t loop_bytes(const struct loop *loop)
{
    return loop->bytes;
}

void loop_limit_bytes(struct loop *loop, size_t max)
{
    loop->max_bytes = max;
}

static size_t unsent(const struct conn *c)
{
    return c->out.len - c->sent;
}

static void mark_dirty(struct conn *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = c->loop->dirty;
    c->loop->dirty = c;
}

static void mark_more(struct conn *c)
{
    if (c->more)
        return;
    c->more = true;
    c->next_more = c->loop->more;
    c->loop->more = c;
}

/* A connection that dies is closed when the turn is over: nobody up the stack may hold freed memory. */
static void die(struct conn *c)
{
    c->dead = true;
    mark_dirty(c);
}

static void count_bytes(struct conn *c)
{
    size_t now = c->frame.in.cap + c->out.cap;
    c->loop->bytes += now - c->counted;
    c->counted = now;
}

static bool wants_lines(const struct conn *c)
{
    return c->reads && !c->paused && !c->dead && !c->finishing;
}

static void give_up_line(struct conn *c)
{
    struct str head;
    frame_discard(&c->frame, &head);
    c->hooks->too_long(c->owner, head, true);
}

static void serve_lines(struct conn *c)
{
    struct str line;
    enum frame_event said = FRAME_LINE;
    while (said != FRAME_MORE && wants_lines(c)) {
        said = frame_next(&c->frame, &line);
        if (said == FRAME_LINE)
            c->hooks->line(c->owner, line);
        else if (said == FRAME_TOO_LONG)
            c->hooks->too_long(c->owner, line, false);
        else if (said == FRAME_TAIL && c->hooks->tail)
            c->hooks->tail(c->owner, line);
        c->paused = !c->pair && unsent(c) > CONN_OUT_HIGH_BYTES;
    }
    if (said == FRAME_MORE && c->loop->bytes > c->loop->max_bytes &&
        frame_partial_bytes(&c->frame) > FRAME_KEEP_BYTES)
        give_up_line(c);
}

/* Half closed (socat, a script that has said all): answers still go out. Wholly gone: nobody hears them. */
static bool peer_is_gone(const struct conn *c)
{
    struct pollfd p = {.fd = c->out_fd, .events = POLLOUT};
    return !c->pair && poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

size_t loop_closed_peers(struct loop *loop)
{
    if (loop->gone_turn == loop->turn)
        return loop->gone;
    loop->gone_turn = loop->turn;
    loop->gone = 0;
    for (const struct conn *c = loop->conns; c; c = c->next)
        loop->gone += peer_is_gone(c);
    return loop->gone;
}

static void end_of_file(struct conn *c)
{
    c->ended = true;
    c->reads = false;
    c->hooks->eof(c->owner, c->frame.skipping ? 0 : frame_partial_bytes(&c->frame));
    if (peer_is_gone(c))
        die(c);
}

/* One read. False: there is nothing more to read now. A read that does not fill its room has emptied the
 * socket; only after a hang-up must the end of file be read, too, for no further edge would tell of it. A
 * pipe never says that it was hung up. */
static bool read_some(struct conn *c, size_t *got)
{
    size_t room;
    char *at = frame_reserve(&c->frame, &room);
    ssize_t n = c->pipe ? read(c->fd, at, room) : recv(c->fd, at, room, 0);
    *got = n > 0 ? (size_t)n : 0;
    if (n > 0) {
        frame_commit(&c->frame, (size_t)n);
        return (size_t)n == room || c->hung_up || c->pipe;
    }
    if (n == 0)
        end_of_file(c);
    else if (errno != EAGAIN && errno != EINTR)
        die(c);
    return n < 0 && errno == EINTR;
}

/* Whatever the peer still sends is not heard. */
static void hear_no_more(struct conn *c)
{
    c->reads = false;
    c->hooks->eof(c->owner, c->frame.skipping ? 0 : frame_partial_bytes(&c->frame));
}

/* Lines that wait in the buffer first, then what the socket holds, up to this turn's share. */
static void pump(struct conn *c)
{
    size_t share = CONN_TURN_BYTES, got;
    bool again = true;
    serve_lines(c);
    while (again && wants_lines(c)) {
        if (share == 0) {
            mark_more(c);
            break;
        }
        again = read_some(c, &got);
        share -= got < share ? got : share;
        count_bytes(c);
        serve_lines(c);
    }
    if (c->stopping && c->reads)
        hear_no_more(c);
    if (unsent(c) > 0 || c->dead || c->finishing)
        mark_dirty(c);
    frame_shrink(&c->frame);
    count_bytes(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd;
    if (what & EV_CLOSED)
        c->hung_up = true;
    pump(c);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd, (void)what;
    c->blocked = false;
    mark_dirty(c);
}

static void stop_sending(struct conn *c);

/* What was written and never read is gone without an error: only this tells. A peer may write to what it
 * should read, where both are sockets. */
static void on_out_hung_up(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    (void)what;
    if (poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR))
        stop_sending(c);
}

static int watch(struct conn *c)
{
    struct event_base *base = c->loop->base;
    event_assign(&c->readable, base, c->fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, base, c->out_fd, EV_WRITE | EV_ET, on_writable, c);
    event_assign(&c->hung_up_out, base, c->out_fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_out_hung_up,
                 c);
    if (c->pair && c->out_fd >= 0 && event_add(&c->hung_up_out, NULL) != 0)
        return -1;
    return event_add(&c->readable, NULL);
}

static struct conn *make_conn(struct loop *loop, int in, int out, size_t line_max,
                              const struct conn_callbacks *hooks, void *owner)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    c->loop = loop;
    c->fd = in;
    c->out_fd = out;
    c->pair = in != out;
    c->hooks = hooks;
    c->owner = owner;
    c->reads = true;
    frame_init(&c->frame, line_max);
    c->next = loop->conns;
    if (c->next)
        c->next->previous = c;
    loop->conns = c;
    if (watch(c) != 0)
        die(c);
    return c;
}

struct conn *conn_new(struct loop *loop, int fd, size_t line_max, const struct conn_callbacks *hooks,
                      void *owner)
{
    return make_conn(loop, fd, fd, line_max, hooks, owner);
}

struct conn *conn_new_pair(struct loop *loop, int in, int out, size_t line_max,
                           const struct conn_callbacks *hooks, void *owner)
{
    struct conn *c = make_conn(loop, in, out, line_max, hooks, owner);
    int type;
    socklen_t size = sizeof(type);
    c->pipe = getsockopt(in, SOL_SOCKET, SO_TYPE, &type, &size) != 0;
    return c;
}

void conn_limit_line(struct conn *conn, size_t line_max)
{
    conn->frame.max = line_max;
}

size_t conn_unsent_bytes(const struct conn *conn)
{
    return unsent(conn);
}

bool conn_can_send(const struct conn *conn)
{
    return conn->out_fd >= 0 && !conn->dead;
}

struct buf *conn_out(struct conn *conn)
{
    mark_dirty(conn);
    return &conn->out;
}

void conn_finish(struct conn *conn)
{
    conn->finishing = true;
    mark_dirty(conn);
}

static void hear_line(void *owner, struct str line)
{
    (void)owner, (void)line;
}

static void hear_too_long(void *owner, struct str head, bool for_memory)
{
    (void)owner, (void)head, (void)for_memory;
}

static void hear_eof(void *owner, size_t half_line)
{
    (void)owner, (void)half_line;
}

static void hear_gone(void *owner)
{
    (void)owner;
}

static const struct conn_callbacks nobody = {
    .line = hear_line, .too_long = hear_too_long, .eof = hear_eof, .gone = hear_gone};

void conn_drop(struct conn *conn)
{
    conn->hooks = &nobody;
    conn->owner = NULL;
    die(conn);
}

void conn_stop_reading(struct conn *conn)
{
    conn->stopping = true;
    mark_more(conn);
}

static void forget_sent(struct conn *c)
{
    c->out.len = c->sent = 0;
    if (c->out.cap > CONN_OUT_LOW_BYTES)
        buf_clear(&c->out);
}

/* The kernel takes no more: wait for it, and don't keep what it has taken where that is most of the buffer.
 */
static void block(struct conn *c)
{
    if (c->sent > c->out.len / 2) {
        buf_drop(&c->out, c->sent);
        c->sent = 0;
    }
    c->blocked = true;
    event_add(&c->writable, NULL);
}

/* A pipe of which nobody reads raises SIGPIPE, which whoever starts processes ignores. */
static ssize_t write_some(const struct conn *c)
{
    const char *at = c->out.at + c->sent;
    ssize_t n;
    do {
        n = send(c->out_fd, at, unsent(c), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == ENOTSOCK)
            n = write(c->out_fd, at, unsent(c));
    } while (n < 0 && errno == EINTR);
    return n;
}

static void close_out(struct conn *c)
{
    if (!c->pair || c->out_fd < 0)
        return;
    event_del(&c->writable);
    event_del(&c->hung_up_out);
    close(c->out_fd);
    c->out_fd = -1;
    c->blocked = false;
}

/* Of a pair, the other half may still have something to say. What is unsent is dropped at the end of the
 * turn. */
static void stop_sending(struct conn *c)
{
    if (!c->pair) {
        c->dead = true;
        return;
    }
    if (c->out_fd < 0)
        return;
    close_out(c);
    mark_dirty(c);
    if (c->hooks->deaf)
        c->hooks->deaf(c->owner);
}

static void send_out(struct conn *c)
{
    ssize_t n = c->out_fd < 0 ? (ssize_t)unsent(c) : write_some(c);
    if (n < 0 && errno != EAGAIN) {
        stop_sending(c);
        n = (ssize_t)unsent(c);
    }
    c->sent += n > 0 ? (size_t)n : 0;
    if (unsent(c) == 0)
        forget_sent(c);
    else
        block(c);
}

void conn_close_out(struct conn *conn)
{
    if (conn->out_fd >= 0 && unsent(conn) > 0)
        (void)!write_some(conn);
    close_out(conn);
    forget_sent(conn);
    mark_dirty(conn);
}

static void close_conn(struct conn *c)
{
    struct loop *loop = c->loop;
    c->hooks->gone(c->owner);
    event_del(&c->readable);
    event_del(&c->writable);
    close_out(c);
    close(c->fd);
    if (c->previous)
        c->previous->next = c->next;
    else
        loop->conns = c->next;
    if (c->next)
        c->next->previous = c->previous;
    loop->bytes -= c->counted;
    frame_clear(&c->frame);
    buf_clear(&c->out);
    free(c);
}

/* At the end of the turn: send, then resume or close. */
static void settle(struct conn *c)
{
    if (!c->dead && !c->blocked && unsent(c) > 0)
        send_out(c);
    count_bytes(c);
    if (c->paused && unsent(c) <= CONN_OUT_LOW_BYTES) {
        c->paused = false;
        mark_more(c);
    }
    /* One that is in the list of those with more to read is freed from there: the list points at it. */
    if ((c->dead || (c->finishing && unsent(c) == 0)) && !c->more)
        close_conn(c);
}

static void flush_dirty(struct loop *loop)
{
    while (loop->dirty) {
        struct conn *c = loop->dirty;
        loop->dirty = c->next_dirty;
        c->dirty = false;
        settle(c);
    }
}

static void pump_more(struct loop *loop)
{
    struct conn *c = loop->more;
    loop->more = NULL;
    while (c) {
        struct conn *next = c->next_more;
        c->more = false;
        pump(c);
        c = next;
    }
}

void loop_turn(struct loop *loop, bool wait)
{
    bool busy = loop->more || !wait;
    loop->turn++;
    event_base_loop(loop->base, EVLOOP_ONCE | (busy ? EVLOOP_NONBLOCK : 0));
    pump_more(loop);
    flush_dirty(loop);
}

void *loop_singleton(struct loop *loop, const void *key, void *(*make)(struct loop *loop),
                     void (*free_thing)(void *))
{
    for (size_t i = 0; i < loop->kept_count; i++)
        if (loop->kept[i].key == key)
            return loop->kept[i].thing;
    void *thing = loop->kept_count < LOOP_SINGLETONS_MAX && make ? make(loop) : NULL;
    if (thing) {
        loop->kept[loop->kept_count].key = key;
        loop->kept[loop->kept_count].thing = thing;
        loop->kept[loop->kept_count++].free = free_thing;
    }
    return thing;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    while (loop->kept_count) {
        loop->kept_count--;
        loop->kept[loop->kept_count].free(loop->kept[loop->kept_count].thing);
    }
    for (struct conn *c = loop->conns, *next; c; c = next) {
        next = c->next;
        close_conn(c);
    }
    event_base_free(loop->base);
    free(loop);
}

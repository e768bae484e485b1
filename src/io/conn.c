/*
 * Raw libevent events, edge-triggered: a connection is read until the kernel
 * has no more, or until the time of its turn is used up and it queues again.
 * Output is collected and sent once a turn, which gives 5 times the throughput
 * at depth 16; EV_WRITE is used only if the kernel takes no more. Reading
 * stops while a peer does not read, or its output would grow without bound.
 */
#include "io/conn.h"

#include "base/alloc.h"
#include "base/address_space.h"
#include "base/buf.h"
#include "base/clock.h"
#include "io/turn.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- frame: splits a byte stream into lines ----
 *
 * It has one read buffer and reads each byte once. A line over the limit is reported once with its beginning,
 * then skipped, and its end is reported. */

#define FRAME_FIRST_BYTES 16384u /* initial size of the read buffer */
#define FRAME_KEEP_BYTES  65536u /* an empty buffer larger than this is freed */
#define FRAME_HEAD_BYTES  65536u /* of a line over the limit: reported so that its id can be read */
#define FRAME_TAIL_BYTES  64u    /* of its end, where some clients put the id */

struct frame {
    struct buf in;
    size_t at;      /* start of the current line */
    size_t scanned; /* there is no newline before this: the search continues here */
    size_t max;     /* bytes of a line without its newline */
    bool skipping;  /* the rest of a line over the limit */
    uint32_t tail_len;
    char tail[FRAME_TAIL_BYTES]; /* the last skipped bytes */
};

enum frame_event { FRAME_LINE, FRAME_MORE, FRAME_TOO_LONG, FRAME_TAIL };

/* Bytes of the unfinished line. */
static inline size_t frame_partial_bytes(const struct frame *frame)
{
    return frame->in.len - frame->at;
}

/* If everything was used, starts at the front of the buffer; a large one is freed. */
static void frame_rewind(struct frame *frame)
{
    if (frame->at != frame->in.len)
        return;
    if (frame->in.cap > FRAME_KEEP_BYTES)
        buf_clear(&frame->in);
    frame->in.len = frame->at = frame->scanned = 0;
}

/* Returns where the next bytes go and how many fit; the caller adds what it writes to `in.len`. */
static char *frame_reserve(struct frame *frame, size_t *space)
{
    struct buf *in = &frame->in;
    frame_rewind(frame);
    if (in->cap == in->len && frame->at > 0) {
        buf_drop(in, frame->at);
        frame->scanned -= frame->at;
        frame->at = 0;
    }
    if (in->cap == 0)
        buf_reserve(in, FRAME_FIRST_BYTES);
    else if (in->cap - in->len < in->cap / 4)
        buf_reserve(in, in->cap); /* a long line: doubling takes few reads */
    *space = in->cap - in->len;
    return in->at + in->len;
}

/* Appends what is skipped, from `at` to `end`, to the kept tail. */
static void keep_tail(struct frame *frame, size_t end)
{
    const char *bytes = frame->in.at + frame->at;
    size_t count = end - frame->at;
    if (count > FRAME_TAIL_BYTES) {
        bytes += count - FRAME_TAIL_BYTES;
        count = FRAME_TAIL_BYTES;
    }
    size_t before = frame->tail_len < FRAME_TAIL_BYTES - count ? frame->tail_len : FRAME_TAIL_BYTES - count;
    memmove(frame->tail, frame->tail + frame->tail_len - before, before);
    if (count)
        memcpy(frame->tail + before, bytes, count);
    frame->tail_len = (uint32_t)(before + count);
}

static struct str head_of(const struct frame *frame, size_t length)
{
    return (struct str){frame->in.at + frame->at, length < FRAME_HEAD_BYTES ? length : FRAME_HEAD_BYTES};
}

/* Treats the unfinished line as one over the limit; `head` is its beginning. */
static void frame_discard(struct frame *frame, struct str *head)
{
    *head = head_of(frame, frame->in.len - frame->at);
    frame->tail_len = 0;
    keep_tail(frame, frame->in.len);
    frame->at = frame->scanned = frame->in.len;
    frame->skipping = true;
}

/* FRAME_LINE: `line` is a line without its newline. FRAME_MORE: more bytes are needed. FRAME_TOO_LONG: `line`
 * is the beginning of a line over the limit, at most FRAME_HEAD_BYTES, once for each such line. FRAME_TAIL:
 * that line ended; `line` is its end, at most FRAME_TAIL_BYTES. `line` is valid until the next call of a
 * frame function. */
static enum frame_event frame_next(struct frame *frame, struct str *line)
{
    size_t unseen = frame->in.len - frame->scanned;
    const char *newline = unseen ? memchr(frame->in.at + frame->scanned, '\n', unseen) : NULL;
    if (!newline) {
        frame->scanned = frame->in.len;
        if (frame->skipping) {
            keep_tail(frame, frame->in.len);
            frame->at = frame->in.len;
        }
        if (frame->in.len - frame->at <= frame->max)
            return FRAME_MORE;
        frame_discard(frame, line);
        return FRAME_TOO_LONG;
    }
    size_t end = (size_t)(newline - frame->in.at), length = end - frame->at;
    if (!frame->skipping && length > frame->max) {
        *line = head_of(frame, length);
        frame->skipping = true; /* so that the next call reports its tail */
        frame->scanned = end;
        frame->tail_len = 0;
        return FRAME_TOO_LONG;
    }
    bool tail = frame->skipping;
    if (tail)
        keep_tail(frame, end);
    *line =
        tail ? (struct str){frame->tail, frame->tail_len} : (struct str){frame->in.at + frame->at, length};
    frame->skipping = false;
    frame->at = frame->scanned = end + 1;
    return tail ? FRAME_TAIL : FRAME_LINE;
}

/* ---- connections and the loop ---- */

struct conn {
    struct loop *loop;
    LIST_ENTRY(conn) all;
    SLIST_ENTRY(conn) next_dirty;
    struct turn turn; /* waits: there may be more to read, or lines are left */
    int fd, out_fd;   /* equal for a socket; -1: closed, or none */
    struct event readable, writable;
    struct event out_hung_up; /* of a pair's `out_fd` */
    struct frame frame;
    struct buf out;
    int64_t read_ns;                        /* the last read; 0: not timed */
    size_t sent;                            /* of `out` */
    uint64_t gone;                          /* bytes of output that are no longer in `out` */
    size_t counted;                         /* bytes of both buffers that are included in the loop's sum */
    const struct conn_callbacks *callbacks; /* NULL: dropped */
    void *owner;
    uint64_t batch; /* 0: nothing was read yet */
    bool answered;  /* something was sent since the batch began */
    bool dirty;     /* is in that list */
    bool hung_up;   /* an event reported that end of file follows the data */
    bool reads;     /* still wants lines */
    bool stopping;  /* of a pair: reads only what has arrived */
    bool paused;    /* too much is unsent */
    bool held;      /* by conn_hold */
    bool blocked;   /* waits for EV_WRITE */
    bool finishing; /* close when sent */
    bool pair;      /* two descriptors */
    bool pipe;      /* `fd` is no socket */
    bool deaf;      /* a socket whose peer reads no more: what it has sent is still handled */
    bool cut;       /* its last turn left something for the next */
    bool dead;      /* close at the end of the turn */
};

SLIST_HEAD(conn_queue, conn);

struct loop {
    struct event_base *base;
    LIST_HEAD(, conn) conns;
    struct conn_queue dirty; /* to be sent, resumed or closed at the end of the turn */
    struct turn_queue queue;
    size_t bytes, max_bytes;
    uint64_t batches; /* of all connections so far */
    bool times_reads;
    uint64_t turn, closed_turn; /* the current turn; the turn for which `closed` was counted */
    size_t closed;
    struct {
        const void *key;
        void *object;
        void (*free)(void *object);
    } singletons[LOOP_SINGLETONS_MAX];
    size_t singleton_count;
};

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    if (!loop || !(loop->base = event_base_new())) {
        free(loop);
        return NULL;
    }
    loop->max_bytes = SIZE_MAX;
    turn_queue_init(&loop->queue);
    return loop;
}

struct event_base *loop_base(struct loop *loop)
{
    return loop->base;
}

struct turn_queue *loop_queue(struct loop *loop)
{
    return &loop->queue;
}

size_t loop_bytes(const struct loop *loop)
{
    return loop->bytes;
}

void loop_limit_bytes(struct loop *loop, size_t max)
{
    loop->max_bytes = max;
}

uint64_t loop_turns(const struct loop *loop)
{
    return loop->turn;
}

void loop_time_reads(struct loop *loop, bool timed)
{
    loop->times_reads = timed;
}

size_t conn_unsent_bytes(const struct conn *c)
{
    return c->out.len - c->sent;
}

uint64_t conn_written_bytes(const struct conn *c)
{
    return c->gone + c->out.len;
}

static void mark_dirty(struct conn *c)
{
    if (!c->dirty)
        SLIST_INSERT_HEAD(&c->loop->dirty, c, next_dirty);
    c->dirty = true;
}

/* It is freed when the turn is over, as callers up the stack still use it. */
static void kill_conn(struct conn *c)
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

/* ---- reading ------------------------------------------------------------------------------------ */

static bool wants_lines(const struct conn *c)
{
    return c->reads && !c->paused && !c->held && !c->dead && !c->finishing;
}

/* A pair that stops has one last turn, which ends by bytes. */
static bool time_is_over(const struct conn *c)
{
    return !c->stopping && turn_is_over(&c->loop->queue);
}

/* Returns whether lines may be left for another turn. */
static bool handle_lines(struct conn *c)
{
    struct str line;
    enum frame_event event = FRAME_LINE;
    bool over = false;
    while (event != FRAME_MORE && wants_lines(c) && !over) {
        event = frame_next(&c->frame, &line);
        if (event == FRAME_LINE)
            c->callbacks->line(c->owner, line);
        else if (event == FRAME_TOO_LONG)
            c->callbacks->too_long(c->owner, line, false);
        else if (event == FRAME_TAIL && c->callbacks->tail)
            c->callbacks->tail(c->owner, line);
        c->paused = !c->pair && conn_unsent_bytes(c) > CONN_OUT_HIGH_BYTES;
        over = time_is_over(c);
    }
    size_t partial = event == FRAME_MORE ? frame_partial_bytes(&c->frame) : 0;
    if (partial > FRAME_KEEP_BYTES &&
        (c->loop->bytes > c->loop->max_bytes || address_space_for_text(partial) < partial)) {
        frame_discard(&c->frame, &line);
        c->callbacks->too_long(c->owner, line, true);
    }
    return event != FRAME_MORE;
}

/* False for a peer that only closed its sending side (socat, a script): it still reads. */
static bool peer_has_closed(const struct conn *c)
{
    struct pollfd p = {.fd = c->out_fd, .events = POLLOUT};
    return !c->pair && poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

size_t loop_closed_peers(struct loop *loop)
{
    const struct conn *c;
    if (loop->closed_turn == loop->turn)
        return loop->closed;
    loop->closed_turn = loop->turn;
    loop->closed = 0;
    LIST_FOREACH (c, &loop->conns, all)
        loop->closed += !c->cut && !c->held && peer_has_closed(c);
    return loop->closed;
}

static void end_of_input(struct conn *c)
{
    c->reads = false;
    size_t len = c->frame.skipping ? 0 : frame_partial_bytes(&c->frame);
    c->callbacks->eof(c->owner, len ? (struct str){c->frame.in.at + c->frame.at, len} : STR_NONE);
}

/* One read; returns whether there may be more. A read that does not fill the buffer has emptied a socket.
 * After a hang-up the end of file must be read, too, as no edge follows; a pipe never reports a hang-up. */
static bool read_some(struct conn *c, size_t *got)
{
    size_t space;
    char *at = frame_reserve(&c->frame, &space);
    /* One read of a socket goes on as long as its peer writes: limits would be looked at too late. */
    if (space > CONN_READ_BYTES)
        space = CONN_READ_BYTES;
    ssize_t n = c->pipe ? read(c->fd, at, space) : recv(c->fd, at, space, 0);
    *got = n > 0 ? (size_t)n : 0;
    if (c->loop->times_reads)
        c->read_ns = clock_mono_ns();
    if (n > 0 && (c->answered || !c->batch)) {
        c->batch = ++c->loop->batches;
        c->answered = false;
    }
    if (n > 0) {
        c->frame.in.len += (size_t)n;
        return (size_t)n == space || c->hung_up || c->pipe;
    }
    if (n == 0)
        end_of_input(c);
    else if (errno != EAGAIN && errno != EINTR)
        kill_conn(c);
    return n < 0 && errno == EINTR;
}

/* Handles the lines that are buffered, then what the socket holds, until the time is over. Of a pair that
 * stops: up to a number of bytes, as its peer may write without end. */
static void pump(void *owner)
{
    struct conn *c = owner;
    size_t share = CONN_READ_BYTES, got;
    bool more = true, left = handle_lines(c);
    while (more && !left && wants_lines(c) && !time_is_over(c) && (share || !c->stopping)) {
        more = read_some(c, &got);
        share -= got < share ? got : share;
        count_bytes(c);
        left = handle_lines(c);
    }
    if (c->stopping && c->reads)
        end_of_input(c);
    c->cut = (more || left) && wants_lines(c);
    if (c->cut)
        turn_ask(&c->turn);
    else if ((c->deaf && !c->paused && !c->held) || (!c->reads && peer_has_closed(c)))
        kill_conn(c); /* also of a peer that had closed its sending side before, and waited for a reply */
    if (conn_unsent_bytes(c) > 0 || c->dead || c->finishing)
        mark_dirty(c);
    frame_rewind(&c->frame); /* frees a large empty buffer, as the next bytes may be long in coming */
    count_bytes(c);
}

/* ---- sending ------------------------------------------------------------------------------------ */

static void close_out(struct conn *c)
{
    if (!c->pair || c->out_fd < 0)
        return;
    event_del(&c->writable);
    event_del(&c->out_hung_up);
    close(c->out_fd);
    c->out_fd = -1;
    c->blocked = false;
}

/* The peer reads no more. Of a pair it may still send; unsent output is dropped at the end of the turn. What
 * a socket's peer has sent before is handled: a report must not be lost because its reply is not awaited. */
static void stop_sending(struct conn *c)
{
    if (!c->pair) {
        bool lines_left = c->reads && !c->finishing && (c->turn.waits || c->paused || c->held);
        c->dead = !lines_left || shutdown(c->fd, SHUT_RD) != 0;
        c->deaf = c->hung_up = true;
    } else if (c->out_fd >= 0) {
        close_out(c);
        mark_dirty(c);
        if (c->callbacks && c->callbacks->write_closed)
            c->callbacks->write_closed(c->owner);
    }
}

static void clear_sent(struct conn *c)
{
    c->gone += c->out.len;
    c->out.len = c->sent = 0;
    if (c->out.cap > CONN_OUT_LOW_BYTES)
        buf_clear(&c->out);
}

/* A pipe without a reader raises SIGPIPE, which a caller that starts processes must ignore. */
static ssize_t write_some(const struct conn *c)
{
    const char *at = c->out.at + c->sent;
    ssize_t n;
    do {
        n = send(c->out_fd, at, conn_unsent_bytes(c), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == ENOTSOCK)
            n = write(c->out_fd, at, conn_unsent_bytes(c));
    } while (n < 0 && errno == EINTR);
    return n;
}

static void send_out(struct conn *c)
{
    ssize_t n = c->out_fd < 0 || c->deaf ? (ssize_t)conn_unsent_bytes(c) : write_some(c);
    if (n < 0 && errno != EAGAIN) {
        stop_sending(c);
        n = (ssize_t)conn_unsent_bytes(c);
    }
    c->sent += n > 0 ? (size_t)n : 0;
    c->answered |= n > 0;
    if (conn_unsent_bytes(c) == 0) {
        clear_sent(c);
        return;
    }
    if (c->sent > c->out.len / 2) { /* most of the buffer is sent: free it */
        buf_drop(&c->out, c->sent);
        c->gone += c->sent;
        c->sent = 0;
    }
    c->blocked = true;
    event_add(&c->writable, NULL);
}

/* ---- events ------------------------------------------------------------------------------------- */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd;
    if (what & EV_CLOSED)
        c->hung_up = true;
    turn_ask(&c->turn);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd, (void)what;
    c->blocked = false;
    mark_dirty(c);
}

/* Output that the peer never reads is lost without an error; only this event reports it. A socket is also
 * readable if the peer writes to it, hence the poll. */
static void on_out_hung_up(evutil_socket_t fd, short what, void *arg)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    (void)what;
    if (poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR))
        stop_sending(arg);
}

struct conn *conn_new(struct loop *loop, int in, int out, size_t line_max,
                      const struct conn_callbacks *callbacks, void *owner)
{
    struct conn *c = alloc_zeroed(sizeof(*c));
    int type;
    socklen_t size = sizeof(type);
    c->loop = loop;
    c->fd = in;
    c->out_fd = out;
    c->pair = in != out;
    c->pipe = c->pair && getsockopt(in, SOL_SOCKET, SO_TYPE, &type, &size) != 0;
    c->callbacks = callbacks;
    c->owner = owner;
    c->reads = true;
    c->frame.max = line_max;
    LIST_INSERT_HEAD(&loop->conns, c, all);
    turn_join(&c->turn, &loop->queue, c->pair ? TURN_NOBODY : turn_peer(in), TURN_PROMPT, pump, c);
    event_assign(&c->readable, loop->base, in, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, loop->base, out, EV_WRITE | EV_ET, on_writable, c);
    event_assign(&c->out_hung_up, loop->base, out, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_out_hung_up,
                 c);
    if ((c->pair && out >= 0 && event_add(&c->out_hung_up, NULL) != 0) || event_add(&c->readable, NULL) != 0)
        kill_conn(c);
    return c;
}

void conn_limit_line(struct conn *conn, size_t line_max)
{
    conn->frame.max = line_max;
}

int64_t conn_read_ns(const struct conn *conn)
{
    return conn->loop->times_reads ? conn->read_ns : 0;
}

uint64_t conn_batch(const struct conn *conn)
{
    return conn->batch;
}

bool conn_can_send(const struct conn *conn)
{
    return conn->out_fd >= 0 && !conn->dead && !conn->deaf;
}

struct buf *conn_out(struct conn *conn)
{
    mark_dirty(conn);
    return &conn->out;
}

void conn_close_out(struct conn *conn)
{
    if (conn->out_fd >= 0 && conn_unsent_bytes(conn) > 0)
        (void)!write_some(conn);
    close_out(conn);
    clear_sent(conn);
    mark_dirty(conn);
}

void conn_hold(struct conn *conn, bool held)
{
    conn->held = held;
    if (!held)
        turn_ask(&conn->turn);
}

void conn_finish(struct conn *conn)
{
    conn->finishing = true;
    mark_dirty(conn);
}

void conn_drop(struct conn *conn)
{
    conn->callbacks = NULL;
    conn->reads = false;
    kill_conn(conn);
}

/* The kernel draws the line: what the peer has sent until now is read, and then the end of file; what it
 * sends later fails at the peer. A pair has no such line, as another process may hold the other end. */
void conn_stop_reading(struct conn *conn)
{
    if (conn->pair)
        conn->stopping = true;
    else if (shutdown(conn->fd, SHUT_RD) == 0)
        conn->hung_up = true;
    turn_ask(&conn->turn);
}

/* ---- the turn ----------------------------------------------------------------------------------- */

static void close_conn(struct conn *c)
{
    if (c->callbacks)
        c->callbacks->closed(c->owner);
    event_del(&c->readable);
    event_del(&c->writable);
    close_out(c);
    close(c->fd);
    LIST_REMOVE(c, all);
    turn_leave(&c->turn);
    c->loop->bytes -= c->counted;
    buf_clear(&c->frame.in);
    buf_clear(&c->out);
    free(c);
}

void loop_turn(struct loop *loop, bool wait)
{
    bool busy = !turn_queue_is_empty(&loop->queue) || !wait;
    loop->turn++;
    event_base_loop(loop->base, EVLOOP_ONCE | (busy ? EVLOOP_NONBLOCK : 0));
    turn_queue_run(&loop->queue);
    for (struct conn *c; (c = SLIST_FIRST(&loop->dirty));) {
        SLIST_REMOVE_HEAD(&loop->dirty, next_dirty);
        c->dirty = false;
        /* Send, then resume or close. */
        if (!c->dead && !c->blocked && conn_unsent_bytes(c) > 0)
            send_out(c);
        count_bytes(c);
        if (c->paused && conn_unsent_bytes(c) <= CONN_OUT_LOW_BYTES) {
            c->paused = false;
            turn_ask(&c->turn);
        }
        if (c->dead || (c->finishing && conn_unsent_bytes(c) == 0))
            close_conn(c);
    }
}

void *loop_singleton(struct loop *loop, const void *key, void *(*make)(struct loop *loop),
                     void (*free_object)(void *))
{
    for (size_t i = 0; i < loop->singleton_count; i++)
        if (loop->singletons[i].key == key)
            return loop->singletons[i].object;
    void *object = loop->singleton_count < LOOP_SINGLETONS_MAX && make ? make(loop) : NULL;
    if (object) {
        loop->singletons[loop->singleton_count].key = key;
        loop->singletons[loop->singleton_count].object = object;
        loop->singletons[loop->singleton_count++].free = free_object;
    }
    return object;
}

void loop_close_connections(struct loop *loop)
{
    for (struct conn *c = LIST_FIRST(&loop->conns), *next; c; c = next) { /* no callback opens another */
        next = LIST_NEXT(c, all);
        close_conn(c);
    }
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    while (loop->singleton_count) {
        loop->singleton_count--;
        loop->singletons[loop->singleton_count].free(loop->singletons[loop->singleton_count].object);
    }
    loop_close_connections(loop);
    event_base_free(loop->base);
    free(loop);
}

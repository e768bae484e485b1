/*
 * One connection: bytes in as lines, bytes out once a turn. A socket, or the
 * two ends that we hold of a process's pipes. Knows nothing of what the lines
 * mean. And the loop that turns all of them.
 *
 *   readable ─▶ read ─▶ frame ─▶ hooks->line ─▶ conn_out … end of turn ─▶ one send
 *                 ▲                                │ more than CONN_OUT_HIGH unsent
 *                 └──── resumes when drained ◀──── reading stops
 */
#ifndef TOOLGATE_IO_CONN_H
#define TOOLGATE_IO_CONN_H

#include "base/buf.h"

struct conn;
struct event_base;
struct loop;

#define CONN_OUT_HIGH_BYTES 262144u /* unsent: reading stops above this */
#define CONN_OUT_LOW_BYTES  65536u  /* unsent: reading goes on below this */
#define CONN_TURN_BYTES     262144u /* read from one connection before the others get their turn */

/* Each fires from the loop's turn, never inside a conn_ function. */
struct conn_callbacks {
    void (*line)(void *owner, struct str line); /* valid during the call only */
    /* `head`: the beginning of a line that was given up; `for_memory`: not for its own length but because all
     * connections together hold too much. */
    void (*too_long)(void *owner, struct str head, bool for_memory);
    void (*eof)(void *owner, size_t half_line); /* the peer sends no more; answers may still be written */
    void (*gone)(void *owner);                  /* last one: the conn is freed when it returns */
    /* May be NULL: the line that was given up is over; its last bytes, at most FRAME_TAIL_BYTES (io/frame.h).
     */
    void (*tail)(void *owner, struct str tail);
    /* May be NULL. Of a pair: what was written could not be sent, the peer hears no more. */
    void (*deaf)(void *owner);
};

struct loop *loop_new(void);
void loop_free(struct loop *loop); /* drops every connection, `gone` fires for each */
struct event_base *loop_base(struct loop *loop);

/* Waits for something to happen, serves it, then sends what was written. `wait` false: only what is ready
 * now. */
void loop_turn(struct loop *loop, bool wait);

/* Bytes in read buffers and of unsent output, all connections together; unfinished lines are given up beyond
 * the limit. */
size_t loop_bytes(const struct loop *loop);
void loop_limit_bytes(struct loop *loop, size_t max);

/* Connections whose peer has closed and which will end with the next turn. Looked up once a turn, for whoever
 * is about to refuse a new one. */
size_t loop_closed_peers(struct loop *loop);

/* What there is once for a loop (all HTTP, all processes), without a global: made when it is first asked for,
 * freed with the loop, before the connections. `key`: any address of the asker's own. `make` NULL, or
 * returning NULL: only what is there already, or NULL. */
#define LOOP_SINGLETONS_MAX 4u
void *loop_singleton(struct loop *loop, const void *key, void *(*make)(struct loop *loop),
                     void (*free_thing)(void *));

/* Takes over the socket, which must be non-blocking; lines up to `line_max` bytes. */
struct conn *conn_new(struct loop *loop, int fd, size_t line_max, const struct conn_callbacks *hooks,
                      void *owner);
void conn_limit_line(struct conn *conn, size_t line_max);

/*
 * Reads from one descriptor and writes to another, pipes or sockets, both non-blocking and both taken over;
 * `out` -1: it only hears. Reading does not stop for what is unsent: one that writes its answer and one that
 * waits until it is read would wait for each other, so whoever writes bounds what it writes
 * (conn_unsent_bytes). A peer that hears no more may still say what it has to say: only its end of file,
 * after which `eof` fires, or a conn_ function ends it.
 */
struct conn *conn_new_pair(struct loop *loop, int in, int out, size_t line_max,
                           const struct conn_callbacks *hooks, void *owner);
/* Of a pair: sends what is taken at once, gives up the rest, and closes the way out: the peer reads its end
 * of file. Goes on hearing. */
void conn_close_out(struct conn *conn);

/* Append here; it is sent at the end of this turn. */
struct buf *conn_out(struct conn *conn);
size_t conn_unsent_bytes(const struct conn *conn);
bool conn_can_send(const struct conn *conn); /* false: the peer hears no more */

/* Reads no more, and closes as soon as everything is sent. */
void conn_finish(struct conn *conn);
/* Closes at the end of the turn, sent or not; no hook of it fires any more. */
void conn_drop(struct conn *conn);
/* Serves the lines that have arrived already, then `eof` fires as if the peer had said all. Stays open for
 * answers that are still to come. Unread bytes would reset the connection under the peer when it is closed.
 */
void conn_stop_reading(struct conn *conn);

#endif

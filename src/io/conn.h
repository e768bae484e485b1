/*
 * The event loop, and the connections on it: lines in, bytes out once a turn.
 * A connection is a socket, or two descriptors that lead to a child process.
 * It knows nothing of what the lines mean.
 *
 *   readable ─▶ read ─▶ frame ─▶ callbacks->line ─▶ conn_out … end of turn ─▶ one send
 *                 ▲                                │ more than CONN_OUT_HIGH_BYTES unsent
 *                 └──── resumes when drained ◀──── reading stops
 */
#ifndef TOOLGATE_IO_CONN_H
#define TOOLGATE_IO_CONN_H

#include "base/buf.h"

struct conn;
struct event_base;
struct loop;
struct turn_queue;

#define CONN_OUT_HIGH_BYTES 262144u /* unsent: reading stops above this */
#define CONN_OUT_LOW_BYTES  65536u  /* unsent: reading resumes below this */
#define CONN_READ_BYTES     262144u /* of one read; limits are looked at after each */

/* Each fires in a turn of the loop, never inside a conn_ function. The last two may be NULL. */
struct conn_callbacks {
    void (*line)(void *owner, struct str line); /* valid during the call only */
    /* `head` is the beginning of a discarded line; `for_memory`: it was discarded because all connections
     * together hold too much, not for its own length. */
    void (*too_long)(void *owner, struct str head, bool for_memory);
    void (*eof)(void *owner, struct str rest); /* the peer sends no more, `rest` is a line without its end;
                                                  output is still sent */
    void (*closed)(void *owner);               /* the last one: the conn is freed when it returns */
    /* The discarded line is over; these are its last bytes, at most FRAME_TAIL_BYTES (io/conn.c). */
    void (*tail)(void *owner, struct str tail);
    void (*write_closed)(void *owner); /* of a pair: output could not be sent, the peer reads no more */
};

struct loop *loop_new(void);
void loop_free(struct loop *loop); /* closes every connection; `closed` fires for each */
/* Only that, for an owner whose connections need something that needs the loop. */
void loop_close_connections(struct loop *loop);
struct event_base *loop_base(struct loop *loop);
struct turn_queue *loop_queue(struct loop *loop); /* for other work in turns on this loop */

/* Waits for events, handles them and some of the lines (io/turn.h), then sends all output. `wait` false: only
 * the events that are ready now. */
void loop_turn(struct loop *loop, bool wait);

/* Bytes in the read buffers and output of all connections; above the limit, unfinished lines are discarded.
 */
size_t loop_bytes(const struct loop *loop);
void loop_limit_bytes(struct loop *loop, size_t max);

/* Counts loop_turn. */
uint64_t loop_turns(const struct loop *loop);

/* From now on conn_read_ns has the time of each read. */
void loop_time_reads(struct loop *loop, bool timed);

/* Connections whose peer has closed them and which end soon, as their last turn left nothing; counted once a
 * turn. */
size_t loop_closed_peers(struct loop *loop);

/* An object that exists once for each loop (all HTTP, all processes): created by `make` on first use, freed
 * with the loop before its connections. `key` is any unique address. If `make` is NULL or returns NULL, only
 * an existing object is returned, or NULL. */
#define LOOP_SINGLETONS_MAX 8u
void *loop_singleton(struct loop *loop, const void *key, void *(*make)(struct loop *loop),
                     void (*free_object)(void *));

/*
 * Takes over the descriptors, which must be non-blocking. Lines may have up to `line_max` bytes. For a socket
 * `in` and `out` are the same.
 *
 * A pair reads from one descriptor and writes to another; both are pipes or sockets. `out` -1: it only reads.
 * Unsent output does not stop reading: two peers that each write before they read would wait for each other,
 * so the caller bounds what it writes (conn_unsent_bytes). After the peer stops reading it may still send;
 * the conn ends with its end of file, after which `eof` fires, or by a conn_ function.
 */
struct conn *conn_new(struct loop *loop, int in, int out, size_t line_max,
                      const struct conn_callbacks *callbacks, void *owner);
void conn_limit_line(struct conn *conn, size_t line_max);
/* Of a pair: sends what the peer takes at once, drops the rest, and closes `out`. Reading continues. */
void conn_close_out(struct conn *conn);

/* Append output here; it is sent at the end of this turn. */
struct buf *conn_out(struct conn *conn);
size_t conn_unsent_bytes(const struct conn *conn);
/* All that was appended so far. Less what is unsent: all that was sent. */
uint64_t conn_written_bytes(const struct conn *conn);
bool conn_can_send(const struct conn *conn); /* false: the peer reads no more */

/* When the bytes of the line that is handled now were read, by the monotonic clock; 0 unless the loop times
 * reads. */
int64_t conn_read_ns(const struct conn *conn);
/* The number of the batch of the line that is handled now: the peer wrote all lines of one batch before it
 * read an answer to any of them. No other connection has the same number. */
uint64_t conn_batch(const struct conn *conn);

/* Handles no line of a socket until it is let go: the work of the last one goes on in turns of its own. */
void conn_hold(struct conn *conn, bool held);

/* Reads no more and closes when everything is sent. */
void conn_finish(struct conn *conn);
/* Closes at the end of the turn without waiting for output; no callback fires any more. */
void conn_drop(struct conn *conn);
/* Handles the lines that have arrived already, then `eof` fires as if the peer had sent its end of file.
 * Stays open for output. Closing with unread bytes instead would reset the connection. The peer of a socket
 * gets EPIPE for what it sends from now on, and so knows that it was not read. */
void conn_stop_reading(struct conn *conn);

#endif

/*
 * A place for records, one line each, that never blocks the event loop. The loop appends to a buffer; a
 * thread of the sink writes it, in batches: write(2) to a regular file waits for a slow or hanging disk, and
 * neither O_NONBLOCK nor the event loop can prevent that.
 *
 *   record_sink_add ─▶ buffer ─▶ every RECORD_SINK_FLUSH_MS or RECORD_SINK_FLUSH_BYTES ─▶ thread ─▶ file
 *                        │ RECORD_SINK_BUFFER_BYTES are waiting: the record is dropped and counted
 *
 * A disk that is full, a file that is moved, a socket without a reader: the thread keeps its batch, and tries
 * again each RECORD_SINK_RETRY_MS.
 */
#ifndef TOOLGATE_IO_RECORD_SINK_H
#define TOOLGATE_IO_RECORD_SINK_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct loop;
struct record_sink;

#define RECORD_SINK_FLUSH_MS     50u
#define RECORD_SINK_FLUSH_BYTES  65536u
#define RECORD_SINK_BUFFER_BYTES 33554432u /* waiting for the thread; what is more is dropped */
#define RECORD_SINK_RETRY_MS     1000u
#define RECORD_SINK_HANG_MS      5000u /* a write or an open that takes longer: the sink is down */
#define RECORD_SINK_STOP_MS      2000u /* record_sink_free waits this long for what is buffered */

enum record_sink_kind {
    RECORD_SINK_FILE,   /* appends; rotates by size to path.1 … path.keep */
    RECORD_SINK_JOURNAL /* journald's socket: one entry a record */
};

struct record_sink_options {
    enum record_sink_kind kind;
    const char *path;       /* copied */
    const char *identifier; /* RECORD_SINK_JOURNAL: SYSLOG_IDENTIFIER; static */
    uint64_t max_bytes;     /* RECORD_SINK_FILE: longer files are rotated */
    uint32_t keep;          /* RECORD_SINK_FILE: number of older files */
};

struct record_sink_status {
    enum record_sink_kind kind;
    const char *path;
    bool down;                 /* it cannot write, or not as fast as records come */
    struct why why;            /* if it is down: why, and what to do */
    uint64_t written, dropped; /* records */
    uint64_t waiting_bytes;
};

/* Whether the target can be written to. A file is made if it does not exist. ERR_IO: `why` has path and fix.
 */
enum err record_sink_check(const struct record_sink_options *options, struct why *why);

/* `changed`: it went down or came up again. Fires in a turn of the loop, never after record_sink_free. A
 * target that cannot be opened yet is one that is down, as is one for which no thread can be started yet. */
struct record_sink *record_sink_new(struct loop *loop, const struct record_sink_options *options,
                                    void (*changed)(void *owner, const struct record_sink_status *status),
                                    void *owner);

/* `line` ends with its only newline. */
void record_sink_add(struct record_sink *sink, struct str line);

/* Closes the file and opens its path again, after log rotation by somebody else. */
void record_sink_reopen(struct record_sink *sink);

void record_sink_status(struct record_sink *sink, struct record_sink_status *out);

/* Before the loop is freed: `changed` fires no more, and what is added from now on is written by
 * record_sink_free. */
void record_sink_leave_loop(struct record_sink *sink);

/* Writes what is buffered, for at most RECORD_SINK_STOP_MS. Returns how many records could not be written.
 * NULL is allowed. */
uint64_t record_sink_free(struct record_sink *sink);

#endif

/*
 * Writes log lines without ever waiting for who reads them. A line that the reader takes at once is written
 * by the caller; while the reader stalls, lines wait in a bounded queue for a thread, and what does not fit
 * is dropped and counted. The flags of stderr are never changed: other processes share them. Thread-safe.
 */
#ifndef TOOLGATE_BASE_LOG_WRITER_H
#define TOOLGATE_BASE_LOG_WRITER_H

#include "base/buf.h"

#define LOG_QUEUE_MAX_BYTES 1048576u /* that wait for a reader */
#define LOG_CLOSE_MS        1000u    /* how long the end waits for a reader that stalls */

/* Closes the previous descriptor unless it is stderr. Lines that wait go to the new one. */
void log_writer_set(int fd);

/* Until then each line is written at once, however long that takes: a command has nothing else to do.
 * `put_dropped` writes the line that says how many were dropped; a thread calls it. */
void log_writer_never_wait(void (*put_dropped)(struct buf *line, uint64_t count));

/* `line` ends with a newline and is written by one write(2), so that the lines of several daemons never mix.
 */
void log_writer_write(struct str line);

/* Waits for what is queued, at most LOG_CLOSE_MS. */
void log_writer_flush(void);

/* Lines dropped since the start. */
uint64_t log_writer_dropped(void);

#endif

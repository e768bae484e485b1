/*
 * Bytes to lines: one read buffer, scanned once. A line over the limit is
 * reported once, with its beginning, and the rest of it is skipped.
 */
#ifndef TOOLGATE_IO_FRAME_H
#define TOOLGATE_IO_FRAME_H

#include "base/buf.h"

#define FRAME_FIRST_BYTES 16384u /* of a connection's read buffer */
#define FRAME_KEEP_BYTES  65536u /* an empty buffer larger than this is given back */
#define FRAME_HEAD_BYTES  65536u /* of a line that is too long: kept so that its id can be read */
#define FRAME_TAIL_BYTES  64u    /* and of its end, where some put it */

struct frame {
    struct buf in;
    size_t at;      /* where the current line begins */
    size_t scanned; /* no newline before this */
    size_t max;     /* bytes of a line, its newline not counted */
    bool skipping;  /* the rest of a line that was too long */
    uint32_t tail_len;
    char tail[FRAME_TAIL_BYTES]; /* the last bytes of what is skipped */
};

enum frame_event { FRAME_LINE, FRAME_MORE, FRAME_TOO_LONG, FRAME_TAIL };

void frame_init(struct frame *frame, size_t max);
void frame_clear(struct frame *frame);

/* Where the next bytes go, and how many fit; then tell how many came. */
char *frame_reserve(struct frame *frame, size_t *room);
void frame_commit(struct frame *frame, size_t count);

/* FRAME_LINE: `line` without its newline. FRAME_TOO_LONG: the beginning of it, at most FRAME_HEAD_BYTES; said
 * once a line. FRAME_TAIL: it is over; the end of it, at most FRAME_TAIL_BYTES. Each is valid until the next
 * call of a frame function. */
enum frame_event frame_next(struct frame *frame, struct str *line);

/* Gives up the unfinished line as if it were too long; `head` is its beginning. */
void frame_discard(struct frame *frame, struct str *head);

/* A large buffer with nothing in it goes back at once, not with the next bytes, which may be long in coming.
 */
void frame_shrink(struct frame *frame);

/* Bytes of an unfinished line. */
size_t frame_partial_bytes(const struct frame *frame);

#endif

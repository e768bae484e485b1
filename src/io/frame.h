/*
 * Splits a byte stream into lines, with one read buffer and one scan. A line
 * over the limit is reported once with its beginning, then skipped, and its
 * end is reported.
 */
#ifndef TOOLGATE_IO_FRAME_H
#define TOOLGATE_IO_FRAME_H

#include "base/buf.h"

#define FRAME_FIRST_BYTES 16384u /* initial size of the read buffer */
#define FRAME_KEEP_BYTES  65536u /* an empty buffer larger than this is freed */
#define FRAME_HEAD_BYTES  65536u /* of a line over the limit: reported so that its id can be read */
#define FRAME_TAIL_BYTES  64u    /* of its end, where some clients put the id */

struct frame {
    struct buf in;
    size_t at;      /* start of the current line */
    size_t scanned; /* there is no newline before this */
    size_t max;     /* bytes of a line without its newline */
    bool skipping;  /* the rest of a line over the limit */
    uint32_t tail_len;
    char tail[FRAME_TAIL_BYTES]; /* the last skipped bytes */
};

enum frame_event { FRAME_LINE, FRAME_MORE, FRAME_TOO_LONG, FRAME_TAIL };

static inline void frame_init(struct frame *frame, size_t max)
{
    *frame = (struct frame){.max = max};
}

void frame_clear(struct frame *frame);

/* Returns where the next bytes go and how many fit; frame_commit then states how many were written. */
char *frame_reserve(struct frame *frame, size_t *space);
static inline void frame_commit(struct frame *frame, size_t count)
{
    frame->in.len += count;
}

/* FRAME_LINE: `line` is a line without its newline. FRAME_MORE: more bytes are needed. FRAME_TOO_LONG: `line`
 * is the beginning of a line over the limit, at most FRAME_HEAD_BYTES, once for each such line. FRAME_TAIL:
 * that line ended; `line` is its end, at most FRAME_TAIL_BYTES. `line` is valid until the next call of a
 * frame function. */
enum frame_event frame_next(struct frame *frame, struct str *line);

/* Treats the unfinished line as one over the limit; `head` is its beginning. */
void frame_discard(struct frame *frame, struct str *head);

/* Frees a large empty buffer at once, as the next bytes may be long in coming. */
void frame_shrink(struct frame *frame);

/* Bytes of the unfinished line. */
static inline size_t frame_partial_bytes(const struct frame *frame)
{
    return frame->in.len - frame->at;
}

#endif

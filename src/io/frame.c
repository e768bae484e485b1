/* The line scanner reads each byte once: `scanned` is where the search for a newline continues. */
#include "io/frame.h"

void frame_clear(struct frame *frame)
{
    buf_clear(&frame->in);
    frame->at = frame->scanned = 0;
}

/* Starts at the front of a buffer of which everything was used. */
static void rewind_empty(struct frame *frame)
{
    if (frame->in.cap > FRAME_KEEP_BYTES)
        buf_clear(&frame->in);
    frame->in.len = frame->at = frame->scanned = 0;
}

char *frame_reserve(struct frame *frame, size_t *space)
{
    struct buf *in = &frame->in;
    if (frame->at == in->len)
        rewind_empty(frame);
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

void frame_discard(struct frame *frame, struct str *head)
{
    *head = head_of(frame, frame->in.len - frame->at);
    frame->tail_len = 0;
    keep_tail(frame, frame->in.len);
    frame->at = frame->scanned = frame->in.len;
    frame->skipping = true;
}

static enum frame_event need_more(struct frame *frame, struct str *line)
{
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

enum frame_event frame_next(struct frame *frame, struct str *line)
{
    size_t unseen = frame->in.len - frame->scanned;
    const char *newline = unseen ? memchr(frame->in.at + frame->scanned, '\n', unseen) : NULL;
    if (!newline)
        return need_more(frame, line);
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

void frame_shrink(struct frame *frame)
{
    if (frame->at == frame->in.len && frame->in.cap > FRAME_KEEP_BYTES)
        rewind_empty(frame);
}

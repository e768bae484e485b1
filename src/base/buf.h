/*
 * A growing byte buffer, on the heap (connections) or in an arena (everything
 * of one call). It never fails; arena.h gives the reason.
 */
#ifndef TOOLGATE_BASE_BUF_H
#define TOOLGATE_BASE_BUF_H

#include "base/str.h"

#include <stdint.h>

struct arena;

struct buf {
    char *at; /* NULL until the first byte */
    size_t len, cap;
    struct arena *arena; /* NULL: on the heap, freed by buf_clear */
};

static inline struct buf buf_in(struct arena *arena)
{
    return (struct buf){.arena = arena};
}

/* Frees a heap buffer and empties both kinds. */
void buf_clear(struct buf *buf);

/* Moves the bytes to where `more` have space after them. */
void buf_grow(struct buf *buf, size_t more);

/* Makes space for `more` bytes after len and returns where they go. The caller then increases len. */
static inline char *buf_reserve(struct buf *buf, size_t more)
{
    if (buf->cap - buf->len < more)
        buf_grow(buf, more);
    return buf->at + buf->len;
}

static inline void buf_add(struct buf *buf, const void *bytes, size_t len)
{
    if (len) {
        memcpy(buf_reserve(buf, len), bytes, len);
        buf->len += len;
    }
}

static inline void buf_str(struct buf *buf, struct str s)
{
    buf_add(buf, s.at, s.len);
}

static inline void buf_text(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

static inline void buf_byte(struct buf *buf, char c)
{
    *buf_reserve(buf, 1) = c;
    buf->len++;
}

void buf_int(struct buf *buf, int64_t n);
void buf_hex64(struct buf *buf, uint64_t n); /* 16 digits */
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the first `count` bytes, for example those that a socket has taken. */
static inline void buf_drop(struct buf *buf, size_t count)
{
    buf->len -= count;
    if (buf->len)
        memmove(buf->at, buf->at + count, buf->len);
}

static inline struct str buf_view(const struct buf *buf)
{
    return (struct str){buf->at, buf->len};
}

/* ---- decimal digits of counts, two at a time; most counts have one to four ---- */

#define DIGITS_MAX_BYTES 20u /* of UINT64_MAX */

extern const char digits_of_pairs[200]; /* "000102…99" */

/* Two digits of a number below 100; returns the end. */
static inline char *digits_put_pair(char *at, unsigned n)
{
    memcpy(at, digits_of_pairs + 2 * (size_t)n, 2);
    return at + 2;
}

/* Five digits and more; returns the end. */
char *digits_put_long(char *at, uint64_t n);

/* Needs DIGITS_MAX_BYTES; returns the end. */
static inline char *digits_put(char *at, uint64_t n)
{
    if (n >= 10000)
        return digits_put_long(at, n);
    if (n >= 1000)
        at = digits_put_pair(at, (unsigned)n / 100);
    else if (n >= 100)
        *at++ = (char)('0' + n / 100);
    else if (n < 10) {
        *at = (char)('0' + n);
        return at + 1;
    }
    return digits_put_pair(at, (unsigned)n % 100);
}

#endif

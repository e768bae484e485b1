/* Growing text. */
#include "base/buf.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUF_FIRST_BYTES 256u

void buf_clear(struct buf *buf)
{
    if (!buf->arena)
        free(buf->at);
    *buf = (struct buf){.arena = buf->arena};
}

static void grow_to(struct buf *buf, size_t cap)
{
    char *at;
    if (buf->arena) {
        at = arena_alloc(buf->arena, cap);
        if (buf->len)
            memcpy(at, buf->at, buf->len);
    } else if (!(at = realloc(buf->at, cap))) {
        fprintf(stderr, "toolgate: out of memory (%zu bytes wanted for a buffer)\n", cap);
        abort();
    }
    buf->at = at;
    buf->cap = cap;
}

char *buf_reserve(struct buf *buf, size_t more)
{
    if (buf->cap - buf->len < more) {
        size_t cap = buf->cap ? buf->cap : BUF_FIRST_BYTES;
        while (cap - buf->len < more)
            cap *= 2;
        grow_to(buf, cap);
    }
    return buf->at + buf->len;
}

void buf_int(struct buf *buf, int64_t n)
{
    char digits[24], *p = digits + sizeof(digits);
    uint64_t u = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (n < 0)
        *--p = '-';
    buf_add(buf, p, (size_t)(digits + sizeof(digits) - p));
}

void buf_hex64(struct buf *buf, uint64_t n)
{
    char *at = buf_reserve(buf, 16);
    for (int i = 15; i >= 0; i--, n >>= 4)
        at[i] = "0123456789abcdef"[n & 15];
    buf->len += 16;
}

/* Most texts fit what is there already: formatted once. */
void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t room = buf->cap - buf->len;
    size_t n = (size_t)vsnprintf(room ? buf->at + buf->len : NULL, room, format, args);
    if (n >= room)
        vsnprintf(buf_reserve(buf, n + 1), n + 1, format, again);
    buf->len += n;
    va_end(again);
    va_end(args);
}

void buf_drop(struct buf *buf, size_t count)
{
    buf->len -= count;
    if (buf->len)
        memmove(buf->at, buf->at + count, buf->len);
}

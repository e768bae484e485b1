/* Growing and formatting of byte buffers. */
#include "base/buf.h"

#include "base/alloc.h"
#include "base/arena.h"

#include <stdarg.h>

#define BUF_FIRST_BYTES 256u

void buf_clear(struct buf *buf)
{
    if (!buf->arena)
        free(buf->at);
    *buf = (struct buf){.arena = buf->arena};
}

void buf_grow(struct buf *buf, size_t more)
{
    size_t cap = buf->cap ? buf->cap : BUF_FIRST_BYTES;
    while (cap - buf->len < more)
        cap *= 2;
    char *bigger = buf->arena ? arena_alloc(buf->arena, cap) : realloc(buf->at, cap);
    if (!bigger)
        alloc_failed("%zu bytes needed for a buffer", cap);
    if (buf->arena && buf->len)
        memcpy(bigger, buf->at, buf->len);
    buf->at = bigger;
    buf->cap = cap;
}

void buf_int(struct buf *buf, int64_t n)
{
    char *start = buf_reserve(buf, DIGITS_MAX_BYTES + 1), *at = start;
    if (n < 0)
        *at++ = '-';
    at = digits_put(at, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
    buf->len += (size_t)(at - start);
}

void buf_hex64(struct buf *buf, uint64_t n)
{
    char *at = buf_reserve(buf, 16);
    for (int i = 15; i >= 0; i--, n >>= 4)
        at[i] = "0123456789abcdef"[n & 15];
    buf->len += 16;
}

/* Formats into the space that is left, where most strings fit, and only then grows. */
void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t left = buf->cap - buf->len;
    size_t len = (size_t)vsnprintf(left ? buf->at + buf->len : NULL, left, format, args);
    if (len >= left)
        vsnprintf(buf_reserve(buf, len + 1), len + 1, format, again);
    buf->len += len;
    va_end(again);
    va_end(args);
}

/* ---- digits ---- */

const char digits_of_pairs[200] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

char *digits_put_long(char *at, uint64_t n)
{
    char digits[DIGITS_MAX_BYTES], *end = digits + sizeof(digits), *p = end;
    for (; n >= 100; n /= 100)
        digits_put_pair(p -= 2, (unsigned)(n % 100));
    if (n >= 10)
        digits_put_pair(p -= 2, (unsigned)n);
    else
        *--p = (char)('0' + n);
    memcpy(at, p, (size_t)(end - p));
    return at + (end - p);
}

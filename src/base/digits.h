/* Decimal digits of counts, two at a time; most counts have one to four. */
#ifndef TOOLGATE_BASE_DIGITS_H
#define TOOLGATE_BASE_DIGITS_H

#include <stdint.h>
#include <string.h>

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

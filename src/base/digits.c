/* The table, and numbers of five digits and more. */
#include "base/digits.h"

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

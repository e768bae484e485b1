/*
 * Numbers as the decimal text they were sent in, exactly: of any length, with
 * any exponent. Only this room uses it; others ask json_number_cmp, json_int
 * and json_double.
 */
#ifndef TOOLGATE_JSON_DECIMAL_H
#define TOOLGATE_JSON_DECIMAL_H

#include "base/buf.h"
#include "base/str.h"

#include <stdint.h>

/* A literal taken apart: value = 0.DIGITS x 10^(point + exponent). */
struct decimal {
    bool negative;     /* never for zero: -0 is 0 */
    struct str digits; /* first to last digit that counts, perhaps with a '.' inside; empty for zero */
    int64_t count;     /* digits without that '.' */
    int64_t point;
    bool exponent_negative;
    struct str exponent; /* digits without sign and leading zeros, of any length; empty for 0 */
};

/* `literal` must be a JSON number; the result points into it. */
struct decimal decimal_of(struct str literal);

int decimal_cmp(const struct decimal *a, const struct decimal *b);
bool decimal_is_whole(const struct decimal *d);

/* point + exponent, cut at +-DECIMAL_FAR: beyond it no double and no integer lives. */
#define DECIMAL_FAR ((int64_t)1 << 60)
int64_t decimal_magnitude(const struct decimal *d);

/*
 * The one spelling of a value. Whole numbers of up to DECIMAL_PLAIN_DIGITS digits: plain ("0", "-120"). All
 * others: d[.ddd]e[-]n with no zeros at either end ("1.1e0", "1e400", "1.5e-7"), exact whatever the exponent,
 * and never longer than the literal it came from plus DECIMAL_CANONICAL_EXTRA bytes.
 */
#define DECIMAL_PLAIN_DIGITS    21
#define DECIMAL_CANONICAL_EXTRA 24
void decimal_canonical(struct buf *out, struct str literal);

/* The nearest double by round-half-even, never by the locale; +-infinity beyond its range. */
double decimal_to_double(struct str literal);

/* The shortest text that reads back as `n`, which must be finite. Returns its length. */
#define DECIMAL_DOUBLE_BYTES 32
size_t decimal_from_double(char out[DECIMAL_DOUBLE_BYTES], double n);

#endif

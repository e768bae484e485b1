/*
 * Exact decimal numbers of any length, with exponents of up to 36 digits, as they were sent. Private
 * to src/json, multipleOf and uniqueItems; others use json_number_cmp, json_int and
 * json_double.
 */
#ifndef TOOLGATE_JSON_DECIMAL_H
#define TOOLGATE_JSON_DECIMAL_H

#include "base/buf.h"
#include "base/str.h"

#include <stdint.h>

__extension__ typedef __int128 decimal_wide;

/* A parsed literal: value = 0.DIGITS x 10^magnitude. */
struct decimal {
    bool negative; /* never for zero: -0 is 0 */
    /* first to last significant digit, with the '.' if it is between them; empty for zero */
    struct str digits;
    int64_t count;          /* digits without that '.' */
    decimal_wide magnitude; /* of an exponent of more than 36 digits, only that it is far */
};

/* `literal` must be a JSON number; the result points into it. */
struct decimal decimal_of(struct str literal);

int decimal_cmp(const struct decimal *a, const struct decimal *b);
bool decimal_is_whole(const struct decimal *d);

/* The magnitude, limited to +-DECIMAL_FAR, beyond which there is no double and no integer. */
#define DECIMAL_FAR ((int64_t)1 << 60)
int64_t decimal_magnitude(const struct decimal *d);

/*
 * The canonical spelling. Whole numbers of up to DECIMAL_PLAIN_DIGITS digits are written plainly ("0",
 * "-120"), all others as d[.ddd]e[-]n without zeros at either end ("1.1e0", "1e400", "1.5e-7").
 */
#define DECIMAL_PLAIN_DIGITS 21
void decimal_canonical(struct buf *out, struct str literal);

/* The nearest double by round-half-even, independent of the locale; +-infinity beyond its range. */
double decimal_to_double(struct str literal);

/* Writes the shortest literal that reads back as `n`, which must be finite; returns its length. */
#define DECIMAL_DOUBLE_BYTES 32
size_t decimal_from_double(char out[DECIMAL_DOUBLE_BYTES], double n);

#endif

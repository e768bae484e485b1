/* Comparison, canonical spelling, and conversion from and to double without the locale. */
#include "json/decimal.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* More digits never change how a number rounds to a double; the rest counts as one more digit. */
#define DOUBLE_DIGITS_MAX 770

/* Magnitudes below it are exact; all others are as far. */
#define EXPONENT_MAX ((decimal_wide)1000000000000000000 * 1000000000000000000)

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && ascii_is_digit(*p))
        p++;
    return p;
}

static decimal_wide bounded(decimal_wide n, decimal_wide max)
{
    return n > max ? max : n < -max ? -max : n;
}

struct decimal decimal_of(struct str literal)
{
    struct decimal d = {0};
    const char *p = literal.at, *end = p + literal.len;
    bool negative = p < end && *p == '-';
    const char *start = p + negative;
    const char *dot = skip_digits(start, end);
    const char *stop = dot < end && *dot == '.' ? skip_digits(dot + 1, end) : dot;
    const char *first = start, *last = stop - 1;
    while (first < stop && (*first == '0' || *first == '.'))
        first++;
    if (first == stop)
        return d;
    while (*last == '0' || *last == '.')
        last--;
    d.negative = negative;
    d.digits = (struct str){first, (size_t)(last - first) + 1};
    d.count = (int64_t)d.digits.len - (first < dot && dot < last);
    d.magnitude = first < dot ? dot - first : dot + 1 - first;
    if (stop == end)
        return d;
    p = stop + 1;
    bool below = p < end && *p == '-';
    p += p < end && (*p == '+' || *p == '-');
    decimal_wide exponent = 0;
    for (; p < end && exponent < EXPONENT_MAX; p++)
        exponent = exponent * 10 + (*p - '0');
    d.magnitude = bounded(d.magnitude + (below ? -exponent : exponent), EXPONENT_MAX);
    return d;
}

int64_t decimal_magnitude(const struct decimal *d)
{
    return (int64_t)bounded(d->magnitude, DECIMAL_FAR);
}

/* Compares digits of the same magnitude; a '.' in them is skipped. */
static int digits_cmp(struct str a, struct str b)
{
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        i += i < a.len && a.at[i] == '.';
        k += k < b.len && b.at[k] == '.';
        if (i >= a.len || k >= b.len)
            return (i < a.len) - (k < b.len);
        if (a.at[i] != b.at[k])
            return a.at[i] < b.at[k] ? -1 : 1;
    }
}

int decimal_cmp(const struct decimal *a, const struct decimal *b)
{
    int sign_a = !a->count ? 0 : a->negative ? -1 : 1;
    int sign_b = !b->count ? 0 : b->negative ? -1 : 1;
    if (sign_a != sign_b || !sign_a)
        return (sign_a > sign_b) - (sign_a < sign_b);
    int order = a->magnitude != b->magnitude ? (a->magnitude > b->magnitude ? 1 : -1)
                                             : digits_cmp(a->digits, b->digits);
    return order * sign_a;
}

bool decimal_is_whole(const struct decimal *d)
{
    return !d->count || decimal_magnitude(d) >= d->count;
}

/* `point`: one behind the first of several digits, instead of that of the literal. */
static void put_digits(struct buf *out, const struct decimal *d, bool point)
{
    char *p = buf_reserve(out, d->digits.len + 1);
    for (size_t i = 0; i < d->digits.len; i++) {
        if (d->digits.at[i] == '.')
            continue;
        *p++ = d->digits.at[i];
        if (point && i == 0 && d->count > 1)
            *p++ = '.';
    }
    out->len = (size_t)(p - out->at);
}

static void put_wide(struct buf *out, decimal_wide n)
{
    char digits[40], *end = digits + sizeof(digits), *p = end;
    decimal_wide left = n < 0 ? -n : n;
    do
        *--p = (char)('0' + (int)(left % 10));
    while (left /= 10);
    if (n < 0)
        *--p = '-';
    buf_add(out, p, (size_t)(end - p));
}

void decimal_canonical(struct buf *out, struct str literal)
{
    struct decimal d = decimal_of(literal);
    int64_t magnitude = decimal_magnitude(&d);
    if (d.negative)
        buf_byte(out, '-');
    if (!d.count) {
        buf_byte(out, '0');
    } else if (magnitude >= d.count && magnitude <= DECIMAL_PLAIN_DIGITS) {
        put_digits(out, &d, false);
        for (int64_t zeros = magnitude - d.count; zeros > 0; zeros--)
            buf_byte(out, '0');
    } else {
        put_digits(out, &d, true);
        buf_byte(out, 'e');
        if (magnitude == d.magnitude)
            buf_int(out, magnitude - 1);
        else
            put_wide(out, d.magnitude - 1);
    }
}

/* strtod in the C locale; the locale object is created once and never freed. */
static double read_double(const char *text)
{
    static locale_t c_locale;
    if (!c_locale)
        c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
}

static bool short_integer(struct str literal, double *out)
{
    bool negative = literal.len && literal.at[0] == '-';
    int64_t n = 0;
    if (literal.len > 15)
        return false;
    for (size_t i = negative; i < literal.len; i++) {
        if (!ascii_is_digit(literal.at[i]))
            return false;
        n = n * 10 + (literal.at[i] - '0');
    }
    *out = negative ? -(double)n : (double)n;
    return true;
}

double decimal_to_double(struct str literal)
{
    double n;
    if (short_integer(literal, &n))
        return n;
    struct decimal d = decimal_of(literal);
    if (!d.count)
        return literal.at[0] == '-' ? -0.0 : 0.0;
    int64_t magnitude = decimal_magnitude(&d);
    if (magnitude > 400 || magnitude < -400)
        return (magnitude < 0 ? 0.0 : INFINITY) * (d.negative ? -1 : 1);
    char text[DOUBLE_DIGITS_MAX + 32], *p = text;
    *p++ = d.negative ? '-' : '+';
    *p++ = '.';
    size_t taken = 0;
    for (size_t i = 0; i < d.digits.len && taken < DOUBLE_DIGITS_MAX; i++)
        if (d.digits.at[i] != '.')
            *p++ = d.digits.at[i], taken++;
    if (d.count > DOUBLE_DIGITS_MAX)
        *p++ = '1';
    snprintf(p, 16, "e%d", (int)magnitude);
    return read_double(text);
}

/* The digits without the point, and the exponent of the first one; the locale's decimal point is skipped. */
static size_t printed_digits(char digits[20], int *exponent, double n, int precision)
{
    char text[48];
    snprintf(text, sizeof(text), "%.*e", precision - 1, n);
    size_t count = 0;
    const char *p = text;
    for (; *p != 'e'; p++)
        if (ascii_is_digit(*p))
            digits[count++] = *p;
    *exponent = atoi(p + 1);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return count;
}

static size_t put_plain(char *out, const char *digits, int count, int exponent)
{
    char *p = out;
    if (exponent < 0) {
        *p++ = '0', *p++ = '.';
        for (int zeros = -exponent - 1; zeros > 0; zeros--)
            *p++ = '0';
    }
    for (int i = 0; i < count; i++) {
        *p++ = digits[i];
        if (i == exponent && i + 1 < count)
            *p++ = '.';
    }
    for (int i = count; i <= exponent; i++)
        *p++ = '0';
    return (size_t)(p - out);
}

size_t decimal_from_double(char out[DECIMAL_DOUBLE_BYTES], double n)
{
    char digits[20] = {0};
    size_t sign = signbit(n) ? 1 : 0, len = 0;
    double size = fabs(n);
    out[0] = '-';
    /* Whole numbers print exactly with 17 digits, others need at least 15; subnormal doubles have fewer. */
    int precision = size < DBL_MIN && size > 0 ? 1 : size < 1e15 && size == floor(size) ? 17 : 15;
    for (; precision <= 17; precision++) {
        int exponent;
        size_t count = printed_digits(digits, &exponent, size, precision);
        if (exponent >= -7 && exponent < DECIMAL_PLAIN_DIGITS)
            len = put_plain(out + sign, digits, (int)count, exponent);
        else
            len = (size_t)snprintf(out + sign, DECIMAL_DOUBLE_BYTES - 1, "%c%s%.*se%d", digits[0],
                                   count > 1 ? "." : "", (int)count - 1, digits + 1, exponent);
        out[sign + len] = '\0';
        if (read_double(out + sign) == size)
            break;
    }
    return sign + len;
}

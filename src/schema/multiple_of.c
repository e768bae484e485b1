/* Long division on the digits of the literals; nothing is rounded. */
#include "schema/multiple_of.h"

#include "schema/format_checks.h"

#include <math.h>

#define DIVISOR_MAX_DIGITS 36u /* ten times it, and a digit, fit 128 bits */
#define EXPONENT_MAX       1000000000

__extension__ typedef unsigned __int128 wide;

/* digits x 10^exponent, no zero at either end; `text` may hold the dot. */
struct scaled {
    const char *text;
    size_t len;
    size_t digits; /* significant ones */
    int64_t exponent;
};

static struct scaled read_scaled(const struct json *v)
{
    const char *p = v->text, *end = v->text + v->len, *stop = p, *last = NULL, *first = NULL;
    int64_t exponent = 0;
    while (stop < end && *stop != 'e' && *stop != 'E')
        stop++;
    if (stop < end) { /* "e-12" */
        bool negative = stop + 1 < end && stop[1] == '-';
        for (const char *c = stop + 1; c < end && exponent < EXPONENT_MAX; c++)
            exponent = is_digit(*c) ? exponent * 10 + (*c - '0') : exponent;
        exponent = negative ? -exponent : exponent;
    }
    const char *dot = memchr(p, '.', (size_t)(stop - p));
    size_t digits = 0, pending = 0;
    for (const char *c = p; c < stop; c++) {
        if (!is_digit(*c))
            continue;
        pending += first != NULL;
        if (*c == '0')
            continue;
        first = first ? first : c;
        last = c;
        digits += pending ? pending : 1;
        pending = 0;
    }
    if (!first)
        return (struct scaled){.text = ""};
    exponent += dot && last > dot ? -(last - dot) : (dot ? dot : stop) - last - 1;
    return (struct scaled){first, (size_t)(last - first) + 1, digits, exponent};
}

/* a times b modulo m, all below 10^36: by doubling, as the product would not fit. */
static wide times_mod(wide a, wide b, wide m)
{
    wide sum = 0;
    for (; b; b >>= 1) {
        if (b & 1)
            sum = (sum + a) % m;
        a = a * 2 % m;
    }
    return sum;
}

/* r times 10^n modulo m. */
static wide shift_mod(wide r, int64_t n, wide m)
{
    wide power = 10 % m;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            r = times_mod(r, power, m);
        power = times_mod(power, power, m);
    }
    return r;
}

static __attribute__((noinline)) bool divides_exactly(const struct json *v, const struct json *divisor)
{
    struct scaled n = read_scaled(v), d = read_scaled(divisor);
    if (n.len == 0)
        return true; /* zero */
    if (d.digits > DIVISOR_MAX_DIGITS || d.len == 0) {
        double a = 0, b = 0;
        json_double(v, &a);
        json_double(divisor, &b);
        return isfinite(a) && b != 0 && fmod(a, b) == 0;
    }
    if (n.exponent < d.exponent)
        return false; /* n has no zero at its end, so no power of ten divides it */
    wide m = 0, r = 0;
    for (size_t i = 0; i < d.len; i++)
        if (d.text[i] != '.')
            m = m * 10 + (wide)(d.text[i] - '0');
    if (m == 0)
        return false; /* no multiple of zero but zero */
    for (size_t i = 0; i < n.len; i++)
        if (n.text[i] != '.')
            r = (r * 10 + (wide)(n.text[i] - '0')) % m;
    return shift_mod(r, n.exponent - d.exponent, m) == 0;
}

bool multiple_of_holds(const struct json *v, const struct json *divisor)
{
    struct json_small a = json_small(v), b = json_small(divisor);
    if (!a.scale || !b.scale || b.whole <= 0)
        return divides_exactly(v, divisor);
    return a.whole * b.scale % (b.whole * a.scale) == 0;
}

/* Long division on the digits of the literals; nothing is rounded. */
#include "schema/schema_node.h"

#include "json/decimal.h"

#include <math.h>

#define DIVISOR_MAX_DIGITS 36 /* ten times it, and a digit, fit 128 bits */

__extension__ typedef unsigned __int128 wide;

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

/* r times ten to the power of the digits of s, plus that number, modulo m (0: no modulus). */
static wide append_digits(wide r, struct str s, wide m)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] != '.') {
            r = r * 10 + (wide)(s.at[i] - '0');
            r = m ? r % m : r;
        }
    return r;
}

static __attribute__((noinline)) bool divides_exactly(const struct json *v, const struct json *divisor)
{
    struct decimal n = decimal_of((struct str){v->text, v->len}),
                   d = decimal_of((struct str){divisor->text, divisor->len});
    if (n.count == 0)
        return true; /* zero */
    if (d.count > DIVISOR_MAX_DIGITS || d.count == 0) {
        double a = 0, b = 0;
        json_double(v, &a);
        json_double(divisor, &b);
        return isfinite(a) && b != 0 && fmod(a, b) == 0;
    }
    /* Neither ends in a zero: with a smaller power of ten n is no multiple. */
    int64_t power = decimal_magnitude(&n) - n.count - (decimal_magnitude(&d) - d.count);
    wide m = append_digits(0, d.digits, 0);
    if (power < 0 || m == 0)
        return false;
    wide rest = append_digits(0, n.digits, m), factor = 10 % m; /* 10^power by squaring */
    for (; power > 0; power >>= 1) {
        if (power & 1)
            rest = times_mod(rest, factor, m);
        factor = times_mod(factor, factor, m);
    }
    return rest == 0;
}

bool multiple_of_holds(const struct json *v, const struct json *divisor)
{
    struct json_small a = json_small(v), b = json_small(divisor);
    if (!a.scale || !b.scale || b.whole <= 0)
        return divides_exactly(v, divisor);
    return a.whole * b.scale % (b.whole * a.scale) == 0;
}

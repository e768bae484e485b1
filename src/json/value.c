/* Access to members, conversion of numbers, equality and order. */
#include "json/value.h"

#include "json/decimal.h"
#include "json/object.h"

#define SMALL_DIGITS 9 /* twice as many fit an int64_t */

const struct json *json_get(const struct json *object, struct str key)
{
    if (!json_is(object, JSON_OBJECT))
        return NULL;
    const struct json_member *m = object_find(object, key);
    return m ? &m->value : NULL;
}

struct json_small json_small(const struct json *v)
{
    static const struct json_small none;
    const char *p = v->text, *end = p + v->len, *first = p + (v->len && *p == '-');
    int64_t whole = 0, scale = 1;
    bool dot = false;
    if (v->type != JSON_NUMBER || end - first > SMALL_DIGITS + 1)
        return none;
    for (p = first; p < end; p++) {
        unsigned digit = (unsigned)*p - '0';
        if (digit <= 9) {
            whole = whole * 10 + digit;
            scale *= dot ? 10 : 1;
        } else if (*p == '.') {
            dot = true;
        } else {
            return none;
        }
    }
    if (!dot && end - first > SMALL_DIGITS)
        return none;
    return (struct json_small){first > v->text ? -whole : whole, scale};
}

/* The digits of a whole number followed by `zeros`; false if an int64_t can't hold it. */
static bool whole_digits(struct str digits, int64_t zeros, bool negative, int64_t *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < digits.len; i++)
        if (digits.at[i] != '.' &&
            (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, digits.at[i] - '0', &n)))
            return false;
    for (; zeros > 0; zeros--)
        if (__builtin_mul_overflow(n, 10, &n))
            return false;
    return negative ? (*out = n, true) : !__builtin_sub_overflow(0, n, out);
}

/* Separate, so that its stack frame costs the fast path nothing. */
static __attribute__((noinline)) bool large_int(const struct json *v, int64_t *out)
{
    struct decimal d = decimal_of((struct str){v->text, v->len});
    int64_t magnitude = decimal_magnitude(&d), n;
    if (!d.count) {
        *out = 0;
        return true;
    }
    if (magnitude > 19 || !whole_digits(d.digits, magnitude - d.count, d.negative, &n))
        return false;
    *out = n;
    return true;
}

bool json_int(const struct json *v, int64_t *out)
{
    if (!json_is(v, JSON_NUMBER) || !v->integral)
        return false;
    struct json_small small = json_small(v);
    if (!small.scale)
        return large_int(v, out);
    *out = small.whole / small.scale;
    return true;
}

bool json_double(const struct json *v, double *out)
{
    if (!json_is(v, JSON_NUMBER))
        return false;
    *out = decimal_to_double((struct str){v->text, v->len});
    return true;
}

static __attribute__((noinline)) int cmp_decimals(const struct json *a, const struct json *b)
{
    struct decimal x = decimal_of((struct str){a->text, a->len}),
                   y = decimal_of((struct str){b->text, b->len});
    return decimal_cmp(&x, &y);
}

int json_number_cmp(const struct json *a, const struct json *b)
{
    if (str_eq((struct str){a->text, a->len}, (struct str){b->text, b->len}))
        return 0;
    struct json_small x = json_small(a), y = json_small(b);
    if (!x.scale || !y.scale)
        return cmp_decimals(a, b);
    int64_t m = x.whole * y.scale, n = y.whole * x.scale;
    return (m > n) - (m < n);
}

bool json_array_has(const struct json *array, struct str text)
{
    for (uint32_t i = 0; json_is(array, JSON_ARRAY) && i < array->len; i++)
        if (json_is(&array->items[i], JSON_STRING) && str_eq(json_str(&array->items[i]), text))
            return true;
    return false;
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (a->type != b->type)
        return false;
    switch ((enum json_type)a->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->truth == b->truth;
    case JSON_NUMBER:
        return json_number_cmp(a, b) == 0;
    case JSON_STRING:
        return str_eq(json_str(a), json_str(b));
    case JSON_ARRAY:
        for (uint32_t i = 0; a->len == b->len && a->items != b->items && i < a->len; i++)
            if (!json_equal(&a->items[i], &b->items[i]))
                return false;
        return a->len == b->len;
    case JSON_OBJECT: /* keys are unique: equal counts and each of a's members in b mean equality */
        for (uint32_t i = 0; a->len == b->len && a->members != b->members && i < a->len; i++) {
            const struct json *other = json_get(b, a->members[i].key);
            if (!other || !json_equal(&a->members[i].value, other))
                return false;
        }
        return a->len == b->len;
    }
    return false;
}

const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {"null", "boolean", "number", "string", "array", "object"};
    return (unsigned)type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

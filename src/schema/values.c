/*
 * What compares whole values: enum, const, uniqueItems and multipleOf. Equal values have equal hashes, so
 * only those are compared. What is hashed and compared is taken off the pass's budget.
 */
#include "schema/schema_node.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "json/decimal.h"

#include <math.h>

#define SHORT_LIST       32u
#define HASHED_AHEAD     16u /* a long list's table does not fit a cache: its places are fetched before */
#define CHOICES_SEARCHED 16u /* more choices than these are found by their hash */
#define DIGITS_PART      56u /* of a number, hashed at once; the first with its exponent */

static uint64_t mix(uint64_t h)
{
    h ^= h >> 31;
    h *= 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* By the exact decimal, whose digits are hashed in parts: many numbers share a double (1.0000000000000000001,
 * …2), and an agent could send a list of them, which are compared each with each if they hash alike. The
 * exponent is seeded as well: one of 36 digits has room enough to choose what it hashes to. */
static uint64_t hash_number(const struct json *v)
{
    struct decimal d = decimal_of((struct str){v->text, v->len});
    uint64_t h = d.negative;
    char part[DIGITS_PART];
    size_t n = sizeof(d.magnitude);
    memcpy(part, &d.magnitude, n);
    for (size_t i = 0; i < d.digits.len; i++) {
        if (d.digits.at[i] != '.')
            part[n++] = d.digits.at[i];
        if (n == DIGITS_PART || i + 1 == d.digits.len) {
            h = mix(h) + hash_seeded((struct str){part, n});
            n = 0;
        }
    }
    return h;
}

/* Equal values hash alike: numbers by value, members in any order. `pass` NULL: it is not counted. */
static uint64_t value_hash(struct pass *pass, const struct json *v)
{
    uint64_t h = v->type;
    bool plain = v->type == JSON_NUMBER || v->type == JSON_STRING;
    if (pass && !pass_spend(pass, 1 + STEPS_OF_BYTES(plain ? v->len : 0)))
        return 0;
    switch ((enum json_type)v->type) {
    case JSON_NULL:
        return mix(h);
    case JSON_BOOL:
        return mix(h + 16 + v->truth);
    case JSON_NUMBER:
        return mix(hash_number(v) + h);
    case JSON_STRING:
        return mix(hash_seeded(json_str(v)) + h);
    case JSON_ARRAY:
        for (uint32_t i = 0; i < v->len; i++)
            h = mix(h + value_hash(pass, &v->items[i]));
        return mix(h + 32);
    case JSON_OBJECT:
        for (uint32_t i = 0; i < v->len; i++)
            h += mix(hash_seeded(v->members[i].key) + mix(value_hash(pass, &v->members[i].value)));
        return mix(h + 64);
    }
    return h;
}

/* ---- enum, const ---- */

static uint32_t *slot_of(const struct choices *choices, struct pass *pass, const struct json *v)
{
    uint32_t at = (uint32_t)value_hash(pass, v) & choices->mask;
    while (choices->slots[at] && !json_equal(choices->at[choices->slots[at] - 1], v))
        at = (at + 1) & choices->mask;
    return &choices->slots[at];
}

/* One by one. Containers compare as far as they are equal, which the bytes of the shorter one bound. */
static bool search(struct pass *pass, const struct choices *choices, const struct json *v)
{
    for (uint32_t i = 0; i < choices->count; i++) {
        const struct json *c = choices->at[i];
        if (c->type != v->type)
            continue;
        if (c->type == JSON_STRING) {
            if (c->len == v->len && str_bytes_eq(c->text, v->text, v->len))
                return true;
            continue;
        }
        uint64_t bytes = c->type == JSON_NUMBER ? v->len : c->len == v->len ? 8 * (uint64_t)c->raw_len : 0;
        if (pass && !pass_spend(pass, STEPS_OF_BYTES(bytes)))
            return false;
        if (json_equal(c, v))
            return true;
    }
    return false;
}

bool choices_contain(struct pass *pass, const struct choices *choices, const struct json *v)
{
    if (choices->strings && v->type != JSON_STRING)
        return false;
    if (choices->slots)
        return *slot_of(choices, pass, v) && !pass->too_complex;
    return search(pass, choices, v);
}

struct choices choices_new(struct arena *arena, uint32_t most)
{
    struct choices choices = {.at = ARENA_ARRAY(arena, const struct json *, most), .strings = true};
    uint32_t size = 2 * CHOICES_SEARCHED;
    if (most <= CHOICES_SEARCHED)
        return choices;
    while (size < most * 2)
        size *= 2;
    choices.slots = ARENA_ARRAY(arena, uint32_t, size);
    choices.mask = size - 1;
    return choices;
}

bool choices_add(struct choices *choices, const struct json *v)
{
    uint32_t *slot = choices->slots ? slot_of(choices, NULL, v) : NULL;
    if (slot ? *slot != 0 : search(NULL, choices, v))
        return false;
    choices->strings &= v->type == JSON_STRING;
    choices->at[choices->count++] = v;
    if (slot)
        *slot = choices->count;
    return true;
}

/* ---- uniqueItems: a short list uses the stack; a long one allocates a table for the check ---- */

bool unique_items_find_pair(struct pass *pass, const struct json *array, size_t *first, size_t *second)
{
    uint64_t local_hashes[SHORT_LIST], *hashes = local_hashes;
    uint32_t local_slots[2 * SHORT_LIST] = {0}, *slots = local_slots; /* index + 1 */
    size_t size = 2 * SHORT_LIST;
    bool is_long = array->len > SHORT_LIST;
    while (size < (size_t)array->len * 2)
        size *= 2;
    if (is_long && !pass_spend(pass, array->len))
        return false;
    if (is_long) {
        hashes = calloc(array->len, sizeof(*hashes));
        slots = calloc(size, sizeof(*slots));
    }
    if (!hashes || !slots)
        alloc_failed("%zu bytes for uniqueItems", size * 8);
    bool found = false;
    for (size_t i = 0, hashed = 0; i < array->len && !found && !pass->too_complex; i++) {
        for (; hashed < array->len && hashed < i + HASHED_AHEAD && !pass->too_complex; hashed++) {
            hashes[hashed] = value_hash(pass, &array->items[hashed]);
            __builtin_prefetch(&slots[hashes[hashed] & (size - 1)]);
        }
        size_t at = hashes[i] & (size - 1);
        for (; slots[at] && !found && !pass->too_complex; at = (at + 1) & (size - 1))
            if (hashes[i] == hashes[slots[at] - 1] &&
                json_equal(&array->items[i], &array->items[slots[at] - 1])) {
                *first = slots[at] - 1;
                *second = i;
                found = true;
            }
        slots[at] = (uint32_t)i + 1;
    }
    if (is_long) {
        free(slots);
        free(hashes);
    }
    return found;
}

/* ---- multipleOf: long division on the digits of the literals; nothing is rounded ---- */

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

/* The number of these digits modulo m (0: no modulus). */
static wide number_of(struct str s, wide m)
{
    wide r = 0;
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
    wide m = number_of(d.digits, 0);
    if (power < 0 || m == 0)
        return false;
    wide rest = number_of(n.digits, m), factor = 10 % m; /* 10^power by squaring */
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

/*
 * uniqueItems: equal items have equal hashes, so only those are compared. A
 * short list uses the stack; a long one allocates a table for the check.
 */
#include "schema/schema_node.h"

#include "base/buf.h"
#include "base/hash.h"
#include "json/decimal.h"

#include <stdio.h>
#include <stdlib.h>

#define FEW          8u
#define SHORT_LIST   32u
#define PLAIN_DIGITS 40 /* hashed without a copy on the heap */

static uint64_t mix(uint64_t h)
{
    h ^= h >> 31;
    h *= 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* By the exact decimal: many numbers share a double (1.0000000000000000001, …2), and an agent could send a
 * list of them, which are compared each with each if they hash alike. */
static uint64_t hash_number(const struct json *v)
{
    struct str literal = {v->text, v->len};
    struct decimal d = decimal_of(literal);
    int64_t magnitude = decimal_magnitude(&d);
    bool plain = d.count <= PLAIN_DIGITS && magnitude > -DECIMAL_FAR && magnitude < DECIMAL_FAR;
    char digits[PLAIN_DIGITS];
    struct buf canonical = {0};
    uint64_t h;
    if (plain) {
        size_t n = 0;
        for (size_t i = 0; i < d.digits.len; i++)
            if (d.digits.at[i] != '.')
                digits[n++] = d.digits.at[i];
        return hash_seeded((struct str){digits, n}) + mix((uint64_t)magnitude * 2 + d.negative);
    }
    decimal_canonical(&canonical, literal);
    h = hash_seeded(buf_view(&canonical));
    buf_clear(&canonical);
    return h;
}

/* Equal values hash alike: numbers by value, members in any order. */
static uint64_t hash_value(const struct json *v)
{
    uint64_t h = v->type;
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
            h = mix(h + hash_value(&v->items[i]));
        return mix(h + 32);
    case JSON_OBJECT:
        for (uint32_t i = 0; i < v->len; i++)
            h += mix(hash_seeded(v->members[i].key) + mix(hash_value(&v->members[i].value)));
        return mix(h + 64);
    }
    return h;
}

static bool same(const struct json *array, const uint64_t *hashes, size_t a, size_t b)
{
    return hashes[a] == hashes[b] && json_equal(&array->items[a], &array->items[b]);
}

static bool set_pair(size_t *first, size_t *second, size_t a, size_t b)
{
    if (first)
        *first = a, *second = b;
    return true;
}

static __attribute__((noinline)) bool scan_short(const struct json *array, size_t *first, size_t *second)
{
    uint64_t hashes[SHORT_LIST];
    for (size_t i = 0; i < array->len; i++) {
        hashes[i] = hash_value(&array->items[i]);
        for (size_t j = 0; j < i; j++)
            if (same(array, hashes, i, j))
                return set_pair(first, second, j, i);
    }
    return false;
}

static bool scan_long(const struct json *array, size_t *first, size_t *second)
{
    size_t size = 64;
    while (size < (size_t)array->len * 2)
        size *= 2;
    uint64_t *hashes = calloc(array->len, sizeof(*hashes));
    uint32_t *slots = calloc(size, sizeof(*slots)); /* index + 1 */
    if (!hashes || !slots) {
        fprintf(stderr, "toolgate: out of memory (%zu bytes for uniqueItems)\n", size * 8);
        abort();
    }
    bool found = false;
    for (size_t i = 0; i < array->len && !found; i++) {
        hashes[i] = hash_value(&array->items[i]);
        size_t at = hashes[i] & (size - 1);
        for (; slots[at] && !found; at = (at + 1) & (size - 1))
            if (same(array, hashes, i, slots[at] - 1))
                found = set_pair(first, second, slots[at] - 1, i);
        slots[at] = (uint32_t)i + 1;
    }
    free(slots);
    free(hashes);
    return found;
}

bool unique_items_find_pair(const struct json *array, size_t *first, size_t *second)
{
    bool few = array->len <= FEW;
    for (size_t i = 0; few && i < array->len; i++)
        few = array->items[i].type < JSON_ARRAY;
    for (size_t i = 1; few && i < array->len; i++) /* compared without hashes */
        for (size_t j = 0; j < i; j++)
            if (json_equal(&array->items[i], &array->items[j]))
                return set_pair(first, second, j, i);
    if (few)
        return false;
    return array->len <= SHORT_LIST ? scan_short(array, first, second) : scan_long(array, first, second);
}

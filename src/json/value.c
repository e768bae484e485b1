/*
 * Objects and their index, access to members, numbers, equality and order, and new values, which share what
 * they do not change with the old ones.
 *
 * Members form an array in the order they were sent. With more than OBJECT_SMALL members, a hash index
 * precedes the array; its size follows from the number of members.
 */
#include "json/value.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "json/build.h"
#include "json/decimal.h"

#include <math.h>

#define OBJECT_SMALL 16u /* up to here a linear search is faster than hashing */

/* ---- objects ---- */

/* Slots of the index: a power of two, at least twice the members. A slot holds 0 if free, else the member's
 * index + 1. */
static size_t index_slots(size_t count)
{
    size_t slots = OBJECT_SMALL * 2;
    while (slots < count * 2)
        slots *= 2;
    return slots;
}

static uint32_t *slot_for(uint32_t *slots, size_t size, const struct json_member *members, struct str key)
{
    size_t at = hash_seeded(key) & (size - 1);
    while (slots[at] && !str_eq(members[slots[at] - 1].key, key))
        at = (at + 1) & (size - 1);
    return &slots[at];
}

/* A 64-bit Bloom filter of one bit a key: keys with different bits differ. */
static inline uint64_t bit_of(struct str key)
{
    unsigned mixed = key.len ? (unsigned char)key.at[0] + 5u * (unsigned char)key.at[key.len - 1] : 0;
    return (uint64_t)1 << ((mixed + 11u * (unsigned)key.len) & 63);
}

/* Copies members until a duplicate key, which is returned. A key is compared with earlier ones only if its
 * bit was seen. A loop of its own, as a call of memcpy costs more for so few members. */
static const struct json_member *copy_small(struct json_member *row, const struct json_member *members,
                                            size_t count)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bit = bit_of(members[i].key);
        for (size_t k = 0; k < i && (seen & bit); k++)
            if (str_eq(members[i].key, members[k].key))
                return &members[i];
        seen |= bit;
        row[i] = members[i];
    }
    return NULL;
}

/* For a large object, or one with a duplicate key: later members with a key that was there are removed in
 * place, and their value moves to the first one. */
static __attribute__((noinline)) const struct json_member *hard_row(struct arena *arena,
                                                                    struct json_member *members,
                                                                    uint32_t *count,
                                                                    const struct json_member **duplicate)
{
    size_t size = index_slots(*count), kept = 0;
    uint32_t *slots = arena_alloc(arena, size * sizeof(*slots) + *count * sizeof(*members));
    struct json_member *row = (struct json_member *)(void *)(slots + size), *later = NULL;
    memset(slots, 0, size * sizeof(*slots));
    for (size_t i = 0; i < *count; i++) {
        uint32_t *slot = slot_for(slots, size, members, members[i].key);
        if (!*slot) {
            members[kept] = members[i];
            *slot = (uint32_t)++kept;
            continue;
        }
        if (!later) {
            later = arena_alloc(arena, sizeof(*later));
            *later = members[i];
        }
        members[*slot - 1].value = members[i].value;
    }
    *duplicate = later;
    if (later) { /* fewer members may need no index, or a smaller one */
        const struct json_member *none;
        *count = (uint32_t)kept;
        return object_row(arena, members, count, &none);
    }
    return memcpy(row, members, *count * sizeof(*members));
}

const struct json_member *object_row(struct arena *arena, struct json_member *members, uint32_t *count,
                                     const struct json_member **duplicate)
{
    if (*count > OBJECT_SMALL)
        return hard_row(arena, members, count, duplicate);
    struct json_member *row = arena_alloc(arena, *count * sizeof(*members));
    *duplicate = copy_small(row, members, *count);
    return *duplicate ? hard_row(arena, members, count, duplicate) : row;
}

static inline const struct json_member *find_in_small(const struct json *object, struct str key)
{
    for (uint32_t i = 0; i < object->len; i++)
        if (str_eq(object->members[i].key, key))
            return &object->members[i];
    return NULL;
}

/* Of a large object, or by a long key. */
static __attribute__((noinline)) const struct json_member *find_hard(const struct json *object,
                                                                     struct str key)
{
    if (object->len <= OBJECT_SMALL)
        return find_in_small(object, key);
    size_t size = index_slots(object->len);
    const uint32_t *slots = (const uint32_t *)(const void *)object->members - size;
    for (size_t at = hash_seeded(key) & (size - 1); slots[at]; at = (at + 1) & (size - 1)) {
        const struct json_member *m = &object->members[slots[at] - 1];
        if (str_eq(m->key, key))
            return m;
    }
    return NULL;
}

static inline const struct json_member *find_member(const struct json *object, struct str key)
{
    bool is_hard = object->len > OBJECT_SMALL || key.len > STR_EQ_INLINE_BYTES;
    return is_hard ? find_hard(object, key) : find_in_small(object, key);
}

/* A copy of the members and their index. The caller may change values and the addresses of keys. */
static struct json_member *dup_row(struct arena *arena, const struct json *object)
{
    size_t size = object->len <= OBJECT_SMALL ? 0 : index_slots(object->len) * sizeof(uint32_t);
    size_t bytes = object->len * sizeof(struct json_member);
    char *copy = arena_alloc(arena, size + bytes);
    if (bytes)
        memcpy(copy, (const char *)object->members - size, size + bytes);
    return (struct json_member *)(void *)(copy + size);
}

/* ---- reading ---- */

#define SMALL_DIGITS 9 /* twice as many fit an int64_t */

const struct json *json_get(const struct json *object, struct str key)
{
    if (!json_is(object, JSON_OBJECT))
        return NULL;
    const struct json_member *m = find_member(object, key);
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

/* At least; exact up to `most`. */
static size_t bytes_of(const struct json *v, size_t most)
{
    size_t bytes = v->raw_len;
    if (!bytes && (v->type == JSON_STRING || v->type == JSON_NUMBER))
        bytes = v->len;
    for (uint32_t i = 0; !v->raw_len && i < json_child_count(v) && bytes <= most; i++) {
        bytes += 1 + (v->type == JSON_OBJECT ? v->members[i].key.len : 0);
        bytes += bytes_of(json_child(v, i), most);
    }
    return bytes;
}

bool json_is_longer(const struct json *value, size_t bytes)
{
    return bytes_of(value, bytes) > bytes;
}

const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {"null", "boolean", "number", "string", "array", "object"};
    return (unsigned)type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

/* ---- new values ---- */

struct json json_literal(struct str number)
{
    struct decimal d = decimal_of(number);
    return (struct json){.type = JSON_NUMBER,
                         .integral = decimal_is_whole(&d),
                         .len = (uint32_t)number.len,
                         .text = number.at};
}

struct json json_number(struct arena *arena, double n)
{
    char text[DECIMAL_DOUBLE_BYTES];
    if (!isfinite(n))
        return json_null();
    size_t len = decimal_from_double(text, n);
    return json_literal(arena_dup(arena, (struct str){text, len}));
}

struct json json_integer(struct arena *arena, int64_t n)
{
    char *text = arena_alloc(arena, DIGITS_MAX_BYTES + 1), *at = text;
    if (n < 0)
        *at++ = '-';
    at = digits_put(at, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
    return (struct json){.type = JSON_NUMBER, .integral = true, .len = (uint32_t)(at - text), .text = text};
}

const struct json *json_keep(struct arena *arena, struct json value)
{
    struct json *kept = arena_alloc(arena, sizeof(*kept));
    *kept = value;
    return kept;
}

static struct json object_of(struct arena *arena, struct json_member *members, size_t count)
{
    const struct json_member *duplicate;
    uint32_t left = (uint32_t)count;
    const struct json_member *row = object_row(arena, members, &left, &duplicate);
    return (struct json){.type = JSON_OBJECT, .len = left, .members = row};
}

/* A copy of the members with space for `extra` more; object_of then copies them to their final place. */
static struct json_member *scratch_of(struct arena *arena, const struct json_member *members, size_t count,
                                      size_t extra)
{
    struct json_member *scratch = arena_alloc(arena, (count + extra) * sizeof(*scratch));
    if (count)
        memcpy(scratch, members, count * sizeof(*scratch));
    return scratch;
}

struct json json_object(struct arena *arena, const struct json_member *members, size_t count)
{
    return object_of(arena, scratch_of(arena, members, count, 0), count);
}

struct json json_with(struct arena *arena, const struct json *object, struct str key, struct json value)
{
    const struct json_member *there = find_member(object, key);
    if (there) {
        struct json_member *row = dup_row(arena, object);
        row[there - object->members].value = value;
        return (struct json){.type = JSON_OBJECT, .len = object->len, .members = row};
    }
    struct json_member *scratch = scratch_of(arena, object->members, object->len, 1);
    scratch[object->len] = json_member(key, value);
    return object_of(arena, scratch, object->len + 1);
}

struct json json_without(struct arena *arena, const struct json *object, struct str key)
{
    const struct json_member *there = find_member(object, key);
    if (!there)
        return *object;
    size_t at = (size_t)(there - object->members), after = object->len - at - 1;
    struct json_member *scratch = scratch_of(arena, object->members, object->len, 0);
    memmove(scratch + at, scratch + at + 1, after * sizeof(*scratch));
    return object_of(arena, scratch, object->len - 1);
}

struct json json_merge(struct arena *arena, const struct json *a, const struct json *b)
{
    static const struct json none = {.type = JSON_OBJECT};
    a = json_is(a, JSON_OBJECT) ? a : &none;
    b = json_is(b, JSON_OBJECT) ? b : &none;
    struct json_member *scratch = scratch_of(arena, a->members, a->len, b->len);
    if (b->len)
        memcpy(scratch + a->len, b->members, b->len * sizeof(*scratch));
    return object_of(arena, scratch, (size_t)a->len + b->len); /* of two with one key the later value */
}

static const struct json *unless_null(void *owner, const struct json *parent, uint32_t i, struct str *key)
{
    (void)owner, (void)key;
    const struct json *child = json_child(parent, i);
    return child->type == JSON_NULL ? NULL : child;
}

struct json json_without_nulls(struct arena *arena, const struct json *value)
{
    return *json_map(arena, value, unless_null, NULL);
}

/* A container is copied when its first child changes. */
const struct json *json_map(struct arena *arena, const struct json *value, json_map_child *map, void *owner)
{
    bool is_list = json_is(value, JSON_ARRAY);
    struct json *items = NULL;
    struct json_member *members = NULL;
    uint32_t count = json_child_count(value), kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct json *child = json_child(value, i);
        struct str sent = is_list ? STR_NONE : value->members[i].key, key = sent;
        const struct json *now = map(owner, value, i, &key);
        bool changes = now != child || key.at != sent.at;
        if (changes && is_list && !items) {
            items = ARENA_ARRAY(arena, struct json, count);
            memcpy(items, value->items, i * sizeof(*items));
        } else if (changes && !is_list && !members) {
            members = ARENA_ARRAY(arena, struct json_member, count);
            memcpy(members, value->members, i * sizeof(*members));
        }
        if (now && items)
            items[kept] = *now;
        else if (now && members)
            members[kept] = json_member(key, *now);
        kept += now != NULL;
    }
    if (items)
        return json_keep(arena, json_array(items, kept));
    return members ? json_keep(arena, json_object(arena, members, kept)) : value;
}

/* Raw bytes are copied once, with the outermost value that has them; pointers into them then point into the
 * copy. */
struct copied_span {
    struct str old;
    const char *copy;
    struct arena_pool *pool; /* NULL: nothing is shared */
};

static struct json copy_value(struct arena *arena, const struct json *v, struct copied_span span);

static const char *copy_bytes(struct arena *arena, const struct copied_span *span, const char *at, size_t len)
{
    uintptr_t p = (uintptr_t)at, start = (uintptr_t)span->old.at;
    if (len && p >= start && p < start + span->old.len)
        return span->copy + (p - start);
    struct str bytes = {at, len};
    return span->pool ? arena_pool_dup(span->pool, bytes).at : arena_dup(arena, bytes).at;
}

/* No schema is in it, as schemas are told apart by their address. */
static bool is_leaf(const struct json *v)
{
    bool is = v->len <= OBJECT_SMALL;
    for (uint32_t i = 0; i < v->len && is; i++) {
        const struct json *child = json_child(v, i);
        is = child->type == JSON_STRING || child->type == JSON_NUMBER ||
             (child->type == JSON_ARRAY && is_leaf(child));
    }
    return is;
}

/* Copies what the bytes of the value mean, and no padding, so that equal values have equal bytes. */
static void put_leaf(struct json *to, struct json v)
{
    to->type = v.type;
    to->integral = v.integral;
    to->len = v.len;
    to->raw_len = v.raw_len;
    to->text = v.text;
    to->raw = v.raw;
}

/* The items or members of a leaf. */
static const void *copy_leaf(const struct json *v, struct copied_span span)
{
    struct json_member row[OBJECT_SMALL];
    struct json items[OBJECT_SMALL];
    bool is_list = v->type == JSON_ARRAY;
    memset(row, 0, sizeof(row));
    memset(items, 0, sizeof(items));
    for (uint32_t i = 0; i < v->len; i++) {
        put_leaf(is_list ? &items[i] : &row[i].value, copy_value(span.pool->arena, json_child(v, i), span));
        if (!is_list)
            row[i].key = arena_pool_dup(span.pool, v->members[i].key);
    }
    return is_list ? arena_pool_keep(span.pool, items, v->len * sizeof(*items))
                   : arena_pool_keep(span.pool, row, v->len * sizeof(*row));
}

static struct json copy_value(struct arena *arena, const struct json *v, struct copied_span span)
{
    struct json copy = *v;
    if (v->raw_len) {
        copy.raw = copy_bytes(arena, &span, v->raw, v->raw_len);
        span = (struct copied_span){{v->raw, v->raw_len}, copy.raw, NULL};
    }
    if (v->type == JSON_STRING || v->type == JSON_NUMBER) {
        copy.text = copy_bytes(arena, &span, v->text, v->len);
    } else if (span.pool && v->type >= JSON_ARRAY && is_leaf(v)) {
        copy.items = copy_leaf(v, span);
    } else if (v->type == JSON_ARRAY) {
        struct json *items = arena_alloc(arena, v->len * sizeof(*items));
        for (uint32_t i = 0; i < v->len; i++)
            items[i] = copy_value(arena, &v->items[i], span);
        copy.items = items;
    } else if (v->type == JSON_OBJECT) {
        struct json_member *row = dup_row(arena, v);
        for (uint32_t i = 0; i < v->len; i++) {
            row[i].key.at = copy_bytes(arena, &span, row[i].key.at, row[i].key.len);
            row[i].value = copy_value(arena, &v->members[i].value, span);
        }
        copy.members = row;
    }
    return copy;
}

struct json json_copy(struct arena *arena, const struct json *value)
{
    return copy_value(arena, value, (struct copied_span){0});
}

const struct json *json_pool_copy(struct arena_pool *pool, const struct json *value)
{
    struct json copy = copy_value(pool->arena, value, (struct copied_span){.pool = pool});
    if (value->type < JSON_ARRAY || !is_leaf(value))
        return json_keep(pool->arena, copy);
    struct json leaf;
    memset(&leaf, 0, sizeof(leaf));
    put_leaf(&leaf, copy);
    return arena_pool_keep(pool, &leaf, sizeof(leaf));
}

struct strings_walk {
    struct arena *arena;
    json_map_text *map;
    const void *owner;
};

static const struct json *map_strings_child(void *walking, const struct json *parent, uint32_t i,
                                            struct str *key)
{
    const struct strings_walk *w = walking;
    struct str now = w->map(w->owner, w->arena, *key);
    if (now.at != key->at)
        *key = arena_printf(w->arena, STR_FMT " %u", STR_ARG(now), i + 1);
    return json_map_strings(w->arena, json_child(parent, i), w->map, w->owner);
}

const struct json *json_map_strings(struct arena *arena, const struct json *value, json_map_text *map,
                                    const void *owner)
{
    struct strings_walk walk = {arena, map, owner};
    if (!json_is(value, JSON_STRING))
        return value ? json_map(arena, value, map_strings_child, &walk) : NULL;
    struct str text = json_str(value), now = map(owner, arena, text);
    return now.at == text.at ? value : json_keep(arena, json_string(now));
}

/* Builds and searches the array of members and the hash index before it. */
#include "json/object.h"

#include "base/arena.h"
#include "base/hash.h"

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

/* Removes later members with the same key in place, moving their value to the first one. */
static size_t merge_twice(struct arena *arena, struct json_member *members, size_t count)
{
    size_t size = index_slots(count), kept = 0;
    uint32_t *slots = ARENA_ARRAY(arena, uint32_t, size);
    for (size_t i = 0; i < count; i++) {
        uint32_t *slot = slot_for(slots, size, members, members[i].key);
        if (*slot) {
            members[*slot - 1].value = members[i].value;
        } else {
            members[kept] = members[i];
            *slot = (uint32_t)++kept;
        }
    }
    return kept;
}

/* Copies the members and fills their index. *duplicate: the first member whose key an earlier one has, or
 * NULL. */
static const struct json_member *large_row(struct arena *arena, const struct json_member *members,
                                           size_t count, const struct json_member **duplicate)
{
    size_t size = index_slots(count);
    uint32_t *slots = arena_alloc(arena, size * sizeof(*slots) + count * sizeof(*members));
    struct json_member *row = (struct json_member *)(void *)(slots + size);
    memset(slots, 0, size * sizeof(*slots));
    memcpy(row, members, count * sizeof(*members));
    *duplicate = NULL;
    for (size_t i = 0; i < count && !*duplicate; i++) {
        uint32_t *slot = slot_for(slots, size, members, members[i].key);
        if (*slot)
            *duplicate = &members[i];
        else
            *slot = (uint32_t)i + 1;
    }
    return row;
}

/* For a large object, or one with a duplicate key. */
static __attribute__((noinline)) const struct json_member *hard_row(struct arena *arena,
                                                                    struct json_member *members,
                                                                    uint32_t *count,
                                                                    const struct json_member **duplicate)
{
    const struct json_member *none;
    const struct json_member *row = large_row(arena, members, *count, duplicate);
    if (!*duplicate)
        return row;
    struct json_member *later = arena_alloc(arena, sizeof(*later));
    *later = **duplicate;
    *duplicate = later;
    *count = (uint32_t)merge_twice(arena, members, *count);
    return object_row(arena, members, count, &none);
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

static const struct json_member *find_in_large(const struct json *object, struct str key)
{
    size_t size = index_slots(object->len);
    const uint32_t *slots = (const uint32_t *)(const void *)object->members - size;
    for (size_t at = hash_seeded(key) & (size - 1); slots[at]; at = (at + 1) & (size - 1)) {
        const struct json_member *m = &object->members[slots[at] - 1];
        if (str_eq(m->key, key))
            return m;
    }
    return NULL;
}

const struct json_member *object_find_hard(const struct json *object, struct str key)
{
    return object->len > OBJECT_SMALL ? find_in_large(object, key) : object_find_in_small(object, key);
}

struct json_member *object_dup_row(struct arena *arena, const struct json *object)
{
    size_t size = object->len <= OBJECT_SMALL ? 0 : index_slots(object->len) * sizeof(uint32_t);
    size_t bytes = object->len * sizeof(struct json_member);
    char *copy = arena_alloc(arena, size + bytes);
    if (bytes)
        memcpy(copy, (const char *)object->members - size, size + bytes);
    return (struct json_member *)(void *)(copy + size);
}

/* Objects: the row of members and the index before it. */
#include "json/object.h"

#include "base/arena.h"
#include "base/hash.h"

/* Slots of the index: a power of two, at least twice the members. 0 in a slot: free; else the member's number
 * + 1. */
static size_t index_slots(size_t count)
{
    size_t slots = OBJECT_SMALL * 2;
    while (slots < count * 2)
        slots *= 2;
    return slots;
}

static uint32_t *slot_for(uint32_t *slots, size_t size, const struct json_member *members, struct str key,
                          uint64_t hash)
{
    size_t at = hash & (size - 1);
    while (slots[at] && !(members[slots[at] - 1].hash == hash && str_eq(members[slots[at] - 1].key, key)))
        at = (at + 1) & (size - 1);
    return &slots[at];
}

/* The later of the first two members that share a key, found while the index is filled. */
static const struct json_member *fill_index(uint32_t *slots, size_t size, const struct json_member *members,
                                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t *slot = slot_for(slots, size, members, members[i].key, members[i].hash);
        if (*slot)
            return &members[i];
        *slot = (uint32_t)i + 1;
    }
    return NULL;
}

static const struct json_member *small_twice(const struct json_member *members, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (members[i].hash == members[k].hash && str_eq(members[i].key, members[k].key))
                return &members[i];
    return NULL;
}

/* Drops later members of a known key in place, moving their value to the first one. */
static size_t merge_twice(struct arena *arena, struct json_member *members, size_t count)
{
    size_t size = index_slots(count), kept = 0;
    uint32_t *slots = ARENA_ARRAY(arena, uint32_t, size);
    for (size_t i = 0; i < count; i++) {
        uint32_t *slot = slot_for(slots, size, members, members[i].key, members[i].hash);
        if (*slot) {
            members[*slot - 1].value = members[i].value;
        } else {
            members[kept] = members[i];
            *slot = (uint32_t)++kept;
        }
    }
    return kept;
}

static const struct json_member *row_of(struct arena *arena, const struct json_member *members, size_t count,
                                        const struct json_member **twice)
{
    bool small = count <= OBJECT_SMALL;
    size_t size = small ? 0 : index_slots(count);
    uint32_t *slots = arena_alloc(arena, size * sizeof(*slots) + count * sizeof(*members));
    struct json_member *row = (struct json_member *)(void *)(slots + size);
    if (!small)
        memset(slots, 0, size * sizeof(*slots));
    if (count)
        memcpy(row, members, count * sizeof(*members));
    *twice = small ? small_twice(members, count) : fill_index(slots, size, members, count);
    return row;
}

struct json object_new(struct arena *arena, struct json_member *members, size_t count,
                       const struct json_member **twice)
{
    const struct json_member *first_twice, *none;
    const struct json_member *row = row_of(arena, members, count, &first_twice);
    if (first_twice) {
        struct json_member *later = arena_alloc(arena, sizeof(*later));
        *later = *first_twice;
        first_twice = later;
        count = merge_twice(arena, members, count);
        row = row_of(arena, members, count, &none);
    }
    if (twice)
        *twice = first_twice;
    return (struct json){.type = JSON_OBJECT, .len = (uint32_t)count, .members = row};
}

static const struct json_member *find_small(const struct json *object, struct str key)
{
    for (uint32_t i = 0; i < object->len; i++)
        if (str_eq(object->members[i].key, key))
            return &object->members[i];
    return NULL;
}

const struct json_member *object_find(const struct json *object, struct str key)
{
    if (object->len <= OBJECT_SMALL)
        return find_small(object, key);
    size_t size = index_slots(object->len);
    const uint32_t *slots = (const uint32_t *)(const void *)object->members - size;
    uint64_t hash = hash_seeded(key);
    for (size_t at = hash & (size - 1); slots[at]; at = (at + 1) & (size - 1)) {
        const struct json_member *m = &object->members[slots[at] - 1];
        if (m->hash == hash && str_eq(m->key, key))
            return m;
    }
    return NULL;
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

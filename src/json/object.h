/*
 * The memory layout of objects, private to src/json. Members form an array in
 * the order they were sent. With more than OBJECT_SMALL members, a hash index
 * precedes the array; its size follows from the number of members.
 */
#ifndef TOOLGATE_JSON_OBJECT_H
#define TOOLGATE_JSON_OBJECT_H

#include "json/value.h"

struct arena;

#define OBJECT_SMALL 16u /* up to here a linear search is faster than hashing */

/* The array of copied members. Of a duplicate key, the first place and the last value are kept; `members` is
 * overwritten then, and *duplicate is the later member (else NULL). *count: the number of members, and of
 * those left afterwards. */
const struct json_member *object_row(struct arena *arena, struct json_member *members, uint32_t *count,
                                     const struct json_member **duplicate);

static inline const struct json_member *object_find_in_small(const struct json *object, struct str key)
{
    for (uint32_t i = 0; i < object->len; i++)
        if (str_eq(object->members[i].key, key))
            return &object->members[i];
    return NULL;
}

/* Of a large object, or by a long key. */
const struct json_member *object_find_hard(const struct json *object, struct str key);

/* The member, or NULL. */
static inline const struct json_member *object_find(const struct json *object, struct str key)
{
    bool is_hard = object->len > OBJECT_SMALL || key.len > STR_EQ_INLINE_BYTES;
    return is_hard ? object_find_hard(object, key) : object_find_in_small(object, key);
}

/* A copy of the members and their index. The caller may change values and the addresses of keys. */
struct json_member *object_dup_row(struct arena *arena, const struct json *object);

#endif

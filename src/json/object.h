/*
 * How objects lie in memory; only this room looks. Members stand in a row in
 * the order they were sent. Over OBJECT_SMALL members an index stands before
 * them: open addressing by hash, its size known from the count of members.
 */
#ifndef TOOLGATE_JSON_OBJECT_H
#define TOOLGATE_JSON_OBJECT_H

#include "json/value.h"

struct arena;

#define OBJECT_SMALL 16u /* up to here comparing keys in a row is faster than hashing */

/* An object of copied members. Of a key that comes twice, the first place and the last value are kept;
 * `members` is scratch then, and *twice the later key (else NULL). `twice` may be NULL. */
struct json object_new(struct arena *arena, struct json_member *members, size_t count,
                       const struct json_member **twice);

/* The row alone, where *count says how many there are; afterwards, how many are left. */
const struct json_member *object_row(struct arena *arena, struct json_member *members, uint32_t *count,
                                     const struct json_member **twice);

/* The member, or NULL. */
const struct json_member *object_find(const struct json *object, struct str key);

/* The same members and index in memory of their own, for the caller to change values and move keys. */
struct json_member *object_dup_row(struct arena *arena, const struct json *object);

#endif

/* The making of objects, private to src/json. */
#ifndef TOOLGATE_JSON_OBJECT_H
#define TOOLGATE_JSON_OBJECT_H

#include "json/value.h"

struct arena;

/* The array of copied members. Of a duplicate key, the first place and the last value are kept; `members` is
 * overwritten then, and *duplicate is the later member (else NULL). *count: the number of members, and of
 * those left afterwards. */
const struct json_member *object_row(struct arena *arena, struct json_member *members, uint32_t *count,
                                     const struct json_member **duplicate);

#endif

/* Dotted names of arguments, "options.limit": looked up, set and removed. Only files of this room include
 * this. */
#ifndef TOOLGATE_POLICY_PATH_H
#define TOOLGATE_POLICY_PATH_H

#include "json/value.h"

struct arena;

const struct json *path_get(const struct json *object, struct str path);
struct json path_with(struct arena *arena, const struct json *object, struct str path, struct json value);
struct json path_without(struct arena *arena, const struct json *object, struct str path);

#endif

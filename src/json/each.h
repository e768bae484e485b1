/*
 * One way to walk the children of a value, whether it is a list or an object, and one to build the value anew
 * where a child changes.
 */
#ifndef TOOLGATE_JSON_EACH_H
#define TOOLGATE_JSON_EACH_H

#include "json/value.h"

struct arena;

/* Child `i` as it should be: the child itself, another value, or NULL to leave it out. *key is a member's and
 * may be replaced; an item has STR_NONE. */
typedef const struct json *json_map_child(void *owner, const struct json *parent, uint32_t i,
                                          struct str *key);

/* The value with its children mapped, each once and in their order. The value itself, byte for byte, if none
 * changes or if it has none. `map` descends by calling json_map again. */
const struct json *json_map(struct arena *arena, const struct json *value, json_map_child *map, void *owner);

#endif

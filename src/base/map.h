/*
 * Names to pointers: a seeded open-addressing table that keeps its keys by
 * reference. For lists that are built once and looked up often.
 */
#ifndef TOOLGATE_BASE_MAP_H
#define TOOLGATE_BASE_MAP_H

#include "base/str.h"

struct arena;
struct map;

/* Lives in the arena; so must the keys, for as long. */
struct map *map_new(struct arena *arena);

/* False, and nothing changed, where the key is there already. */
bool map_add(struct map *map, struct str key, void *value);
void *map_get(const struct map *map, struct str key); /* NULL: not there */
size_t map_count(const struct map *map);

#endif

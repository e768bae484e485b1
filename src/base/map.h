/*
 * A hash table from names to pointers, seeded, with open addressing. It keeps
 * its keys by reference and has no removal: for tables that are built once and
 * looked up often.
 */
#ifndef TOOLGATE_BASE_MAP_H
#define TOOLGATE_BASE_MAP_H

#include "base/str.h"

struct arena;
struct map;

/* Allocated in the arena. The keys must live as long. */
struct map *map_new(struct arena *arena);
/* With room for `count` keys: as it grows, a map leaves its smaller tables in the arena. */
struct map *map_new_for(struct arena *arena, size_t count);

/* Returns false and changes nothing if the key exists already. */
bool map_add(struct map *map, struct str key, void *value);
void *map_get(const struct map *map, struct str key); /* NULL: no such key */
size_t map_count(const struct map *map);

#endif

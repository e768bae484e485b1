/* Open addressing with linear probing, grown at half full. */
#include "base/map.h"

#include "base/arena.h"
#include "base/hash.h"

#define MAP_FIRST_SLOTS 16u

struct slot {
    struct str key; /* at NULL: the slot is free */
    void *value;
};

struct map {
    struct arena *arena;
    struct slot *slots;
    size_t count, size; /* size: a power of two */
};

struct map *map_new(struct arena *arena)
{
    return map_new_for(arena, 0);
}

struct map *map_new_for(struct arena *arena, size_t count)
{
    struct map *map = ARENA_NEW(arena, struct map);
    map->arena = arena;
    map->size = MAP_FIRST_SLOTS;
    while (count * 2 > map->size)
        map->size *= 2;
    map->slots = ARENA_ARRAY(arena, struct slot, map->size);
    return map;
}

/* The slot that holds the key, or the free one where it belongs. */
static struct slot *find(const struct map *map, struct str key)
{
    size_t at = hash_seeded(key) & (map->size - 1);
    while (map->slots[at].key.at && !str_eq(map->slots[at].key, key))
        at = (at + 1) & (map->size - 1);
    return &map->slots[at];
}

bool map_add(struct map *map, struct str key, void *value)
{
    if ((map->count + 1) * 2 > map->size) {
        struct slot *old = map->slots;
        size_t old_size = map->size;
        map->size *= 2;
        map->slots = ARENA_ARRAY(map->arena, struct slot, map->size);
        for (size_t i = 0; i < old_size; i++)
            if (old[i].key.at)
                *find(map, old[i].key) = old[i];
    }
    struct slot *slot = find(map, key);
    if (slot->key.at)
        return false;
    *slot = (struct slot){{key.at ? key.at : "", key.len}, value};
    map->count++;
    return true;
}

void *map_get(const struct map *map, struct str key)
{
    return find(map, key)->value;
}

size_t map_count(const struct map *map)
{
    return map->count;
}

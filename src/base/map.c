/* Open addressing with linear probing, grown at half full. */
#include "base/map.h"

#include "base/arena.h"
#include "base/hash.h"

#define MAP_FIRST_SLOTS 16u

struct slot {
    struct str key;
    uint64_t hash;
    void *value;
    bool used;
};

struct map {
    struct arena *arena;
    struct slot *slots;
    size_t count, size; /* size: a power of two */
};

struct map *map_new(struct arena *arena)
{
    struct map *map = ARENA_NEW(arena, struct map);
    map->arena = arena;
    map->size = MAP_FIRST_SLOTS;
    map->slots = ARENA_ARRAY(arena, struct slot, map->size);
    return map;
}

/* The slot that holds the key, or the free one where it belongs. */
static struct slot *find(const struct map *map, struct str key, uint64_t hash)
{
    size_t at = hash & (map->size - 1);
    while (map->slots[at].used && !(map->slots[at].hash == hash && str_eq(map->slots[at].key, key)))
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
            if (old[i].used)
                *find(map, old[i].key, old[i].hash) = old[i];
    }
    uint64_t hash = hash_seeded(key);
    struct slot *slot = find(map, key, hash);
    if (slot->used)
        return false;
    *slot = (struct slot){key, hash, value, true};
    map->count++;
    return true;
}

void *map_get(const struct map *map, struct str key)
{
    struct slot *slot = find(map, key, hash_seeded(key));
    return slot->used ? slot->value : NULL;
}

size_t map_count(const struct map *map)
{
    return map->count;
}

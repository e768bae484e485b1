/* Two lists that are appended to, and indexed by the first search; the list of anchors is in Lua's registry.
 */
#include "sandbox/bridge_origins.h"
#include "base/arena.h"
#include "json/build.h"

#include <math.h>

#define FIRST_CAPACITY 8u
#define NO_SLOT        0u /* slots hold positions + 1 */
#define ANCHORS_FIRST  32
#define ANCHORS_KEPT   256 /* a longer list is not reused */

static const char anchors_key; /* its address is the registry key of the list */

static void add(struct bridge_origin_list *list, struct arena *arena, struct bridge_origin origin)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
        struct bridge_origin *more = arena_alloc(arena, capacity * sizeof(*more));
        if (list->count)
            memcpy(more, list->at, list->count * sizeof(*more));
        list->at = more;
        list->capacity = capacity;
    }
    list->at[list->count++] = origin;
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t *slot_of(const struct bridge_origin_list *list, uint64_t key)
{
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    uint32_t mask = list->slot_count - 1, i = (uint32_t)(hash >> 32) & mask;
    while (list->slots[i] != NO_SLOT && list->at[list->slots[i] - 1].key != key)
        i = (i + 1) & mask;
    return &list->slots[i];
}

static struct bridge_origin *find(const struct bridge_origin_list *list, uint64_t key)
{
    uint32_t slot = list->slots ? *slot_of(list, key) : NO_SLOT;
    return slot == NO_SLOT ? NULL : &list->at[slot - 1];
}

/* Grows the index to at least two slots for each origin; it is empty then. */
static void grow_index(struct bridge_origin_list *list, struct arena *arena)
{
    if (list->count * 2 <= list->slot_count)
        return;
    uint32_t count = 16;
    while (count < list->count * 2)
        count *= 2;
    list->slots = ARENA_ARRAY(arena, uint32_t, count);
    list->slot_count = count;
    list->indexed = 0;
}

void bridge_origins_add_table(struct bridge_origins *origins, const void *table, const struct json *value)
{
    add(&origins->tables, origins->arena, (struct bridge_origin){(uint64_t)(uintptr_t)table, value});
}

const struct json *bridge_origins_table(struct bridge_origins *origins, const void *table)
{
    struct bridge_origin_list *list = &origins->tables;
    if (origins->pinned.key == (uint64_t)(uintptr_t)table)
        return origins->pinned.value;
    if (!list->count)
        return NULL;
    grow_index(list, origins->arena);
    for (; list->indexed < list->count; list->indexed++)
        *slot_of(list, list->at[list->indexed].key) = list->indexed + 1;
    struct bridge_origin *found = find(list, (uint64_t)(uintptr_t)table);
    return found ? found->value : NULL;
}

void bridge_origins_push_anchors(lua_State *L, struct bridge_origins *origins)
{
    lua_pushlightuserdata(L, (void *)&anchors_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isnil(L, -1) || (!origins->anchored && lua_objlen(L, -1) > ANCHORS_KEPT)) {
        lua_pop(L, 1);
        lua_createtable(L, ANCHORS_FIRST, 0);
        lua_pushlightuserdata(L, (void *)&anchors_key);
        lua_pushvalue(L, -2);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    origins->anchored = true;
}

void bridge_origins_release(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&anchors_key);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

static uint64_t bits_of(double n)
{
    uint64_t bits;
    memcpy(&bits, &n, sizeof(bits));
    return bits;
}

void bridge_origins_add_number(struct bridge_origins *origins, double n, const struct json *literal)
{
    add(&origins->numbers, origins->arena, (struct bridge_origin){bits_of(n), literal});
}

const struct json *bridge_origins_number(struct bridge_origins *origins, double n, bool *several)
{
    struct bridge_origin_list *list = &origins->numbers;
    *several = false;
    if (!list->count)
        return NULL;
    grow_index(list, origins->arena);
    for (; list->indexed < list->count; list->indexed++) {
        const struct bridge_origin *added = &list->at[list->indexed];
        struct bridge_origin *earlier = find(list, added->key);
        if (!earlier)
            *slot_of(list, added->key) = list->indexed + 1;
        else if (earlier->value && earlier->value != added->value &&
                 !json_equal(earlier->value, added->value))
            earlier->value = NULL;
    }
    struct bridge_origin *found = find(list, bits_of(n));
    *several = found && !found->value;
    if (!found || !found->value)
        return NULL;
    struct json exact = isfinite(n) ? json_number(origins->arena, n) : json_null();
    return json_equal(&exact, found->value) ? NULL : found->value; /* an exact double needs no literal */
}

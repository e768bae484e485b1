/*
 * Records which JSON values were pushed to Lua in one run of a hook: tables by
 * their identity, so that moved ones are found, and numbers that a double cannot
 * hold by the double. Allocated in the run's arena.
 */
#ifndef TOOLGATE_SANDBOX_BRIDGE_ORIGINS_H
#define TOOLGATE_SANDBOX_BRIDGE_ORIGINS_H

#include "json/value.h"

#include <lua.h>

struct arena;

struct bridge_origin {
    uint64_t key;             /* a table's address, or the bits of a double */
    const struct json *value; /* NULL: several different numbers */
};

struct bridge_origin_list {
    struct bridge_origin *at;
    uint32_t count, capacity;
    uint32_t *slots; /* a hash index, made by the first search: most runs search nothing */
    uint32_t slot_count, indexed;
};

/* Initially all zero but the arena. */
struct bridge_origins {
    struct arena *arena;
    struct bridge_origin pinned; /* the table that the caller keeps: most values are one table */
    struct bridge_origin_list tables, numbers;
    bool anchored; /* the list of anchors belongs to this run */
};

/* `table` must stay alive until the run ends, as another table could get its address. */
void bridge_origins_add_table(struct bridge_origins *origins, const void *table, const struct json *value);
const struct json *bridge_origins_table(struct bridge_origins *origins, const void *table); /* or NULL */

/* Pushes the list of this run's tables, which keeps them alive; the next run overwrites it. */
void bridge_origins_push_anchors(lua_State *L, struct bridge_origins *origins);

/* Releases the tables of the last run, so that they can be collected. */
void bridge_origins_release(lua_State *L);

/* Only numbers that a double cannot hold can be found again. */
void bridge_origins_add_number(struct bridge_origins *origins, double n, const struct json *literal);

/* The literal that this double was made from, or NULL; *several: there are different ones. */
const struct json *bridge_origins_number(struct bridge_origins *origins, double n, bool *several);

#endif

/*
 * What went over to Lua in one run of a hook, and from which values: tables by
 * their identity, wherever they are put; numbers that a double cannot hold by
 * the double. Bounded by the values themselves; lives in the run's arena.
 *
 * Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_BRIDGE_ORIGINS_H
#define TOOLGATE_SANDBOX_BRIDGE_ORIGINS_H

#include "json/value.h"

struct arena;

struct bridge_origin {
    uint64_t key;             /* a table's address, or the bits of a double */
    const struct json *value; /* NULL: several different numbers */
};

struct bridge_origin_list {
    struct bridge_origin *at;
    uint32_t count, room;
    uint32_t *slots; /* made when something is looked for first: most runs look for nothing */
    uint32_t slot_count, indexed;
};

/* All zero but the arena: nothing went over yet. */
struct bridge_origins {
    struct arena *arena;
    struct bridge_origin kept; /* the table that the caller keeps: most values are one table */
    struct bridge_origin_list tables, numbers;
    bool anchored; /* bridge_push.c has its list of anchors for this run */
};

/* `table` must stay alive until the run ends: another one could get its address. */
void bridge_origins_add_table(struct bridge_origins *origins, const void *table, const struct json *value);
const struct json *bridge_origins_table(struct bridge_origins *origins, const void *table); /* or NULL */

/* Only numbers that are another one as a double are found again. */
void bridge_origins_add_number(struct bridge_origins *origins, double n, const struct json *literal);

/* The literal that this double came from; NULL where there is none, and *several where there are different
 * ones. */
const struct json *bridge_origins_number(struct bridge_origins *origins, double n, bool *several);

#endif

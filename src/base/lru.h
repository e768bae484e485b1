/*
 * A hash table by 128-bit id that also knows the order in which its nodes were touched. Nodes are embedded in
 * what they are of, which owns them; the table is seeded, since peers choose what ids are made of.
 */
#ifndef TOOLGATE_BASE_LRU_H
#define TOOLGATE_BASE_LRU_H

#include "base/hash.h"

struct lru_node {
    struct hash128 id;
    struct lru_node *chained, *older, *newer; /* the table's */
    int64_t expires_ms;                       /* the owner's */
};

struct lru {
    struct lru_node **buckets;
    size_t bucket_count, count;
    struct lru_node *oldest, *newest; /* by touch */
    uint64_t seeds[2];
};

void lru_init(struct lru *lru);
void lru_clear(struct lru *lru); /* the nodes are gone already, or the owner's to free */

/* NULL: not there; else it is the one touched last. */
struct lru_node *lru_find(struct lru *lru, struct hash128 id);
/* As the one touched last; node->id must not be there yet. */
void lru_add(struct lru *lru, struct lru_node *node);
void lru_remove(struct lru *lru, struct lru_node *node);

#endif

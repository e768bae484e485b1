/* Chained buckets, doubled when they are as many as the nodes, and a list by touch. */
#include "base/lru.h"

#include <stdlib.h>

#define FIRST_BUCKETS 256u

void lru_init(struct lru *lru)
{
    *lru = (struct lru){.bucket_count = FIRST_BUCKETS, .seeds = {hash_random(), hash_random()}};
    if (!(lru->buckets = calloc(FIRST_BUCKETS, sizeof(*lru->buckets))))
        abort();
}

void lru_clear(struct lru *lru)
{
    free(lru->buckets);
    *lru = (struct lru){0};
}

/* The two halves of a product, each of which depends on all bits of the id. */
static struct lru_node **bucket_of(const struct lru *lru, struct hash128 id)
{
    unsigned __int128 product = (unsigned __int128)(id.low ^ lru->seeds[0]) * (id.high ^ lru->seeds[1]);
    uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64);
    return &lru->buckets[mixed & (lru->bucket_count - 1)];
}

static void unlink_node(struct lru *lru, struct lru_node *node)
{
    *(node->older ? &node->older->newer : &lru->oldest) = node->newer;
    *(node->newer ? &node->newer->older : &lru->newest) = node->older;
}

static void link_newest(struct lru *lru, struct lru_node *node)
{
    node->older = lru->newest;
    node->newer = NULL;
    *(lru->newest ? &lru->newest->newer : &lru->oldest) = node;
    lru->newest = node;
}

static void chain(struct lru *lru, struct lru_node *node)
{
    struct lru_node **at = bucket_of(lru, node->id);
    node->chained = *at;
    *at = node;
}

static void double_buckets(struct lru *lru)
{
    struct lru_node **buckets = calloc(lru->bucket_count * 2, sizeof(*buckets));
    if (!buckets)
        return; /* slower, but whole */
    free(lru->buckets);
    lru->buckets = buckets;
    lru->bucket_count *= 2;
    for (struct lru_node *node = lru->oldest; node; node = node->newer)
        chain(lru, node);
}

struct lru_node *lru_find(struct lru *lru, struct hash128 id)
{
    struct lru_node *node = *bucket_of(lru, id);
    while (node && (node->id.low != id.low || node->id.high != id.high))
        node = node->chained;
    if (node && node != lru->newest) {
        unlink_node(lru, node);
        link_newest(lru, node);
    }
    return node;
}

void lru_add(struct lru *lru, struct lru_node *node)
{
    if (lru->count++ >= lru->bucket_count)
        double_buckets(lru);
    chain(lru, node);
    link_newest(lru, node);
}

void lru_remove(struct lru *lru, struct lru_node *node)
{
    struct lru_node **at = bucket_of(lru, node->id);
    while (*at != node)
        at = &(*at)->chained;
    *at = node->chained;
    unlink_node(lru, node);
    lru->count--;
}

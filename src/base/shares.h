/*
 * Who takes how much of a bounded memory. Each owner has a list of its nodes by touch; where room is short,
 * the owner that takes most loses its oldest node. So an owner that floods the memory pushes out only its
 * own, as long as the others take less. Nodes are embedded in what they are of.
 */
#ifndef TOOLGATE_BASE_SHARES_H
#define TOOLGATE_BASE_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define SHARES_MAX 256u /* owners; those beyond take one share together */

struct share_node {
    struct share *share;
    struct share_node *older, *newer;
    size_t bytes;
};

struct share {
    uint32_t owner; /* e.g. a uid */
    size_t bytes;
    struct share_node *oldest, *newest; /* by touch; NULL: nobody's share */
};

struct shares {
    struct share of[SHARES_MAX]; /* initially zero */
};

/* As the one touched last, with no bytes yet. */
void shares_add(struct shares *shares, struct share_node *node, uint32_t owner);
void shares_touch(struct share_node *node);
void shares_resize(struct share_node *node, size_t bytes);
void shares_remove(struct share_node *node);

/* The share that takes most bytes; its `oldest` is NULL if there are no nodes. O(SHARES_MAX). */
const struct share *shares_largest(const struct shares *shares);

#endif

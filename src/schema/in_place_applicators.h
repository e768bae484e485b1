/*
 * The nodes that apply to one value: a node, its references and its branches,
 * each with the properties it declares. Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_IN_PLACE_APPLICATORS_H
#define TOOLGATE_SCHEMA_IN_PLACE_APPLICATORS_H

#include "schema/node.h"

#define IN_PLACE_NODES_MAX 64u /* schemas of tools need a handful */

struct in_place_nodes {
    const struct node *nodes[IN_PLACE_NODES_MAX];
    const struct props *props[IN_PLACE_NODES_MAX]; /* NULL: none */
    const struct op *items[IN_PLACE_NODES_MAX];    /* NULL: none */
    uint32_t count;
};

/* All of them, whether their conditions hold or not. */
void in_place_collect(struct in_place_nodes *all, const struct node *node);

/* Only those that apply to v: of the branches, the one that discriminators and type leave, if only one is
 * left. */
void in_place_collect_for(struct in_place_nodes *all, const struct node *node, const struct json *v,
                          struct pass *pass);

#endif

/*
 * Which upstream's tool each policy guards that names only the tool, not its upstream. Such a policy stays
 * with the upstream whose tool it guarded: when that one stops offering it and another offers a tool of the
 * same name, the other's is left out until the policy names its upstream. Who wrote the policy has not seen
 * that tool.
 */
#ifndef TOOLGATE_CATALOG_GUARDED_TOOLS_H
#define TOOLGATE_CATALOG_GUARDED_TOOLS_H

#include "base/str.h"

struct generation;
struct policy;

struct guarded_tool {
    struct str policy;   /* its name, which is its tool's, too */
    struct str upstream; /* whose tool it guarded last */
    struct str moved_to; /* the upstream that offers one of this name now; empty: none */
};

/* Before the import: copies what another generation knew of the policies of this one. */
void guarded_tools_take(struct generation *generation, const struct guarded_tool *before, size_t count);

/* NULL: nothing is known of it. */
struct guarded_tool *guarded_tools_find(const struct generation *generation, struct str policy);

/* After the import: adds what its policies guard now. */
void guarded_tools_collect(struct generation *generation);

#endif

/*
 * The resources that tools' results have named on one connection
 * (resource_link, or an embedded resource): which server named them. A client
 * reads them later, although no list has them. The newest are kept.
 */
#ifndef TOOLGATE_PASSING_RESOURCE_LINKS_H
#define TOOLGATE_PASSING_RESOURCE_LINKS_H

#include "json/value.h"
#include "upstream/upstream_spec.h"

#define RESOURCE_LINKS_MAX 1024u /* of one connection */

struct resource_links; /* NULL: none so far */

/* Takes the links of a result's content. `links` may point to NULL; it is made at the first one. */
void resource_links_keep(struct resource_links **links, const struct json *content, struct str upstream);

/* The upstream that has named it last; empty: none. Valid until the next resource_links_keep. */
struct str resource_links_find(const struct resource_links *links, struct str uri);

void resource_links_free(struct resource_links *links); /* NULL is fine */

#endif

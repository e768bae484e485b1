/*
 * Which server a URI is read from. Only one is asked, so that no server hears
 * of the URIs of another:
 *
 *   1. the one that lists it
 *   2. the one with the resource template that fits it; the most exact, if several do
 *   3. the one whose tool has named it on this connection
 *   4. the only one that has resources, if there is no other
 */
#ifndef TOOLGATE_SERVER_RESOURCE_OWNER_H
#define TOOLGATE_SERVER_RESOURCE_OWNER_H

#include "server/served.h"

/* The resources that tools' results have named on one connection (resource_link, or an embedded resource): a
 * client reads them later, although no list has them. The newest are kept. */
#define RESOURCE_LINKS_MAX 1024u /* of one connection */

struct resource_links; /* NULL: none so far */

/* Takes the links of a result's content. `links` may point to NULL; it is made at the first one. */
void resource_links_keep(struct resource_links **links, const struct json *content, struct str upstream);

/* The upstream that has named it last; empty: none. Valid until the next resource_links_keep. */
struct str resource_links_find(const struct resource_links *links, struct str uri);

void resource_links_free(struct resource_links *links); /* NULL is fine */

#define RESOURCE_STEPS_MAX                                                                                   \
    4000000u /* bytes of URIs and templates that one message has compared, of about 1 ns */

/* All borrowed. One search serves all URIs of a message. */
struct resource_search {
    const struct served *served;
    const struct config *config;
    const struct peer *peer;
    const struct resource_links *links;
    struct upstreams *upstreams;
    size_t steps;     /* zeroed at first; beyond RESOURCE_STEPS_MAX, templates are no longer compared */
    struct str rival; /* of the last URI: another server that has a template for it; empty: none */
};

/* NULL: none of them; or the peer may not read it, which it does not learn. */
const struct upstream_spec *resource_owner(struct resource_search *search, struct str uri);

/* The configured upstream, or NULL. */
const struct upstream_spec *resource_upstream(const struct config *config, struct str name);

/* Whether an RFC 6570 template can give this URI: its literal text in this order, with something in the place
 * of each expression; only "{+x}", "{/x*}" and the like stand for text with a '/'. `literal`: bytes of its
 * text. */
bool resource_template_fits(struct str template, struct str uri, size_t *literal);

#endif

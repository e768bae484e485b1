/*
 * What the MCP servers behind the gate list besides tools, as one list for clients: prompts, resources and
 * resource templates. A client that is in the middle of its pages goes on with the list that it began with.
 *
 *   only a has prompt review          review               the server's own name
 *   a and b have review               a__review, b__review
 *   prefix = "always"                 a__review
 *   b has a__review                   (left out)           the name belongs to a
 *   a and b have file:///x            file:///x of a       the first in the configuration, with a warning
 */
#ifndef TOOLGATE_SERVER_SERVED_H
#define TOOLGATE_SERVER_SERVED_H

#include "policy/peer.h"
#include "upstream/upstream.h"

struct resource_links; /* NULL: none so far */
struct pins_review;
struct request;
struct served;
struct server;

#define SERVED_URI_MAX_BYTES  8192u
#define SERVED_NAME_MAX_BYTES 256u

/* Instructions: one entry for each server that has some; its name is that of the server. */
enum served_kind { SERVED_PROMPTS, SERVED_RESOURCES, SERVED_TEMPLATES, SERVED_INSTRUCTIONS, SERVED_KINDS };

struct served_item {
    const struct json *definition; /* as the server sent it */
    struct str name;               /* prompts: as published; else the URI, or the template of URIs */
    struct str own_name;           /* prompts: on the server */
    struct str upstream;
    bool renamed;
    bool held; /* by pins: for nobody */
};

/* The list of now; valid until the loop's next turn. */
const struct served *served_now(struct server *server);
struct served_item *const *served_items(const struct served *served, enum served_kind kind, size_t *count);
/* Of all of them; NULL: none are kept. */
const struct pins_review *served_pins(struct server *server);
/* By its published name, its URI or its template; or NULL. */
const struct served_item *served_find(const struct served *served, enum served_kind kind, struct str name);

/* A prompt or resource that a peer may not have does not exist for it. A template exists for those who may
 * read anything: which URI it gives, only a request shows. */
bool served_is_for(const struct config *config, const struct peer *peer, enum served_kind kind,
                   const struct served_item *item);
/* Whether the globs of `allow` and of the upstream's own `resources` fit every URI that a template can give:
 * one of each ends with a '*' that stands at the template's first expression. */
bool served_may_read_all(const struct config *config, const struct peer *peer,
                         const struct upstream_spec *spec, struct str template);
/* Both `allow` and the upstream's own `resources`. A URI with dot segments fits no glob. */
bool served_may_read(const struct config *config, const struct peer *peer, const struct upstream_spec *spec,
                     struct str uri);

/* Appends what the servers that this client sees want said to every model, each under the server's name and
 * quoted line by line, so that no server speaks as the gate or as another one. */
void served_write_instructions(struct request *r, struct buf *out);

/* ---- passing_methods.c ---- */

/* The resources that tools' results have named on one connection (resource_link, or an embedded resource): a
 * client reads them later, although no list has them. The newest are kept. */
#define RESOURCE_LINKS_MAX 1024u /* of one connection */

/* Takes the links of a result's content. `links` may point to NULL; it is made at the first one. */
void resource_links_keep(struct resource_links **links, const struct json *content, struct str upstream);

/* The upstream that has named it last; empty: none. Valid until the next resource_links_keep. */
struct str resource_links_find(const struct resource_links *links, struct str uri);

void resource_links_free(struct resource_links *links); /* NULL is fine */

/* Whether an RFC 6570 template can give this URI: its literal text in this order, with something in the place
 * of each expression; only "{+x}", "{/x*}" and the like stand for text with a '/'. `literal`: bytes of its
 * text. */
bool resource_template_fits(struct str template, struct str uri, size_t *literal);

#endif

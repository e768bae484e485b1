/*
 * What the MCP servers behind the gate list besides tools, as one list for
 * clients: prompts, resources and resource templates. A snapshot is immutable
 * and reference-counted: a client that is in the middle of its pages goes on
 * with the one that it began with.
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

struct arena;
struct buf;
struct resource_links; /* NULL: none so far */
struct served;

#define SERVED_MAX            10000u /* entries of one list, of all servers together */
#define SERVED_URI_MAX_BYTES  8192u
#define SERVED_NAME_MAX_BYTES 256u
#define SERVED_WARNINGS_MAX   20u      /* of one snapshot; further ones are counted */
#define SERVED_PAGE_MAX       1000u    /* entries of a page */
#define SERVED_PAGE_MAX_BYTES 1048576u /* a page ends after the entry that reaches this */

enum served_kind { SERVED_PROMPTS, SERVED_RESOURCES, SERVED_TEMPLATES, SERVED_KINDS };

struct served_item {
    const struct json *definition; /* as the server sent it */
    struct str name;               /* prompts: as published; else the URI, or the template of URIs */
    struct str own_name;           /* prompts: on the server */
    struct str upstream;
    bool renamed;
};

/* What upstreams call it. */
enum upstream_list served_upstream_list(enum served_kind kind);

/* Takes the lists that are known now. */
struct served *served_new(const struct config *config, struct upstreams *upstreams);
void served_free(struct served *served); /* NULL is fine */

size_t served_count(const struct served *served, enum served_kind kind);
const struct served_item *served_at(const struct served *served, enum served_kind kind, size_t i);
/* By its published name, its URI or its template; or NULL. */
const struct served_item *served_find(const struct served *served, enum served_kind kind, struct str name);
/* Equal for equal lists. */
uint64_t served_hash(const struct served *served, enum served_kind kind);

/* What was left out or hidden, in sentences for the operator; then how many are not listed. */
size_t served_warnings(const struct served *served, const struct str **list, size_t *more);

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

/* The member of the reply: "prompts", "resources", "resourceTemplates". */
const char *served_member(enum served_kind kind);

/* A page as a client reads it: what the client may have, under its published names, without hidden
 * characters, and with what would make an SDK refuse the whole list repaired. Appends an array with the
 * entries from `from` on, without what came after `protocol` (mcp_version.h). Returns where the next page
 * begins; 0: this was the last page. */
size_t served_write_page(struct arena *arena, const struct served *served, const struct config *config,
                         const struct peer *peer, enum served_kind kind, size_t from, struct str protocol,
                         struct buf *out);

/*
 * Which server a URI is read from. Only one is asked, so that no server hears of the URIs of another:
 *
 *   1. the one that lists it
 *   2. the one with the resource template that fits it; the most exact, if several do
 *   3. the one whose tool has named it on this connection
 *   4. the only one that has resources, if there is no other
 */

/* The resources that tools' results have named on one connection (resource_link, or an embedded resource): a
 * client reads them later, although no list has them. The newest are kept. */
#define RESOURCE_LINKS_MAX 1024u /* of one connection */

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

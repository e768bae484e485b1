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

#endif

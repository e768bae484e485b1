/* A page of a list as a client reads it: what the client may have, under its published names, without hidden
 * characters, and with what would make an SDK refuse the whole list repaired. */
#ifndef TOOLGATE_PASSING_SERVED_PAGE_H
#define TOOLGATE_PASSING_SERVED_PAGE_H

#include "passing/served.h"

struct arena;

#define SERVED_PAGE_MAX       1000u    /* entries */
#define SERVED_PAGE_MAX_BYTES 1048576u /* a page ends after the entry that reaches this */

/* The member of the reply: "prompts", "resources", "resourceTemplates". */
const char *served_member(enum served_kind kind);

/* Appends an array with the entries from `from` on, without what came after `protocol` (mcp_version.h).
 * Returns where the next page begins; 0: there is none. */
size_t served_write_page(struct arena *arena, const struct served *served, const struct config *config,
                         const struct peer *peer, enum served_kind kind, size_t from, struct str protocol,
                         struct buf *out);

#endif

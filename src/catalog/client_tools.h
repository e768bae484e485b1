/*
 * Tools that one connection registered for itself (toolgate/register): for all of its sessions, or for one.
 * Only that connection's check, report and tools requests see them, and a session's only those of that
 * session. After a reload they are compiled against the new generation's policies when they are next used.
 */
#ifndef TOOLGATE_CATALOG_CLIENT_TOOLS_H
#define TOOLGATE_CATALOG_CLIENT_TOOLS_H

#include "base/hash.h"
#include "catalog/generation.h"

#define CLIENT_TOOLS_MAX       512u
#define CLIENT_TOOLS_MAX_BYTES 12582912u /* of all together, compiled */
#define CLIENT_TOOLS_SESSIONS  256u      /* of the last sessions that have their own */

struct client_tools;
struct client_tools *client_tools_new(const struct peer *peer); /* borrowed for its lifetime */
void client_tools_free(struct client_tools *tools);             /* may be NULL */

/* What a session of the connection sees: its own tools and, behind them, the connection's. `tools` is the
 * connection's, which is also all that a session without its own sees, unless `open` gives it a set; NULL:
 * there is no room for one. */
struct client_tools *client_tools_of(struct client_tools *tools, struct hash128 session, bool open);

/* Copies `definition`; a tool of the same name is replaced. ERR_NOT_FOUND: the configuration grants the peer
 * no tool of that name. ERR_EXISTS: toolgate runs a tool of that name. */
enum err client_tools_register(struct client_tools *tools, struct generation *generation,
                               const struct json *definition, const struct tool **out, struct why *why);

/* NULL: none, or the present generation forbids it. The tool lives until client_tools_free_unused. `tools`
 * may be NULL, here and in client_tools_count. */
const struct tool *client_tools_find(struct client_tools *tools, struct generation *generation,
                                     struct str name);

/* Counts the tools that were replaced, from 1. A request that may use tools remembers the number. */
uint64_t client_tools_now(const struct client_tools *tools);

/* Frees the tools that had been replaced by the number `since`, the smallest of all requests in flight;
 * UINT64_MAX: none is, and the sets of all but the last sessions are freed, too. */
void client_tools_free_unused(struct client_tools *tools, uint64_t since);

size_t client_tools_bytes(const struct client_tools *tools); /* of all sets of the connection; NULL: 0 */
/* The count may include a name twice; name_at is then empty for the second. */
size_t client_tools_count(const struct client_tools *tools);
size_t client_tools_index(const struct client_tools *tools,
                          struct str name); /* the count: none of that name */
/* Another number after each change, and for the tools of each connection. */
uint64_t client_tools_revision(const struct client_tools *tools);
struct str client_tools_name_at(const struct client_tools *tools, size_t index);

#endif

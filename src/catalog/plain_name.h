/* The name of a tool as every model provider accepts it: 1 to 64 letters, digits, '_' and '-'. MCP allows
 * more. */
#ifndef TOOLGATE_CATALOG_PLAIN_NAME_H
#define TOOLGATE_CATALOG_PLAIN_NAME_H

#include "base/str.h"

struct arena;

#define PLAIN_NAME_MAX_BYTES 64u

bool plain_name_fits(struct str name);

/* A copy in which '_' replaces each character that does not fit as a name by itself. */
struct str name_replaced(struct arena *arena, struct str name, bool (*fits)(struct str name));

/* '_' replaces other characters, and a hash of the whole the end of a long name. The name itself if it fits.
 */
struct str plain_name(struct arena *arena, struct str name);

/* With the hash in any case: for a name that is taken. */
struct str plain_name_apart(struct arena *arena, struct str name);

/* The name, cut so that it and a hash of `hashed` have at most `max` bytes. */
struct str plain_name_with_hash(struct arena *arena, struct str name, struct str hashed, size_t max);

#endif

/* URI references resolved against a base (RFC 3986, section 5), for $id and $ref. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_URI_H
#define TOOLGATE_SCHEMA_URI_H

#include "base/str.h"

struct arena;

/* The absolute form of `reference`; both may be anything, an empty base included. */
struct str uri_resolve(struct arena *arena, struct str base, struct str reference);

/* Cuts "#fragment" off; *fragment is what follows the '#', at NULL where there is none. */
struct str uri_split(struct str uri, struct str *fragment);

/* %XX decoded. */
struct str uri_decode(struct arena *arena, struct str s);

#endif

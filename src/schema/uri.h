/*
 * URIs by RFC 3986, ASCII only: the grammar for `format`, and resolution for
 * $id and $ref. liburiparser would allocate each path segment of a string that
 * a client sends, and resolves only against an absolute base. Internal to this
 * room.
 */
#ifndef TOOLGATE_SCHEMA_URI_H
#define TOOLGATE_SCHEMA_URI_H

#include "base/str.h"

struct arena;

bool uri_is_absolute(struct str s); /* with a scheme */
bool uri_is_reference(struct str s);

/* The target of `reference` seen from `base`. Neither needs to be valid, and either may be empty or relative:
 * real schemas have such identifiers. */
struct str uri_resolve(struct arena *arena, struct str base, struct str reference);

/* The URI without "#fragment"; *fragment: what follows the '#', at NULL if there is none. */
struct str uri_split(struct str uri, struct str *fragment);

/* %XX decoded. */
struct str uri_decode(struct arena *arena, struct str s);

#endif

/*
 * The canonical form: one JSON text for all spellings of a value. Keys are
 * sorted by bytes, numbers written by value (1, 1.0 and 1e0 are equal), no
 * spaces. Ledger keys hash it.
 */
#ifndef TOOLGATE_JSON_CANONICAL_H
#define TOOLGATE_JSON_CANONICAL_H

#include "base/buf.h"
#include "base/hash.h"
#include "json/value.h"

/* A whole number of at most 21 digits is written as digits, any other as d[.ddd]e[-]n: "120", "1.1e0",
 * "1e400"; a string as json_write_string does. The form must not change: daemons of several releases share
 * one ledger. */
void json_canonical(struct buf *out, const struct json *value);

/* hash_stable of the canonical text; members of the top-level object named in `without` are left out. `value`
 * NULL hashes as {}. */
struct hash128 json_fingerprint(struct arena *scratch, const struct json *value, const struct str *without,
                                size_t without_count);

#endif

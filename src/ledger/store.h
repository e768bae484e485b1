/*
 * What the local engine keeps: each session's four keys, as bytes outside of
 * any Lua heap, so that a hundred thousand sessions cost the collector
 * nothing. Knows times to live and a cap on memory, not what the bytes mean.
 */
#ifndef TOOLGATE_LEDGER_STORE_H
#define TOOLGATE_LEDGER_STORE_H

#include "base/str.h"

#include <stdint.h>

struct store;

/* Over `memory_bytes` the sessions untouched for longest are forgotten, never the one touched last. */
struct store *store_new(size_t memory_bytes);
void store_free(struct store *store);

/* The time that all that follows happens at. Also lets go of what is over, or over the cap: a few at a time.
 */
void store_at(struct store *store, int64_t now_ms);

/* Keys as script.h spells them. What is returned is valid until the key is next written. */
bool store_get(struct store *store, struct str key, struct str *value);
void store_set(struct store *store, struct str key, struct str value); /* keeps the time to live it has */
size_t store_append(struct store *store, struct str key, struct str value); /* returns the new length */
bool store_expire(struct store *store, struct str key, int64_t ms);         /* false: no such key */
bool store_del(struct store *store, struct str key);

/* A hash: fields in the order they came. */
size_t store_fields(struct store *store, struct str key);
bool store_field(struct store *store, struct str key, size_t at, struct str *name, struct str *value);
bool store_hget(struct store *store, struct str key, struct str name, struct str *value);
bool store_hset(struct store *store, struct str key, struct str name, struct str value); /* true: it is new */

void store_usage(const struct store *store, size_t *sessions, size_t *bytes);

#endif

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

#define STORE_KEYS       4u
#define STORE_STEM_BYTES 39u

/* Over `memory_bytes` the sessions untouched for longest are forgotten, never the one touched last. */
struct store *store_new(size_t memory_bytes);
void store_free(struct store *store);

/* All that follows happens to this session, which is made when something is first kept for it, and at this
 * time. `stem` is what the session's keys have in common (STORE_STEM_BYTES). Also lets go of what is over, a
 * few at a time, and of what is over the cap. */
void store_enter(struct store *store, struct str stem, int64_t now_ms);

/* `key` is one of 0 … STORE_KEYS - 1. What is returned is valid until that key is next written. */
bool store_get(struct store *store, unsigned key, struct str *value);
void store_set(struct store *store, unsigned key, struct str value); /* keeps the time to live it has */
/* Bytes that were not there before `from` are zero. Returns the new length. */
size_t store_setrange(struct store *store, unsigned key, size_t from, struct str value);
bool store_expire(struct store *store, unsigned key, int64_t ms); /* false: no such key */
bool store_del(struct store *store, unsigned key);

/* A hash: fields in the order they came. */
size_t store_fields(struct store *store, unsigned key);
bool store_field(struct store *store, unsigned key, size_t at, struct str *name, struct str *value);
bool store_hget(struct store *store, unsigned key, struct str name, struct str *value);
bool store_hset(struct store *store, unsigned key, struct str name, struct str value); /* true: it is new */

struct store_usage {
    size_t sessions, bytes;
    uint64_t forgotten; /* sessions whose time was not over, for want of memory */
};
void store_usage(const struct store *store, struct store_usage *out);

#endif

/*
 * Sessions in this daemon's memory: a hash table with times to live and a bound in bytes. Where it is full,
 * the user whose sessions take most loses the one untouched for longest: a flood of sessions pushes out its
 * own. It answers inside each call, which returns true; `ended` is not called. Used by one thread.
 */
#ifndef TOOLGATE_LEDGER_STORE_MEMORY_H
#define TOOLGATE_LEDGER_STORE_MEMORY_H

#include "ledger/session_store.h"

struct store_memory_options {
    size_t memory_bytes;     /* for sessions; an eighth of it for buckets of rates. 0: LEDGER_MEMORY_BYTES */
    int64_t (*now_ms)(void); /* NULL: the wall clock */
    /* A session's time is over, or (`evicted`) it had to go since the memory is full. Called
     * inside load and commit, before it is freed; must not call the store. NULL: no caller asks. */
    void (*gone)(void *owner, struct hash128 id, struct str core, bool evicted);
    void *owner;
};

/* Freed by kind->free. Running out of memory ends the process, as in arena.h. */
struct session_store *store_memory_new(const struct store_memory_options *options);

struct store_memory_usage {
    size_t sessions;
    size_t bytes;          /* as malloc counts them: sessions, buckets of rates, tables */
    uint64_t forgotten;    /* sessions whose time was not over, for want of memory */
    uint32_t largest_user; /* whose sessions take most */
    size_t largest_bytes;
};
void store_memory_usage(const struct session_store *store, struct store_memory_usage *out);

#endif

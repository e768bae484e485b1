/*
 * Two hashes. `hash_stable` is the same on every worker and in every release:
 * keys of the shared ledger. `hash_seeded` changes with each process: keys of
 * tables that a peer could otherwise fill with chosen collisions.
 */
#ifndef TOOLGATE_BASE_HASH_H
#define TOOLGATE_BASE_HASH_H

#include "base/str.h"

#include <stdint.h>

struct hash128 {
    uint64_t high, low;
};

struct hash128 hash_stable(struct str bytes);
uint64_t hash_seeded(struct str bytes);

/* Unpredictable bits from the kernel: call ids, seeds. Aborts where the kernel has none. */
uint64_t hash_random(void);

#endif

/*
 * `hash_stable` is the same in every process and release: for keys of the shared ledger. `hash_seeded`
 * differs in each process: for hash tables that a peer could otherwise fill with chosen collisions. `siphash`
 * is for what a client carries and must not be able to make; `sha256` withstands somebody who chooses the
 * text.
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

/* hash_stable of bytes that come in parts. */
struct hash_stream {
    _Alignas(64) unsigned char state[576];
};
void hash_stream_begin(struct hash_stream *stream);
void hash_stream_add(struct hash_stream *stream, struct str bytes);
struct hash128 hash_stream_end(const struct hash_stream *stream);

/* Adds `more` to a running stable hash; the order of additions matters. */
void hash_add(uint64_t *hash, uint64_t more);

/* Random bits from the kernel, for call ids and seeds. Aborts if the kernel has none. */
uint64_t hash_random(void);

/* The next of a generator (splitmix64): well distributed, and none repeats within 2^64. */
static inline uint64_t hash_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Which of HASH_OWNERS lists: of what belongs to a call, of which thousands may be in flight. */
#define HASH_OWNERS 256u
static inline size_t hash_owner(const void *owner)
{
    return (size_t)((uintptr_t)owner * 0x9E3779B97F4A7C15u >> 56) % HASH_OWNERS;
}

/* SipHash-2-4, a short MAC. */
#define SIPHASH_KEY_BYTES 16u
uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], struct str bytes);

/* SHA-256 (FIPS 180-4). */
#define SHA256_BYTES 32u
void sha256(struct str text, uint8_t out[SHA256_BYTES]);

#endif

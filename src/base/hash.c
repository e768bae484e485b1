/* XXH3: unseeded for keys that outlive the process, seeded for all others. */
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

struct hash128 hash_stable(struct str bytes)
{
    XXH128_hash_t h = XXH3_128bits(bytes.len ? bytes.at : "", bytes.len);
    return (struct hash128){h.high64, h.low64};
}

_Static_assert(sizeof(struct hash_stream) == sizeof(XXH3_state_t), "hash_stream has space for the state");

void hash_stream_begin(struct hash_stream *stream)
{
    XXH3_128bits_reset((XXH3_state_t *)stream);
}

void hash_stream_add(struct hash_stream *stream, struct str bytes)
{
    XXH3_128bits_update((XXH3_state_t *)stream, bytes.at, bytes.len);
}

struct hash128 hash_stream_end(const struct hash_stream *stream)
{
    XXH128_hash_t h = XXH3_128bits_digest((const XXH3_state_t *)stream);
    return (struct hash128){h.high64, h.low64};
}

void hash_add(uint64_t *hash, uint64_t more)
{
    uint64_t both[2] = {*hash, more};
    *hash = hash_stable((struct str){(const char *)both, sizeof(both)}).low;
}

uint64_t hash_random(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits)) {
        perror("toolgate: no random bytes from the kernel");
        abort();
    }
    return bits;
}

uint64_t hash_seeded(struct str bytes)
{
    static uint64_t seed;
    if (!seed)
        seed = hash_random() | 1;
    return XXH3_64bits_withSeed(bytes.len ? bytes.at : "", bytes.len, seed);
}

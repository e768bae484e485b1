/* XXH3, unseeded for keys that outlive the process and seeded for all others; SipHash and SHA-256. */
#include "base/hash.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* SipHash, as Aumasson and Bernstein describe it (2012): two rounds for each 8 bytes, four at the end. */

static uint64_t word_at(const uint8_t *at)
{
    uint64_t n;
    memcpy(&n, at, sizeof(n));
    return le64toh(n);
}

static uint64_t rotate64(uint64_t n, unsigned bits)
{
    return n << bits | n >> (64 - bits);
}

struct state {
    uint64_t a, b, c, d;
};

static inline void mix(struct state *s)
{
    s->a += s->b, s->b = rotate64(s->b, 13) ^ s->a, s->a = rotate64(s->a, 32);
    s->c += s->d, s->d = rotate64(s->d, 16) ^ s->c;
    s->a += s->d, s->d = rotate64(s->d, 21) ^ s->a;
    s->c += s->b, s->b = rotate64(s->b, 17) ^ s->c, s->c = rotate64(s->c, 32);
}

static inline void take(struct state *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    mix(s);
    s->a ^= word;
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], struct str bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.at;
    uint64_t k0 = word_at(key), k1 = word_at(key + 8);
    struct state s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                      k1 ^ 0x7465646279746573u};
    size_t left = bytes.len;
    for (; left >= 8; at += 8, left -= 8)
        take(&s, word_at(at));
    uint64_t rest = (uint64_t)bytes.len << 56;
    for (size_t i = 0; i < left; i++)
        rest |= (uint64_t)at[i] << 8 * i;
    take(&s, rest);
    s.c ^= 0xff;
    for (int i = 0; i < 4; i++)
        mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* SHA-256, one block after the other, straight from the standard: definitions of tools are small and change
 * rarely. */

#define BLOCK_BYTES 64u

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate32(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void expand(const uint8_t *block, uint32_t w[64])
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t low = rotate32(w[i - 15], 7) ^ rotate32(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t high = rotate32(w[i - 2], 17) ^ rotate32(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + low + w[i - 7] + high;
    }
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], s[8];
    expand(block, w);
    memcpy(s, state, sizeof(s));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t one = s[7] + (rotate32(s[4], 6) ^ rotate32(s[4], 11) ^ rotate32(s[4], 25)) + choice +
                       round_constants[i] + w[i];
        uint32_t two = (rotate32(s[0], 2) ^ rotate32(s[0], 13) ^ rotate32(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += one;
        s[0] = one + two;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256(struct str text, uint8_t out[SHA256_BYTES])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t last[2 * BLOCK_BYTES] = {0};
    size_t whole = text.len / BLOCK_BYTES, rest = text.len % BLOCK_BYTES;
    size_t blocks = rest + 9 > BLOCK_BYTES ? 2 : 1; /* the end has 0x80 and eight bytes of length */
    for (size_t i = 0; i < whole; i++)
        add_block(state, (const uint8_t *)text.at + i * BLOCK_BYTES);
    if (rest)
        memcpy(last, text.at + whole * BLOCK_BYTES, rest);
    last[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[blocks * BLOCK_BYTES - 1 - i] = (uint8_t)((uint64_t)text.len * 8 >> 8 * i);
    for (size_t i = 0; i < blocks; i++)
        add_block(state, last + i * BLOCK_BYTES);
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

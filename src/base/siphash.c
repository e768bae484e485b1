/* As Aumasson and Bernstein describe it (2012): two rounds for each 8 bytes, four at the end. */
#include "base/siphash.h"

#include <endian.h>

static uint64_t word_at(const uint8_t *at)
{
    uint64_t n;
    memcpy(&n, at, sizeof(n));
    return le64toh(n);
}

/* The fewer than 8 bytes at the end. */
static uint64_t rest_at(const uint8_t *at, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        n |= (uint64_t)at[i] << 8 * i;
    return n;
}

static uint64_t rotate(uint64_t n, unsigned bits)
{
    return n << bits | n >> (64 - bits);
}

struct state {
    uint64_t a, b, c, d;
};

static inline void mix(struct state *s)
{
    s->a += s->b, s->b = rotate(s->b, 13) ^ s->a, s->a = rotate(s->a, 32);
    s->c += s->d, s->d = rotate(s->d, 16) ^ s->c;
    s->a += s->d, s->d = rotate(s->d, 21) ^ s->a;
    s->c += s->b, s->b = rotate(s->b, 17) ^ s->c, s->c = rotate(s->c, 32);
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
    take(&s, rest_at(at, left) | (uint64_t)bytes.len << 56);
    s.c ^= 0xff;
    for (int i = 0; i < 4; i++)
        mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

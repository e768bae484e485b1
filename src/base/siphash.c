/* As Aumasson and Bernstein describe it (2012): two rounds for each 8 bytes, four at the end. */
#include "base/siphash.h"

static uint64_t little_endian(const uint8_t *at, size_t len)
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

static void rounds(uint64_t v[4], int count)
{
    while (count-- > 0) {
        v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
        v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
    }
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], struct str bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.at;
    uint64_t k0 = little_endian(key, 8), k1 = little_endian(key + 8, 8), word;
    uint64_t v[] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                    k1 ^ 0x7465646279746573u};
    size_t left = bytes.len;
    for (; left >= 8; at += 8, left -= 8) {
        word = little_endian(at, 8);
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
    }
    word = little_endian(at, left) | (uint64_t)bytes.len << 56;
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

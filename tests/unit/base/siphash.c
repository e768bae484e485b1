/* The test vectors of the reference implementation: key 00 01 … 0f, messages 00 01 … of each length. */
#include "unit.h"
#include "base/hash.h"

TEST(it_gives_the_official_vectors)
{
    static const struct {
        size_t len;
        uint64_t mac;
    } vectors[] = {
        {0, 0x726fdb47dd0e0e31u},  {1, 0x74f839c593dc67fdu},  {2, 0x0d6c8009d9a94f5au},
        {3, 0x85676696d7fb7e2du},  {4, 0xcf2794e0277187b7u},  {5, 0x18765564cd99a68du},
        {6, 0xcbc9466e58fee3ceu},  {7, 0xab0200f58b01d137u},  {8, 0x93f5f5799a932462u},
        {9, 0x9e0082df0ba9e4b0u},  {10, 0x7a5dbbc594ddb9f3u}, {11, 0xf4b32f46226bada7u},
        {12, 0x751e8fbc860ee5fbu}, {13, 0x14ea5627c0843d90u}, {14, 0xf723ca908e7af2eeu},
        {15, 0xa129ca6149be45e5u}, {63, 0x958a324ceb064572u},
    };
    uint8_t key[SIPHASH_KEY_BYTES], message[64];
    for (uint8_t i = 0; i < sizeof(message); i++)
        message[i] = i;
    for (uint8_t i = 0; i < sizeof(key); i++)
        key[i] = i;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        assert_true(siphash(key, (struct str){(const char *)message, vectors[i].len}) == vectors[i].mac);
}

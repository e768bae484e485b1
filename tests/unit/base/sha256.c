/* The digests of FIPS 180-4's examples, and of lengths around the ends of a block. */
#include "unit.h"
#include "base/hash.h"

static void is_digest(struct str text, const char *hex)
{
    uint8_t digest[SHA256_BYTES];
    char got[2 * SHA256_BYTES + 1];
    sha256(text, digest);
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        snprintf(got + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(got, hex);
}

TEST(has_the_digests_of_the_standard)
{
    is_digest(STR_LIT(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    is_digest(STR_LIT("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    is_digest(STR_LIT("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(pads_every_length)
{
    static const struct {
        size_t len;
        const char *hex;
    } rows[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
        {200, "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5"},
    };
    char text[200];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_digest((struct str){text, rows[i].len}, rows[i].hex);
}

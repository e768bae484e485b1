/* See mirror.h. */
#include "upstream/mirror.h"

#include "base/arena.h"

#define BASE64_BEGINS "=?base64?"
#define BASE64_ENDS   "?="

static bool is_plain(struct str text)
{
    bool plain = text.len > 0 && text.at[0] != ' ' && text.at[0] != '\t' && text.at[text.len - 1] != ' ' &&
                 text.at[text.len - 1] != '\t';
    for (size_t i = 0; plain && i < text.len; i++)
        plain = (text.at[i] >= ' ' && text.at[i] < 0x7F) || text.at[i] == '\t';
    bool looks_encoded = str_starts(text, BASE64_BEGINS) && text.len >= sizeof(BASE64_BEGINS) + 1 &&
                         memcmp(text.at + text.len - 2, BASE64_ENDS, 2) == 0;
    return plain && !looks_encoded;
}

static struct str base64(struct arena *arena, struct str text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = arena_alloc(arena, (text.len + 2) / 3 * 4), *to = out;
    for (size_t i = 0; i < text.len; i += 3) {
        size_t left = text.len - i;
        uint32_t bits = (uint32_t)(unsigned char)text.at[i] << 16;
        bits |= left > 1 ? (uint32_t)(unsigned char)text.at[i + 1] << 8 : 0;
        bits |= left > 2 ? (uint32_t)(unsigned char)text.at[i + 2] : 0;
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[bits & 63] : '=';
    }
    return (struct str){out, (size_t)(to - out)};
}

struct str mirror_encode(struct arena *arena, struct str text)
{
    if (is_plain(text))
        return text;
    return ARENA_JOIN(arena, STR_LIT(BASE64_BEGINS), base64(arena, text), STR_LIT(BASE64_ENDS));
}

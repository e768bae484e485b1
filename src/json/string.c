/* Strict scanning of UTF-8 and escapes, 16 bytes at a time. */
#include "json/string.h"

/* A vector that gcc and clang support on every machine. */
typedef signed char bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

/* The index in memory of the first non-zero byte. */
static inline unsigned first_byte(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (unsigned)__builtin_ctzll(word) / 8;
#else
    return (unsigned)__builtin_clzll(word) / 8;
#endif
}

/* Non-zero for control characters, non-ASCII, backslashes and, if `quotes`, quotes. */
static inline bytes16 specials_in(bytes16 b, bool quotes)
{
    bytes16 found = (b < 0x20) | (b == '\\'); /* signed: non-ASCII is below zero */
    return quotes ? found | (b == '"') : found;
}

static inline bytes16 specials(const char *p)
{
    bytes16 b;
    memcpy(&b, p, sizeof(b));
    return specials_in(b, false);
}

/* 16: none */
static inline unsigned first_of(bytes16 found)
{
    uint64_t halves[2];
    memcpy(halves, &found, sizeof(halves));
    if (!(halves[0] | halves[1]))
        return 16;
    return halves[0] ? first_byte(halves[0]) : 8 + first_byte(halves[1]);
}

/* The 4 to 15 bytes at p, some of them twice: most strings are that short, and the loop over single bytes
 * costs six times as much. */
static inline bytes16 short_bytes(const char *p, size_t len)
{
    uint64_t first, last;
    uint32_t first4, last4;
    if (len >= 8) {
        memcpy(&first, p, 8);
        memcpy(&last, p + len - 8, 8);
    } else {
        memcpy(&first4, p, 4);
        memcpy(&last4, p + len - 4, 4);
        first = last = first4 | (uint64_t)last4 << 32;
    }
    return (bytes16)(words2){first, last};
}

/* The first byte that is a control character, a backslash or no ASCII. */
static inline const char *skip(const char *p, const char *end)
{
    unsigned at = 16;
    while (end - p >= 32 && first_of(specials(p) | specials(p + 16)) == 16)
        p += 32;
    while (end - p >= 16 && at == 16)
        p += at = first_of(specials(p));
    if (at == 16 && end - p >= 4 && first_of(specials_in(short_bytes(p, (size_t)(end - p)), false)) == 16)
        return end;
    while (at == 16 && p < end && (signed char)*p >= 0x20 && *p != '\\')
        p++;
    return p;
}

/* ---- encoding ---- */

/* Copies 16 bytes, and returns how many of them need no escape. */
static inline unsigned copy_plain16(char *out, const char *p)
{
    bytes16 b;
    memcpy(&b, p, sizeof(b));
    memcpy(out, &b, sizeof(b));
    return first_of(specials_in(b, true));
}

/* 4 to 15 bytes. */
static inline void copy_short(char *out, const char *p, size_t len)
{
    if (len >= 8) {
        memcpy(out, p, 8);
        memcpy(out + len - 8, p + len - 8, 8);
    } else {
        memcpy(out, p, 4);
        memcpy(out + len - 4, p + len - 4, 4);
    }
}

/* The same as copy_plain16 for fewer bytes. */
static inline unsigned copy_plain(char *out, const char *p, unsigned len)
{
    unsigned at = 0;
    if (len >= 4 && first_of(specials_in(short_bytes(p, len), true)) == 16) {
        copy_short(out, p, len);
        return len;
    }
    for (; at < len && (signed char)p[at] >= 0x20 && p[at] != '\\' && p[at] != '"'; at++)
        out[at] = p[at];
    return at;
}

/* Writes one byte that needs an escape, or one UTF-8 sequence; *p: what follows it. */
static inline char *encode_special(char *out, const char **p, const char *end)
{
    static const char hex[] = "0123456789abcdef";
    static const char short_names[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    const char *from = *p;
    unsigned char c = (unsigned char)*from;
    size_t len = c < 0x80 ? 1 : str_utf8_length(from, end);
    *p = from + (len ? len : 1);
    if (c < 0x20 && !short_names[c]) {
        memcpy(out, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
        return out + 6;
    }
    if (c < 0x80) {
        out[0] = '\\';
        out[1] = c < 0x20 ? short_names[c] : (char)c;
        return out + 2;
    }
    if (!len)
        from = REPLACEMENT_CHARACTER, len = sizeof(REPLACEMENT_CHARACTER) - 1;
    for (; len; len--)
        *out++ = *from++;
    return out;
}

size_t json_string_encode(char *out, const char **p, const char *stop, const char *end)
{
    const char *from = *p;
    char *to = out;
    while (from < stop) {
        bool is_long = stop - from >= 16;
        unsigned len = is_long ? 16 : (unsigned)(stop - from);
        unsigned plain = is_long ? copy_plain16(to, from) : copy_plain(to, from, len);
        from += plain;
        to += plain;
        if (plain < len)
            to = encode_special(to, &from, end);
    }
    *p = from;
    return (size_t)(to - out);
}

bool json_string_copy_short(char *out, struct str s)
{
    bytes16 first, last;
    if (s.len < 4)
        return copy_plain(out, s.at, (unsigned)s.len) == s.len;
    if (s.len < 16) {
        copy_short(out, s.at, s.len);
        return first_of(specials_in(short_bytes(s.at, s.len), true)) == 16;
    }
    if (s.len > 32)
        return false;
    memcpy(&first, s.at, 16);
    memcpy(&last, s.at + s.len - 16, 16);
    memcpy(out, &first, 16);
    memcpy(out + s.len - 16, &last, 16);
    return first_of(specials_in(first, true) | specials_in(last, true)) == 16;
}

/* ---- scanning ---- */

/* The code unit of the \uXXXX at p, or -1 if none exists. */
static int32_t code_unit(const char *p, const char *end)
{
    int32_t unit = 0;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = ascii_hex_value(p[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_low_surrogate(int32_t unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* Length of the escape at p, whose grammar yajl checks; *lone: a surrogate without its pair. */
static size_t escape_length(const char *p, const char *end, bool *lone)
{
    int32_t unit = code_unit(p, end);
    *lone = false;
    if (unit < 0)
        return end - p < 2 ? 1 : 2;
    bool high = unit >= 0xD800 && unit <= 0xDBFF;
    if (high && is_low_surrogate(code_unit(p + 6, end)))
        return 12;
    *lone = high || is_low_surrogate(unit);
    return 6;
}

/* The number of bytes to skip at a special byte, or 0 with *error set. */
static size_t inspect_special(const char *p, const char *end, enum json_string_error *error, bool *lone)
{
    if (*p == '\\') {
        size_t len = escape_length(p, end, lone);
        return len == 2 && (unsigned char)p[1] >= 0x80
                   ? 1
                   : len; /* so that a broken escape hides no UTF-8 sequence */
    }
    if ((unsigned char)*p < 0x20) {
        *error = JSON_STRING_BAD_SPACE;
        return *p != '\v' && *p != '\f';
    }
    *error = JSON_STRING_BAD_UTF8;
    return str_utf8_length(p, end);
}

/* A valid JSON text has backslashes only in strings, so escapes are found without tracking strings. */
enum json_string_error json_string_check(struct str text, size_t *offset)
{
    const char *end = text.at + text.len, *p = skip(text.at, end);
    enum json_string_error found = JSON_STRING_OK, error = JSON_STRING_OK;
    for (; p < end; p = skip(p, end)) {
        /* \n, \" and the like: a fast path with the same result */
        bool lone = false, plain = *p == '\\' && end - p >= 2 && p[1] != 'u' && (signed char)p[1] >= 0;
        size_t len = plain ? 2 : inspect_special(p, end, &error, &lone);
        if (!len || (lone && found == JSON_STRING_OK))
            *offset = (size_t)(p - text.at);
        if (!len)
            return error;
        if (lone)
            found = JSON_STRING_LONE_SURROGATE;
        p += len;
    }
    return found;
}

static size_t put_utf8(char *out, uint32_t point)
{
    static const uint32_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0}; /* by the length */
    size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)(leads[len] | point);
    return len;
}

size_t json_string_decode(char *out, struct str literal, bool *lone)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *p = literal.at, *end = p + literal.len;
    char *o = out;
    *lone = false;
    while (p < end) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        size_t run = (size_t)((escape ? escape : end) - p);
        memcpy(o, p, run);
        o += run;
        p += run;
        if (p == end)
            break;
        bool this_lone;
        size_t len = escape_length(p, end, &this_lone);
        if (len == 2) {
            const char *simple = strchr(from, p[1]);
            *o++ = simple && *simple ? to[simple - from] : p[1];
        } else {
            int32_t unit = code_unit(p, end);
            uint32_t low = len == 12 ? (uint32_t)(code_unit(p + 6, end) - 0xDC00) : 0;
            o += put_utf8(o, this_lone   ? 0xFFFD
                             : len == 12 ? 0x10000u + ((uint32_t)(unit - 0xD800) << 10) + low
                                         : (uint32_t)unit);
        }
        *lone |= this_lone;
        p += len;
    }
    return (size_t)(o - out);
}

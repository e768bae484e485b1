/* UTF-8 and escapes, strictly. */
#include "json/text.h"

/*
 * Sixteen bytes at a time in the vectors that gcc and clang know on every machine: is any of them a control
 * character, no ASCII, a backslash or (where quotes count) a quote?
 */
typedef signed char bytes16 __attribute__((vector_size(16)));

static inline bool some_special(const char *p, bool quotes)
{
    bytes16 b;
    memcpy(&b, p, sizeof(b));
    bytes16 found = (b < 0x20) | (b == '\\'); /* signed: what is no ASCII is below zero */
    if (quotes)
        found |= b == '"';
    uint64_t halves[2];
    memcpy(halves, &found, sizeof(halves));
    return (halves[0] | halves[1]) != 0;
}

static inline const char *skip(const char *p, const char *end, bool quotes)
{
    while (end - p >= 16 && !some_special(p, quotes))
        p += 16;
    while (p < end && (signed char)*p >= 0x20 && *p != '\\' && !(quotes && *p == '"'))
        p++;
    return p;
}

const char *text_skip_ascii(const char *p, const char *end)
{
    return skip(p, end, false);
}

const char *text_skip_plain(const char *p, const char *end)
{
    return skip(p, end, true);
}

/* Unicode's table of well-formed sequences: only the second byte's range depends on the first. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int32_t text_code_unit(const char *p, const char *end)
{
    int32_t unit = 0;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* Length of the escape at p, without judging its grammar (yajl does); *lone: a surrogate without its partner.
 */
static size_t escape_length(const char *p, const char *end, bool *lone)
{
    int32_t unit = text_code_unit(p, end);
    *lone = false;
    if (unit < 0)
        return end - p < 2 ? 1 : 2;
    if (is_high_surrogate(unit) && is_low_surrogate(text_code_unit(p + 6, end)))
        return 12;
    *lone = is_high_surrogate(unit) || is_low_surrogate(unit);
    return 6;
}

/* Bytes to go on by at one that is no plain ASCII; 0: this is the fault. */
static size_t inspect_special(const char *p, const char *end, enum text_fault *fault, bool *lone)
{
    if (*p == '\\') {
        size_t len = escape_length(p, end, lone);
        return len == 2 && (unsigned char)p[1] >= 0x80 ? 1
                                                       : len; /* hide no sequence behind a broken escape */
    }
    if ((unsigned char)*p < 0x20) {
        *fault = TEXT_BAD_SPACE;
        return *p != '\v' && *p != '\f';
    }
    *fault = TEXT_BAD_UTF8;
    return utf8_length(p, end);
}

/* In a JSON text a backslash stands in strings only, so escapes can be told without knowing where strings
 * are. */
enum text_fault text_inspect(struct str text, size_t *offset)
{
    const char *end = text.at + text.len, *p = text_skip_ascii(text.at, end);
    enum text_fault found = TEXT_FINE, fault = TEXT_FINE;
    for (; p < end; p = text_skip_ascii(p, end)) {
        bool lone = false;
        size_t len = inspect_special(p, end, &fault, &lone);
        if (!len || (lone && found == TEXT_FINE))
            *offset = (size_t)(p - text.at);
        if (!len)
            return fault;
        if (lone)
            found = TEXT_LONE_SURROGATE;
        p += len;
    }
    return found;
}

static size_t put_utf8(char *out, uint32_t point)
{
    unsigned char *p = (unsigned char *)out;
    if (point < 0x80) {
        p[0] = (unsigned char)point;
        return 1;
    }
    if (point < 0x800) {
        p[0] = (unsigned char)(0xC0 | point >> 6);
        p[1] = (unsigned char)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        p[0] = (unsigned char)(0xE0 | point >> 12);
        p[1] = (unsigned char)(0x80 | (point >> 6 & 0x3F));
        p[2] = (unsigned char)(0x80 | (point & 0x3F));
        return 3;
    }
    p[0] = (unsigned char)(0xF0 | point >> 18);
    p[1] = (unsigned char)(0x80 | (point >> 12 & 0x3F));
    p[2] = (unsigned char)(0x80 | (point >> 6 & 0x3F));
    p[3] = (unsigned char)(0x80 | (point & 0x3F));
    return 4;
}

static char simple_escape(char c)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = strchr(from, c);
    return at && *at ? to[at - from] : c;
}

static size_t decode_unicode(char *out, const char *p, const char *end, size_t len, bool lone)
{
    int32_t unit = text_code_unit(p, end);
    if (lone)
        return put_utf8(out, 0xFFFD);
    if (len == 12)
        return put_utf8(out, 0x10000u + ((uint32_t)(unit - 0xD800) << 10) +
                                 (uint32_t)(text_code_unit(p + 6, end) - 0xDC00));
    return put_utf8(out, (uint32_t)unit);
}

size_t text_decode(char *out, struct str literal, bool *lone)
{
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
        if (len == 2)
            *o++ = simple_escape(p[1]);
        else
            o += decode_unicode(o, p, end, len, this_lone);
        *lone |= this_lone;
        p += len;
    }
    return (size_t)(o - out);
}

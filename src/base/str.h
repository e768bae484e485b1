/*
 * A string is a pointer and a length, usually a slice of a message with
 * another owner. Nothing in this file allocates or frees.
 */
#ifndef TOOLGATE_BASE_STR_H
#define TOOLGATE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Borrowed bytes, not NUL-terminated unless documented so. `at` may be NULL if len is 0. */
struct str {
    const char *at;
    size_t len;
};

/* A literal as a str; usable in initialisers of static tables. */
#define STR(literal)                                                                                         \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }
#define STR_LIT(literal) ((struct str)STR(literal))
#define STR_NONE         ((struct str){NULL, 0})

/* For printf: printf("tool=" STR_FMT, STR_ARG(name)). */
#define STR_FMT    "%.*s"
#define STR_ARG(s) (int)(s).len, (s).at ? (s).at : ""

static inline struct str str_of(const char *text)
{
    return (struct str){text, text ? strlen(text) : 0};
}

#define STR_EQ_INLINE_BYTES 32u /* more are compared by memcmp */

/* Faster than memcmp for short names: compares two overlapping words, or twice as many. */
static inline bool str_bytes_eq(const char *a, const char *b, size_t n)
{
    uint64_t a8[4], b8[4];
    uint32_t a4[2], b4[2];
    if (n > 0 && (!a || !b))
        __builtin_unreachable(); /* a str is NULL only if it is empty */
    if (n > STR_EQ_INLINE_BYTES)
        return memcmp(a, b, n) == 0;
    if (n > 16) {
        memcpy(a8, a, 16), memcpy(a8 + 2, a + n - 16, 16);
        memcpy(b8, b, 16), memcpy(b8 + 2, b + n - 16, 16);
        return !((a8[0] ^ b8[0]) | (a8[1] ^ b8[1]) | (a8[2] ^ b8[2]) | (a8[3] ^ b8[3]));
    }
    if (n >= 8) {
        memcpy(&a8[0], a, 8), memcpy(&a8[1], a + n - 8, 8);
        memcpy(&b8[0], b, 8), memcpy(&b8[1], b + n - 8, 8);
        return !((a8[0] ^ b8[0]) | (a8[1] ^ b8[1]));
    }
    if (n >= 4) {
        memcpy(&a4[0], a, 4), memcpy(&a4[1], a + n - 4, 4);
        memcpy(&b4[0], b, 4), memcpy(&b4[1], b + n - 4, 4);
        return !((a4[0] ^ b4[0]) | (a4[1] ^ b4[1]));
    }
    return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && str_bytes_eq(a.at, b.at, a.len);
}

/* The beginning and the end, which overlap: of up to 16 bytes, both and the length are the whole string. */
struct str_ends {
    uint64_t first, last;
};
#define STR_ENDS_BYTES 16u

static inline struct str_ends str_ends(struct str s)
{
    struct str_ends ends = {0, 0};
    uint32_t head, tail;
    if (s.len >= 8) {
        memcpy(&ends.first, s.at, 8), memcpy(&ends.last, s.at + s.len - 8, 8);
    } else if (s.len >= 4) {
        memcpy(&head, s.at, 4), memcpy(&tail, s.at + s.len - 4, 4);
        ends.first = head, ends.last = tail;
    } else if (s.len) {
        ends.first = (uint64_t)(unsigned char)s.at[0] << 8 | (unsigned char)s.at[s.len / 2];
        ends.last = (unsigned char)s.at[s.len - 1];
    }
    return ends;
}

/* 0 to 255: for small tables, whose rows are compared. */
static inline size_t str_ends_slot(struct str_ends ends, size_t len)
{
    return ((ends.first ^ (ends.last << 7) ^ len) * 0x9E3779B97F4A7C15u) >> 56;
}

static inline bool str_is(struct str s, const char *text)
{
    return str_eq(s, str_of(text));
}

static inline bool str_starts(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.at, prefix, n) == 0;
}

static inline struct str str_from(struct str s, size_t from)
{
    return from >= s.len ? STR_NONE : (struct str){s.at + from, s.len - from};
}

/* Takes what is before the first `c`, or all of it, from the front of *rest, and drops the `c`. */
static inline struct str str_split(struct str *rest, char c)
{
    const char *end = rest->len ? memchr(rest->at, c, rest->len) : NULL;
    struct str part = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
    *rest = str_from(*rest, part.len + 1);
    return part;
}

/* From `at` on, where the bytes that are in `set` end; and where the first one of them is; s.len: at the end.
 */
static inline size_t str_span(struct str s, size_t at, const char *set)
{
    while (at < s.len && s.at[at] && strchr(set, s.at[at]))
        at++;
    return at;
}

static inline size_t str_find(struct str s, size_t at, const char *set)
{
    while (at < s.len && !(s.at[at] && strchr(set, s.at[at])))
        at++;
    return at;
}

/* How many bytes both begin with. */
static inline size_t str_same(struct str a, struct str b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.at[n] == b.at[n])
        n++;
    return n;
}

static inline bool str_has(struct str s, char c)
{
    return s.len && memchr(s.at, c, s.len);
}

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_letter(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static inline bool ascii_is_alnum(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c);
}

static inline int ascii_hex_value(char c) /* -1: not a hex digit */
{
    return ascii_is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static inline bool ascii_is_hex(char c)
{
    return ascii_hex_value(c) >= 0;
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* JSON's white space. */
static inline bool ascii_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Byte order, the shorter first on a tie: the order of every list that toolgate prints. */
static inline int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    if (n && a.at[0] != b.at[0]) /* most keys of an object; without a call of memcmp */
        return (unsigned char)a.at[0] < (unsigned char)b.at[0] ? -1 : 1;
    int order = n ? memcmp(a.at, b.at, n) : 0;
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

/* At most `max` bytes of s, never splitting a UTF-8 sequence. */
struct str str_cut(struct str s, size_t max);

/* At most the last `max` bytes, without the rest of a UTF-8 sequence at their beginning. */
struct str str_cut_front(struct str s, size_t max);

struct str str_trim(struct str s);

/* Bytes of the UTF-8 sequence at p (1-4), or 0 if it is invalid; overlong forms, surrogates and code points
 * above U+10FFFF are invalid. */
size_t str_utf8_length(const char *p, const char *end);

/* How many code points, each byte that continues none aside. */
size_t str_characters(struct str s);

/* Ignores the case of ASCII letters; other bytes compare as they are. */
bool str_contains_nocase(struct str haystack, struct str needle);

/* The same, as a word of its own: between two bytes that are no letter, digit or underscore. A longer one
 * than this is not found. */
#define STR_WORD_MAX_BYTES 256u
bool str_contains_word(struct str haystack, struct str word);

/* Of a path: "items" of "items[3].name". */
static inline struct str str_first_name(struct str path)
{
    return (struct str){path.at, str_find(path, 0, ".[")};
}

/* The same at the beginning; `prefix` is in lower case. The first byte decides nearly always, without a call.
 */
static inline bool str_starts_nocase(struct str s, const char *prefix)
{
    if (s.len && *prefix && s.at[0] != *prefix && (s.at[0] | 32) != *prefix)
        return false;
    size_t n = strlen(prefix);
    return s.len >= n && strncasecmp(s.at, prefix, n) == 0;
}

/* Whether s is one of `count` words. */
static inline bool str_is_one_of(struct str s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(s, words[i]))
            return true;
    return false;
}

#define STR_IS_ONE_OF(s, words) str_is_one_of(s, words, sizeof(words) / sizeof(*(words)))

/* `*` matches any run of bytes, `?` one byte; everything else matches itself. */
bool str_glob(struct str pattern, struct str s);

/* It has a `*` or a `?`; any other pattern is a name. */
bool str_is_glob(struct str pattern);

/* One or more of A-Z, a-z, 0-9, '_' and '-': a valid name of a tool or upstream. */
bool str_is_name(struct str s);

#endif

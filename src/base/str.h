/*
 * A string is a pointer and a length: most text here is a slice of a message
 * that somebody else owns. Nothing in this file allocates or frees.
 */
#ifndef TOOLGATE_BASE_STR_H
#define TOOLGATE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Borrowed bytes, not NUL-terminated unless the maker says so. `at` may be NULL when len is 0. */
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

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
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

/* Byte order, shorter first on a tie: the order of every list toolgate prints. */
int str_cmp(struct str a, struct str b);

/* At most `max` bytes of s, never cutting a UTF-8 sequence in two. */
struct str str_cut(struct str s, size_t max);

struct str str_trim(struct str s);

/* Bytes of the UTF-8 sequence at p (1-4), or 0 where there is no valid one: overlong forms, surrogates and
 * what lies past U+10FFFF are none. */
size_t utf8_length(const char *p, const char *end);

/* Case-insensitive search in ASCII; other bytes compare as they are. */
bool str_contains_nocase(struct str haystack, struct str needle);

/* `*` stands for any run of bytes, `?` for one; everything else for itself. */
bool str_glob(struct str pattern, struct str s);

#endif

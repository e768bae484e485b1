/* URIs by the grammar of RFC 3986: each byte has its classes in one table. */
#include "schema/format_checks.h"

#define UNRESERVED 1u
#define SUB_DELIM  2u
#define COLON      4u
#define AT         8u
#define SLASH      16u
#define QUESTION   32u
#define HASH       64u
#define IN_SCHEME  128u
#define PLAIN      (UNRESERVED | SUB_DELIM)
#define IN_PATH    (PLAIN | COLON | AT | SLASH)
#define IN_QUERY   (IN_PATH | QUESTION)

static const uint8_t classes[256] = {
    ['a' ... 'z'] = UNRESERVED | IN_SCHEME,
    ['A' ... 'Z'] = UNRESERVED | IN_SCHEME,
    ['0' ... '9'] = UNRESERVED | IN_SCHEME,
    ['-'] = UNRESERVED | IN_SCHEME,
    ['.'] = UNRESERVED | IN_SCHEME,
    ['_'] = UNRESERVED,
    ['~'] = UNRESERVED,
    ['+'] = SUB_DELIM | IN_SCHEME,
    ['!'] = SUB_DELIM,
    ['$'] = SUB_DELIM,
    ['&'] = SUB_DELIM,
    ['\''] = SUB_DELIM,
    ['('] = SUB_DELIM,
    [')'] = SUB_DELIM,
    ['*'] = SUB_DELIM,
    [','] = SUB_DELIM,
    [';'] = SUB_DELIM,
    ['='] = SUB_DELIM,
    [':'] = COLON,
    ['@'] = AT,
    ['/'] = SLASH,
    ['?'] = QUESTION,
    ['#'] = HASH,
};

static inline bool is_in(char c, unsigned set)
{
    return classes[(unsigned char)c] & set;
}

/* Only characters of `set` and %XX. */
static bool is_made_of(struct str s, unsigned set)
{
    for (size_t i = 0; i < s.len; i++) {
        if (is_in(s.at[i], set))
            continue;
        if (s.at[i] != '%' || i + 2 >= s.len || !is_hex(s.at[i + 1]) || !is_hex(s.at[i + 2]))
            return false;
        i += 2;
    }
    return true;
}

/* Everything before the first of `stops` (or all); *rest begins at the stop. */
static struct str cut(struct str s, unsigned stops, struct str *rest)
{
    size_t n = 0;
    while (n < s.len && !is_in(s.at[n], stops))
        n++;
    *rest = str_from(s, n);
    return (struct str){s.at, n};
}

static bool is_ip_future(struct str s)
{
    size_t n = 1;
    while (n < s.len && is_hex(s.at[n]))
        n++;
    if (n == 1 || n >= s.len || s.at[n] != '.' || n + 1 == s.len)
        return false;
    for (n++; n < s.len; n++)
        if (!is_in(s.at[n], PLAIN | COLON))
            return false;
    return true;
}

static bool is_port(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_digit(s.at[i]))
            return false;
    return true;
}

static bool is_host_and_port(struct str s)
{
    struct str rest;
    if (s.len && s.at[0] == '[') {
        const char *end = memchr(s.at, ']', s.len);
        if (!end)
            return false;
        struct str inner = {s.at + 1, (size_t)(end - s.at) - 1};
        bool future = inner.len && (inner.at[0] == 'v' || inner.at[0] == 'V');
        if (!(future ? is_ip_future(inner) : format_is_ipv6(inner)))
            return false;
        rest = str_from(s, inner.len + 2);
    } else if (!is_made_of(cut(s, COLON, &rest), PLAIN)) {
        return false;
    }
    return rest.len == 0 || (rest.at[0] == ':' && is_port(str_from(rest, 1)));
}

static bool is_authority(struct str s)
{
    const char *at = s.len ? memrchr(s.at, '@', s.len) : NULL;
    if (!at)
        return is_host_and_port(s);
    struct str user = {s.at, (size_t)(at - s.at)};
    return is_made_of(user, PLAIN | COLON) && is_host_and_port(str_from(s, user.len + 1));
}

/* What follows the scheme: //authority/path?query#fragment, each part may be missing. */
static bool is_rest(struct str s)
{
    struct str rest;
    if (str_starts(s, "//")) {
        if (!is_authority(cut(str_from(s, 2), SLASH | QUESTION | HASH, &rest)))
            return false;
        s = rest;
    }
    if (!is_made_of(cut(s, QUESTION | HASH, &rest), IN_PATH))
        return false;
    s = rest;
    if (s.len && s.at[0] == '?') {
        if (!is_made_of(cut(str_from(s, 1), HASH, &rest), IN_QUERY))
            return false;
        s = rest;
    }
    return s.len == 0 || is_made_of(str_from(s, 1), IN_QUERY);
}

/* Bytes of "scheme:", 0 where there is none. */
static size_t scheme_length(struct str s)
{
    size_t n = 0;
    if (!s.len || !is_alpha(s.at[0]))
        return 0;
    while (n < s.len && is_in(s.at[n], IN_SCHEME))
        n++;
    return n < s.len && s.at[n] == ':' ? n + 1 : 0;
}

bool is_uri(struct str s)
{
    size_t n = scheme_length(s);
    return n && is_rest(str_from(s, n));
}

/* Without a scheme the first segment of the path may hold no colon. */
bool format_is_uri_reference(struct str s)
{
    if (is_uri(s))
        return true;
    struct str rest, segment = cut(s, SLASH | QUESTION | HASH, &rest);
    return !(segment.len && memchr(segment.at, ':', segment.len)) && is_rest(s);
}

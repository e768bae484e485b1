/* URIs by the grammar of RFC 3986. */
#include "schema/format_checks.h"

#define SUB_DELIMS "!$&'()*+,;="

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool is_unreserved(char c)
{
    return is_alpha(c) || is_digit(c) || is_one_of(c, "-._~");
}

/* Only unreserved characters, %XX, sub-delims and those of `extra`. */
static bool is_made_of(struct str s, const char *extra)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (c == '%') {
            if (i + 2 >= s.len || !is_hex(s.at[i + 1]) || !is_hex(s.at[i + 2]))
                return false;
            i += 2;
        } else if (!is_unreserved(c) && !is_one_of(c, SUB_DELIMS) && !is_one_of(c, extra)) {
            return false;
        }
    }
    return true;
}

/* Everything before the first of `stops` (or all); *rest begins at the stop. */
static struct str cut(struct str s, const char *stops, struct str *rest)
{
    size_t n = 0;
    while (n < s.len && !is_one_of(s.at[n], stops))
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
        if (!is_unreserved(s.at[n]) && !is_one_of(s.at[n], SUB_DELIMS ":"))
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
        if (!(future ? is_ip_future(inner) : is_ipv6(inner)))
            return false;
        rest = str_from(s, inner.len + 2);
    } else if (!is_made_of(cut(s, ":", &rest), "")) {
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
    return is_made_of(user, ":") && is_host_and_port(str_from(s, user.len + 1));
}

/* What follows the scheme: //authority/path?query#fragment, each part may be missing. */
static bool is_rest(struct str s)
{
    struct str rest;
    if (str_starts(s, "//")) {
        if (!is_authority(cut(str_from(s, 2), "/?#", &rest)))
            return false;
        s = rest;
    }
    if (!is_made_of(cut(s, "?#", &rest), ":@/"))
        return false;
    s = rest;
    if (s.len && s.at[0] == '?') {
        if (!is_made_of(cut(str_from(s, 1), "#", &rest), ":@/?"))
            return false;
        s = rest;
    }
    return s.len == 0 || is_made_of(str_from(s, 1), ":@/?");
}

/* Bytes of "scheme:", 0 where there is none. */
static size_t scheme_length(struct str s)
{
    size_t n = 0;
    if (!s.len || !is_alpha(s.at[0]))
        return 0;
    while (n < s.len && (is_alpha(s.at[n]) || is_digit(s.at[n]) || is_one_of(s.at[n], "+-.")))
        n++;
    return n < s.len && s.at[n] == ':' ? n + 1 : 0;
}

bool is_uri(struct str s)
{
    size_t n = scheme_length(s);
    return n && is_rest(str_from(s, n));
}

/* Without a scheme the first segment of the path may hold no colon. */
bool is_uri_reference(struct str s)
{
    if (is_uri(s))
        return true;
    struct str rest, segment = cut(s, "/?#", &rest);
    return !(segment.len && memchr(segment.at, ':', segment.len)) && is_rest(s);
}

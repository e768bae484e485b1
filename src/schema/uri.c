/* Split first; then each component is checked against its characters, or merged with that of the base. */
#include "schema/uri.h"

#include "base/arena.h"
#include "base/buf.h"
#include "schema/format.h"

#define UNRESERVED 1u
#define SUB_DELIM  2u
#define COLON      4u
#define AT         8u
#define SLASH      16u
#define QUESTION   32u
#define IN_SCHEME  64u
#define HASH       128u
#define IN_HOST    (UNRESERVED | SUB_DELIM)
#define IN_PATH    (IN_HOST | COLON | AT | SLASH)
#define IN_QUERY   (IN_PATH | QUESTION)

static const uint8_t classes[256] = {
    ['a' ... 'z'] = UNRESERVED | IN_SCHEME,
    ['A' ... 'Z'] = UNRESERVED | IN_SCHEME,
    ['0' ... '9'] = UNRESERVED | IN_SCHEME,
    ['-'] = UNRESERVED | IN_SCHEME,
    ['.'] = UNRESERVED | IN_SCHEME,
    ['+'] = SUB_DELIM | IN_SCHEME,
    ['_'] = UNRESERVED,
    ['~'] = UNRESERVED,
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

/* With their punctuation: "http:", "//host", "/path", "?query", "#fragment". */
struct components {
    struct str scheme, authority, path, query, fragment;
};

/* Bytes before the first one of these classes. */
static inline size_t span_until(struct str s, unsigned stops)
{
    size_t n = 0;
    while (n < s.len && !(classes[(unsigned char)s.at[n]] & stops))
        n++;
    return n;
}

static struct str take(struct str *s, size_t n)
{
    struct str head = {s->at, n};
    if (s->len == 0)
        return STR_NONE;
    *s = str_from(*s, n);
    return head;
}

static struct components split(struct str s)
{
    struct components c = {0};
    size_t colon = span_until(s, COLON | SLASH | QUESTION | HASH);
    if (colon > 0 && colon < s.len && s.at[colon] == ':')
        c.scheme = take(&s, colon + 1);
    if (str_starts(s, "//"))
        c.authority = take(&s, 2 + span_until(str_from(s, 2), SLASH | QUESTION | HASH));
    c.path = take(&s, span_until(s, QUESTION | HASH));
    c.query = take(&s, span_until(s, HASH));
    c.fragment = s;
    return c;
}

/* Only characters of these classes, and %XX. */
static bool consists_of(struct str s, unsigned set)
{
    for (size_t i = 0; i < s.len; i++) {
        if (classes[(unsigned char)s.at[i]] & set)
            continue;
        if (s.at[i] != '%' || i + 2 >= s.len || !ascii_is_hex(s.at[i + 1]) || !ascii_is_hex(s.at[i + 2]))
            return false;
        i += 2;
    }
    return true;
}

/* "v1.x" in brackets: an address of some future version. */
static bool is_ip_future(struct str s)
{
    size_t n = 1;
    while (n < s.len && ascii_is_hex(s.at[n]))
        n++;
    struct str address = str_from(s, n + 1);
    return n > 1 && n < s.len && s.at[n] == '.' && address.len && !memchr(address.at, '%', address.len) &&
           consists_of(address, IN_HOST | COLON);
}

/* user@host:port, each part but the host optional; a host may be an address in brackets. */
static bool is_authority(struct str s)
{
    const char *at = s.len ? memrchr(s.at, '@', s.len) : NULL;
    struct str user = {s.at, at ? (size_t)(at - s.at) : 0}, port;
    s = at ? str_from(s, user.len + 1) : s;
    if (s.len && s.at[0] == '[') {
        const char *end = memchr(s.at, ']', s.len);
        if (!end)
            return false;
        struct str address = {s.at + 1, (size_t)(end - s.at) - 1};
        if (address.len && (address.at[0] | 32) == 'v' ? !is_ip_future(address) : !format_is_ipv6(address))
            return false;
        port = str_from(s, address.len + 2);
    } else {
        struct str host = take(&s, span_until(s, COLON));
        port = s;
        if (!consists_of(host, IN_HOST))
            return false;
    }
    for (size_t i = 1; i < port.len; i++)
        if (!ascii_is_digit(port.at[i]))
            return false;
    return (port.len == 0 || port.at[0] == ':') && consists_of(user, IN_HOST | COLON);
}

static bool is_valid(const struct components *c)
{
    for (size_t i = 0; i + 1 < c->scheme.len; i++)
        if (i == 0 ? !ascii_is_letter(c->scheme.at[i])
                   : !(classes[(unsigned char)c->scheme.at[i]] & IN_SCHEME))
            return false;
    /* Without a scheme the first segment of the path may hold no colon; a later one would have been a scheme.
     */
    if (!c->scheme.len && !c->authority.len && c->path.len && c->path.at[0] == ':')
        return false;
    return is_authority(str_from(c->authority, 2)) && consists_of(c->path, IN_PATH) &&
           consists_of(str_from(c->query, 1), IN_QUERY) && consists_of(str_from(c->fragment, 1), IN_QUERY);
}

bool uri_is_absolute(struct str s)
{
    struct components c = split(s);
    return c.scheme.len && is_valid(&c);
}

bool uri_is_reference(struct str s)
{
    struct components c = split(s);
    return is_valid(&c);
}

/* "a/b/../c" becomes "a/c", appended to the buffer. */
static void put_without_dots(struct buf *out, struct str path)
{
    size_t start = out->len;
    while (path.len) {
        size_t n = span_until(str_from(path, path.at[0] == '/'), SLASH) + (path.at[0] == '/');
        struct str segment = {path.at, n};
        bool rooted = segment.at[0] == '/', last = n == path.len;
        struct str name = str_from(segment, rooted);
        path = str_from(path, n);
        if (str_is(name, "..")) {
            while (out->len > start && out->at[--out->len] != '/')
                ;
            if (last)
                buf_byte(out, '/');
        } else if (str_is(name, ".")) {
            if (last)
                buf_byte(out, '/');
        } else {
            buf_str(out, segment);
        }
    }
}

struct str uri_resolve(struct arena *arena, struct str base_uri, struct str reference)
{
    struct components ref = split(reference), base = split(base_uri);
    if (ref.scheme.len)
        return reference;
    struct buf out = buf_in(arena);
    buf_str(&out, base.scheme);
    buf_str(&out, ref.authority.len ? ref.authority : base.authority);
    if (ref.authority.len || (ref.path.len && ref.path.at[0] == '/')) {
        put_without_dots(&out, ref.path);
    } else if (ref.path.len) { /* relative to that of the base */
        size_t keep = base.path.len;
        while (keep > 0 && base.path.at[keep - 1] != '/')
            keep--;
        struct str root = STR_LIT("/"), from = {base.path.at, keep};
        put_without_dots(&out,
                         ARENA_JOIN(arena, from, !keep && base.authority.len ? root : STR_NONE, ref.path));
    } else {
        buf_str(&out, base.path);
    }
    buf_str(&out, ref.authority.len || ref.path.len || ref.query.len ? ref.query : base.query);
    buf_str(&out, ref.fragment);
    return buf_view(&out);
}

struct str uri_split(struct str uri, struct str *fragment)
{
    size_t n = span_until(uri, HASH);
    *fragment = n < uri.len ? (struct str){uri.at + n + 1, uri.len - n - 1} : STR_NONE;
    return (struct str){uri.at, n};
}

struct str uri_decode(struct arena *arena, struct str s)
{
    if (!s.len || !memchr(s.at, '%', s.len))
        return s;
    struct buf out = buf_in(arena);
    for (size_t i = 0; i < s.len; i++) {
        bool coded =
            s.at[i] == '%' && i + 2 < s.len && ascii_is_hex(s.at[i + 1]) && ascii_is_hex(s.at[i + 2]);
        buf_byte(&out,
                 coded ? (char)(ascii_hex_value(s.at[i + 1]) * 16 + ascii_hex_value(s.at[i + 2])) : s.at[i]);
        i += coded ? 2 : 0;
    }
    return buf_view(&out);
}

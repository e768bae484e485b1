/* Just enough of RFC 3986 for schema identifiers: split, merge paths, drop dot segments. */
#include "schema/uri.h"

#include "base/arena.h"
#include "base/buf.h"

/* Components with their punctuation: "http:", "//host", "/path", "?query", "#fragment". */
struct parts {
    struct str scheme, authority, path, query, fragment;
};

static size_t span_until(struct str s, const char *stops)
{
    size_t n = 0;
    while (n < s.len && !(s.at[n] && strchr(stops, s.at[n])))
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

static struct parts split(struct str s)
{
    struct parts p = {0};
    size_t colon = span_until(s, ":/?#");
    if (colon > 0 && colon < s.len && s.at[colon] == ':')
        p.scheme = take(&s, colon + 1);
    if (str_starts(s, "//"))
        p.authority = take(&s, 2 + span_until(str_from(s, 2), "/?#"));
    p.path = take(&s, span_until(s, "?#"));
    p.query = take(&s, span_until(s, "#"));
    p.fragment = s;
    return p;
}

/* "a/b/../c" -> "a/c", written behind `start` of the buffer, which keeps what stands before it. */
static void put_without_dots(struct buf *out, struct str path)
{
    size_t start = out->len;
    while (path.len) {
        size_t n = span_until(str_from(path, path.at[0] == '/'), "/") + (path.at[0] == '/');
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

static void put_merged(struct buf *out, const struct parts *base, struct str path)
{
    struct buf merged = buf_in(out->arena);
    size_t keep = base->path.len;
    while (keep > 0 && base->path.at[keep - 1] != '/')
        keep--;
    buf_str(&merged, (struct str){base->path.at, keep});
    if (!keep && base->authority.len)
        buf_byte(&merged, '/');
    buf_str(&merged, path);
    put_without_dots(out, buf_view(&merged));
}

/* The path and query of a reference that has no scheme and no authority. */
static void put_relative(struct buf *out, const struct parts *base, const struct parts *ref)
{
    if (ref->path.len == 0) {
        buf_str(out, base->path);
        buf_str(out, ref->query.len ? ref->query : base->query);
        return;
    }
    if (ref->path.at[0] == '/')
        put_without_dots(out, ref->path);
    else
        put_merged(out, base, ref->path);
    buf_str(out, ref->query);
}

struct str uri_resolve(struct arena *arena, struct str base_uri, struct str reference)
{
    struct parts ref = split(reference), base = split(base_uri);
    if (ref.scheme.len)
        return reference;
    struct buf out = buf_in(arena);
    buf_str(&out, base.scheme);
    if (ref.authority.len) {
        buf_str(&out, ref.authority);
        put_without_dots(&out, ref.path);
        buf_str(&out, ref.query);
    } else {
        buf_str(&out, base.authority);
        put_relative(&out, &base, &ref);
    }
    buf_str(&out, ref.fragment);
    return buf_view(&out);
}

struct str uri_split(struct str uri, struct str *fragment)
{
    size_t n = span_until(uri, "#");
    *fragment = n < uri.len ? (struct str){uri.at + n + 1, uri.len - n - 1} : STR_NONE;
    return (struct str){uri.at, n};
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct str uri_decode(struct arena *arena, struct str s)
{
    if (!s.len || !memchr(s.at, '%', s.len))
        return s;
    struct buf out = buf_in(arena);
    for (size_t i = 0; i < s.len; i++) {
        bool coded = s.at[i] == '%' && i + 2 < s.len && hex(s.at[i + 1]) >= 0 && hex(s.at[i + 2]) >= 0;
        buf_byte(&out, coded ? (char)(hex(s.at[i + 1]) * 16 + hex(s.at[i + 2])) : s.at[i]);
        i += coded ? 2 : 0;
    }
    return buf_view(&out);
}

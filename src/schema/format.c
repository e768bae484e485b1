/* The table of formats and their checks: dates and times by RFC 3339, network names and URIs by their RFCs;
 * pattern.c holds one of them. */
#include "schema/format.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/date.h"

#include <arpa/inet.h>
#include <idn2.h>
#include <stdio.h>

/* Two digits at `at` as a number up to `most`, or -1. */
static int two_digits(struct str s, size_t at, int most)
{
    bool there = at + 2 <= s.len && ascii_is_digit(s.at[at]) && ascii_is_digit(s.at[at + 1]);
    int value = there ? (s.at[at] - '0') * 10 + (s.at[at + 1] - '0') : -1;
    return value <= most ? value : -1;
}

static bool is_date(struct str s)
{
    int64_t seconds;
    return date_read(s, &seconds);
}

/* Minutes east of UTC of "Z", "+hh:mm" or "-hh:mm"; false for anything else. */
static bool read_zone(struct str s, int *minutes)
{
    *minutes = 0;
    if (s.len == 1)
        return s.at[0] == 'Z' || s.at[0] == 'z';
    if (s.len != 6 || (s.at[0] != '+' && s.at[0] != '-') || s.at[3] != ':')
        return false;
    int hour = two_digits(s, 1, 23), minute = two_digits(s, 4, 59);
    *minutes = (hour * 60 + minute) * (s.at[0] == '-' ? -1 : 1);
    return hour >= 0 && minute >= 0;
}

/* "hh:mm:ss" with an optional fraction; returns the bytes read, 0 for anything else. */
static size_t read_clock(struct str s, int *minutes, int *second)
{
    if (s.len < 8 || s.at[2] != ':' || s.at[5] != ':')
        return 0;
    int hour = two_digits(s, 0, 23), minute = two_digits(s, 3, 59);
    size_t end = 8;
    if (end < s.len && s.at[end] == '.')
        for (end++; end < s.len && ascii_is_digit(s.at[end]);)
            end++;
    *second = two_digits(s, 6, 60);
    *minutes = hour * 60 + minute;
    return hour < 0 || minute < 0 || *second < 0 || end == 9 ? 0 : end;
}

static bool is_time(struct str s)
{
    int minutes, second, east;
    size_t zone = read_clock(s, &minutes, &second);
    if (!zone || !read_zone(str_from(s, zone), &east))
        return false;
    int utc = (minutes - east + 2 * 1440) % 1440;
    return second < 60 || utc == 1439;
}

static bool begins_with_date(struct str s)
{
    return s.len > 11 && (s.at[10] == 'T' || s.at[10] == 't') && is_date((struct str){s.at, 10});
}

static bool is_date_time(struct str s)
{
    return begins_with_date(s) && is_time(str_from(s, 11));
}

static bool is_local_time(struct str s)
{
    int minutes, second;
    return s.len && read_clock(s, &minutes, &second) == s.len && second < 60;
}

bool format_is_local_date_time(struct str s)
{
    return begins_with_date(s) && is_local_time(str_from(s, 11));
}

int64_t format_local_seconds(struct str s)
{
    int64_t midnight = 0;
    int minutes = 0, second = 0;
    date_read(str_cut(s, 10), &midnight);
    read_clock(str_from(s, 11), &minutes, &second);
    return midnight + minutes * 60 + second;
}

/* Digits and a unit, repeated; units follow each other as in `units`. Returns the bytes read, 0 for none. */
static size_t read_run(struct str s, const char *units)
{
    size_t at = 0;
    const char *next = NULL;
    for (;;) {
        size_t digits = at;
        while (digits < s.len && ascii_is_digit(s.at[digits]))
            digits++;
        const char *unit = digits > at && digits < s.len && s.at[digits] ? strchr(units, s.at[digits]) : NULL;
        if (!unit || (next && unit != next))
            return at;
        next = unit + 1;
        at = digits + 1;
    }
}

static bool is_duration(struct str s)
{
    if (s.len < 2 || s.at[0] != 'P')
        return false;
    struct str rest = str_from(s, 1);
    size_t weeks = read_run(rest, "W");
    if (weeks && weeks == rest.len)
        return true;
    size_t date = read_run(rest, "YMD");
    rest = str_from(rest, date);
    if (rest.len == 0)
        return date > 0;
    if (rest.at[0] != 'T' || rest.len < 2)
        return false;
    return read_run(str_from(rest, 1), "HMS") == rest.len - 1;
}

#define REGEX_STEPS 4000u /* to compile an expression */

#define HOSTNAME_MAX_BYTES 253u
#define LABEL_MAX_BYTES    63u
#define LOCAL_PART_MAX     64u /* of an e-mail address */

static bool is_uuid(struct str s)
{
    if (s.len != 36)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s.at[i] != '-' : !ascii_is_hex(s.at[i]))
            return false;
    }
    return true;
}

static bool is_address(struct str s, int family)
{
    char text[INET6_ADDRSTRLEN + 1];
    unsigned char address[16];
    if (s.len == 0 || s.len >= sizeof(text) || memchr(s.at, '\0', s.len))
        return false;
    memcpy(text, s.at, s.len);
    text[s.len] = '\0';
    return inet_pton(family, text, address) == 1;
}

static bool is_ipv4(struct str s)
{
    return is_address(s, AF_INET);
}

static bool is_ipv6(struct str s)
{
    return is_address(s, AF_INET6);
}

/* An A-label must be the Punycode of a label that IDNA 2008 allows to register, context rules included. */
static __attribute__((noinline)) bool is_idn_label(struct str label)
{
    char text[LABEL_MAX_BYTES + 1], *plain = NULL;
    uint8_t *registered = NULL;
    memcpy(text, label.at, label.len);
    text[label.len] = '\0';
    bool ok = idn2_to_unicode_8z8z(text, &plain, 0) == IDN2_OK &&
              idn2_register_u8((const uint8_t *)plain, (const uint8_t *)text, &registered, 0) == IDN2_OK;
    idn2_free(registered);
    idn2_free(plain);
    return ok;
}

static bool is_label(struct str label)
{
    if (label.len == 0 || label.len > LABEL_MAX_BYTES || label.at[0] == '-' || label.at[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++)
        if (!ascii_is_alnum(label.at[i]) && label.at[i] != '-')
            return false;
    bool tagged = label.len > 3 && label.at[2] == '-' && label.at[3] == '-';
    if (!tagged)
        return true;
    return (label.at[0] | 32) == 'x' && (label.at[1] | 32) == 'n' && is_idn_label(label);
}

static bool is_hostname(struct str s)
{
    if (s.len == 0 || s.len > HOSTNAME_MAX_BYTES)
        return false;
    while (s.len) {
        const char *dot = memchr(s.at, '.', s.len);
        struct str label = {s.at, dot ? (size_t)(dot - s.at) : s.len};
        if (!is_label(label) || (dot && label.len + 1 == s.len))
            return false;
        s = str_from(s, label.len + 1);
    }
    return true;
}

/* Of an e-mail address's local part. */
static bool is_atom(struct str s)
{
    static const char in_atom[] = ".!#$%&'*+/=?^_`{|}~-"; /* beside letters and digits */
    if (s.len == 0 || s.at[0] == '.' || s.at[s.len - 1] == '.')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool dots = s.at[i] == '.' && s.at[i - 1] == '.';
        if (dots || !(ascii_is_alnum(s.at[i]) || memchr(in_atom, s.at[i], sizeof(in_atom) - 1)))
            return false;
    }
    return true;
}

static bool is_quoted(struct str s)
{
    if (s.len < 2 || s.at[0] != '"' || s.at[s.len - 1] != '"')
        return false;
    for (size_t i = 1; i + 1 < s.len; i++) {
        bool escaped = s.at[i] == '\\';
        i += escaped;
        if (i + 1 == s.len || (s.at[i] == '"' && !escaped) || (unsigned char)s.at[i] < 0x20 ||
            (unsigned char)s.at[i] > 0x7e)
            return false;
    }
    return true;
}

static bool is_email(struct str s)
{
    const char *at = s.len ? memrchr(s.at, '@', s.len) : NULL;
    if (!at)
        return false;
    struct str local = {s.at, (size_t)(at - s.at)}, domain = str_from(s, local.len + 1);
    if (local.len > LOCAL_PART_MAX || (!is_atom(local) && !is_quoted(local)))
        return false;
    if (domain.len < 3 || domain.at[0] != '[' || domain.at[domain.len - 1] != ']')
        return is_hostname(domain);
    struct str address = {domain.at + 1, domain.len - 2}; /* [127.0.0.1] or [IPv6:::1] */
    return str_starts(address, "IPv6:") ? is_ipv6(str_from(address, 5)) : is_ipv4(address);
}

static bool is_json_pointer(struct str s)
{
    if (s.len && s.at[0] != '/')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] == '~' && !(i + 1 < s.len && (s.at[i + 1] == '0' || s.at[i + 1] == '1')))
            return false;
    return true;
}

static bool is_relative_json_pointer(struct str s)
{
    size_t n = 0;
    while (n < s.len && ascii_is_digit(s.at[n]))
        n++;
    if (n == 0 || (n > 1 && s.at[0] == '0'))
        return false;
    struct str rest = str_from(s, n);
    return str_is(rest, "#") || is_json_pointer(rest);
}

/*
 * ---- URIs ----
 *
 * By RFC 3986, ASCII only: split first, then each component is checked against its characters, or merged with
 * that of the base. liburiparser would allocate each path segment of a string that a client sends, and
 * resolves only against an absolute base.
 */

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

struct uri_parts uri_parts(struct str s)
{
    struct uri_parts c = {0};
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

bool uri_authority(struct str s, struct str *user, struct str *host, struct str *port)
{
    const char *at = s.len ? memrchr(s.at, '@', s.len) : NULL;
    *user = (struct str){s.at, at ? (size_t)(at - s.at) : 0};
    s = at ? str_from(s, user->len + 1) : s;
    bool bracket = s.len && s.at[0] == '[';
    const char *end = bracket ? memchr(s.at, ']', s.len) : NULL;
    if (bracket && !end)
        return false;
    *host = str_cut(s, end ? (size_t)(end + 1 - s.at) : span_until(s, COLON));
    *port = str_from(s, host->len);
    for (size_t i = 1; i < port->len; i++)
        if (!ascii_is_digit(port->at[i]))
            return false;
    return port->len == 0 || port->at[0] == ':';
}

static bool is_authority(struct str s)
{
    struct str user, host, port;
    if (!uri_authority(s, &user, &host, &port) || !consists_of(user, IN_HOST | COLON))
        return false;
    if (!str_starts(host, "["))
        return consists_of(host, IN_HOST);
    struct str address = {host.at + 1, host.len - 2};
    if (!address.len || (address.at[0] | 32) != 'v')
        return is_ipv6(address);
    size_t n = 1; /* "v1.x": of some future version */
    while (n < address.len && ascii_is_hex(address.at[n]))
        n++;
    struct str rest = str_from(address, n + 1);
    return n > 1 && n < address.len && address.at[n] == '.' && rest.len && !memchr(rest.at, '%', rest.len) &&
           consists_of(rest, IN_HOST | COLON);
}

bool uri_is_scheme(struct str s)
{
    bool is_scheme = s.len && ascii_is_letter(s.at[0]);
    for (size_t i = 1; is_scheme && i < s.len; i++)
        is_scheme = classes[(unsigned char)s.at[i]] & IN_SCHEME;
    return is_scheme;
}

static bool is_valid_uri(const struct uri_parts *c)
{
    if (c->scheme.len && !uri_is_scheme((struct str){c->scheme.at, c->scheme.len - 1}))
        return false;
    /* Without a scheme the first segment of the path may hold no colon; a later one would have been a scheme.
     */
    if (!c->scheme.len && !c->authority.len && c->path.len && c->path.at[0] == ':')
        return false;
    return is_authority(str_from(c->authority, 2)) && consists_of(c->path, IN_PATH) &&
           consists_of(str_from(c->query, 1), IN_QUERY) && consists_of(str_from(c->fragment, 1), IN_QUERY);
}

static bool is_uri(struct str s)
{
    struct uri_parts c = uri_parts(s);
    return c.scheme.len && is_valid_uri(&c);
}

static bool is_uri_reference(struct str s)
{
    struct uri_parts c = uri_parts(s);
    return is_valid_uri(&c);
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
    struct uri_parts ref = uri_parts(reference), base = uri_parts(base_uri);
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

/* ---- dates, times and URIs that are spelled otherwise ---- */

#define TIME_MAX_BYTES 40u /* a longer text is no date and no time */

/* "9:00", "09:00:00.5" at the beginning of the text, with two digits of the hour and with seconds. Returns
 * the bytes read. */
static size_t respell_clock(struct buf *out, struct str s)
{
    size_t hour = s.len > 1 && s.at[1] == ':' ? 1 : 2, end = hour + 3;
    int minutes, second;
    if (s.len < end || s.at[hour] != ':')
        return 0;
    bool seconds = s.len > end && s.at[end] == ':';
    if (seconds)
        for (end++; end < s.len && (ascii_is_digit(s.at[end]) || s.at[end] == '.');)
            end++;
    size_t from = out->len;
    buf_text(out, hour == 1 ? "0" : "");
    buf_str(out, (struct str){s.at, end});
    buf_text(out, seconds ? "" : ":00");
    struct str clock = {out->at + from, out->len - from};
    return read_clock(clock, &minutes, &second) == clock.len ? end : 0;
}

/* "", "Z", "+0200", "+02", "+02:00"; false for anything else. */
static bool respell_zone(struct buf *out, struct str s)
{
    int minutes;
    bool digits = s.len == 3 || s.len == 5; /* +02, +0200 */
    for (size_t i = 1; i < s.len && digits; i++)
        digits = ascii_is_digit(s.at[i]);
    size_t from = out->len;
    buf_str(out, digits ? (struct str){s.at, 3} : s);
    if (digits) {
        buf_byte(out, ':');
        buf_str(out, s.len == 5 ? str_from(s, 3) : STR_LIT("00"));
    }
    return !s.len || read_zone((struct str){out->at + from, out->len - from}, &minutes);
}

/* As a browser does: other characters as %XX, a host beyond ASCII as IDNA. Of prose it makes no address: only
 * of what has "//" behind its scheme, or as a reference begins like a path, and is one address. Where
 * browsers disagree, or something was to be filled in ("{id}"), the text stays as it is. */
static struct str respell_uri(struct arena *arena, bool (*check)(struct str s), struct str text)
{
    struct uri_parts c = uri_parts(text);
    struct buf out = buf_in(arena);
    const char *space = memchr(text.at, ' ', text.len);
    bool begins = c.authority.len || (check == is_uri_reference && strchr("/.?#", *text.at));
    if (!begins || (space && str_contains_nocase(str_from(text, (size_t)(space - text.at)), STR_LIT("://"))))
        return STR_NONE;
    const char *at = c.authority.len ? memrchr(c.authority.at, '@', c.authority.len) : NULL;
    struct str host =
        at ? str_from(c.authority, (size_t)(at - c.authority.at) + 1) : str_from(c.authority, 2);
    size_t before = c.scheme.len + c.authority.len - host.len;
    host = str_starts(host, "[") ? host : str_cut(host, span_until(host, COLON));
    buf_add(&out, text.at, before);
    bool plain = true;
    for (size_t i = 0; i < host.len; i++)
        plain &= (unsigned char)host.at[i] > 0 && (unsigned char)host.at[i] < 0x80;
    char *ascii = NULL;
    bool known = !plain &&
                 idn2_to_ascii_8z(arena_dup(arena, host).at, &ascii, IDN2_NONTRANSITIONAL) == IDN2_OK &&
                 !memchr(host.at, 0, host.len) && is_hostname(str_of(ascii));
    buf_str(&out, known ? str_of(ascii) : host);
    idn2_free(ascii);
    for (size_t i = before + host.len; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        bool in_fragment = c.fragment.len && text.at + i > c.fragment.at;
        bool coded = byte == '%' && consists_of(str_cut(str_from(text, i), 3), 0);
        bool stays = coded || (classes[byte] && !(byte == '#' && in_fragment)) || byte < ' ' || byte == 127;
        if (stays || strchr("{}\\", byte))
            buf_byte(&out, (char)byte);
        else
            buf_printf(&out, "%%%02X", byte);
    }
    return check(buf_view(&out)) ? buf_view(&out) : STR_NONE;
}

struct str format_respell(struct arena *arena, const struct format *format, struct str text)
{
    struct buf out = buf_in(arena);
    struct str rest = str_trim(text);
    bool is_time_alone = format->check == is_time;
    if (rest.len && (format->check == is_uri || format->check == is_uri_reference))
        return respell_uri(arena, format->check, rest);
    if (rest.len > TIME_MAX_BYTES ||
        (format->check != is_date_time && format->check != is_date && !is_time_alone))
        return STR_NONE;
    if (!is_time_alone) {
        if (rest.len < 12 || !memchr("Tt ", rest.at[10], 3) || !is_date((struct str){rest.at, 10}))
            return STR_NONE;
        buf_str(&out, (struct str){rest.at, 10});
        buf_byte(&out, 'T');
        rest = str_from(rest, 11);
    }
    size_t clock = respell_clock(&out, rest);
    if (!clock || !respell_zone(&out, str_trim(str_from(rest, clock))))
        return STR_NONE;
    struct str said = buf_view(&out);
    bool is_midnight = said.len >= 19 && memcmp(said.at + 11, "00:00:00", 8) == 0;
    if (format->check == is_date)
        return is_midnight ? (struct str){said.at, 10} : STR_NONE;
    return said;
}

/* ---- the table ---- */

static const struct format formats[] = {
    {"date-time", "ISO datetime", "2026-05-03T00:00:00Z", is_date_time, format_is_local_date_time, 0},
    {"date", "ISO date", "2026-05-03", is_date, NULL, 0},
    {"time", "ISO time with its zone", "09:30:00Z", is_time, is_local_time, 0},
    {"duration", "ISO duration", "P1DT12H", is_duration, NULL, 0},
    {"uuid", "UUID", "123e4567-e89b-12d3-a456-426614174000", is_uuid, NULL, 0},
    {"email", "email address", "ada@example.com", is_email, NULL, 0},
    {"uri", "absolute URI", "https://example.com/path", is_uri, NULL, 0},
    {"uri-reference", "URI or relative reference", "/path?query", is_uri_reference, NULL, 0},
    {"ipv4", "IPv4 address", "192.0.2.1", is_ipv4, NULL, 0},
    {"ipv6", "IPv6 address", "2001:db8::1", is_ipv6, NULL, 0},
    {"hostname", "host name", "www.example.com", is_hostname, NULL, 0},
    {"json-pointer", "JSON pointer", "/items/0/name", is_json_pointer, NULL, 0},
    {"relative-json-pointer", "relative JSON pointer", "1/name", is_relative_json_pointer, NULL, 0},
    {"regex", "regular expression", "^[a-z]+$", pattern_is_regex, NULL, REGEX_STEPS},
};

const struct format *format_find(struct str name)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (str_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}

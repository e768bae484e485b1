/* The table of formats and their checks: dates and times by RFC 3339, network names by their RFCs; uri.c and
 * pattern.c hold two of them. */
#include "schema/format.h"

#include "base/date.h"
#include "schema/pattern.h"
#include "schema/uri.h"

#include <arpa/inet.h>
#include <idn2.h>
#include <stdio.h>

/* `n` digits at `at` as a number in [low, high], or -1. */
static int number(struct str s, size_t at, size_t n, int low, int high)
{
    int value = 0;
    if (at + n > s.len)
        return -1;
    for (size_t i = at; i < at + n; i++) {
        if (!ascii_is_digit(s.at[i]))
            return -1;
        value = value * 10 + (s.at[i] - '0');
    }
    return value >= low && value <= high ? value : -1;
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
    int hour = number(s, 1, 2, 0, 23), minute = number(s, 4, 2, 0, 59);
    *minutes = (hour * 60 + minute) * (s.at[0] == '-' ? -1 : 1);
    return hour >= 0 && minute >= 0;
}

/* "hh:mm:ss" with an optional fraction; returns the bytes read, 0 for anything else. */
static size_t read_clock(struct str s, int *minutes, int *second)
{
    if (s.len < 8 || s.at[2] != ':' || s.at[5] != ':')
        return 0;
    int hour = number(s, 0, 2, 0, 23), minute = number(s, 3, 2, 0, 59);
    size_t end = 8;
    if (end < s.len && s.at[end] == '.')
        for (end++; end < s.len && ascii_is_digit(s.at[end]);)
            end++;
    *second = number(s, 6, 2, 0, 60);
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

static bool is_date_time(struct str s)
{
    return s.len > 11 && (s.at[10] == 'T' || s.at[10] == 't') && is_date((struct str){s.at, 10}) &&
           is_time(str_from(s, 11));
}

bool format_is_local_date_time(struct str s)
{
    int minutes, second;
    return s.len > 11 && (s.at[10] == 'T' || s.at[10] == 't') && is_date((struct str){s.at, 10}) &&
           read_clock(str_from(s, 11), &minutes, &second) == s.len - 11 && second < 60;
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

bool format_is_ipv6(struct str s)
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
        if (!ascii_is_digit(label.at[i]) && !ascii_is_letter(label.at[i]) && label.at[i] != '-')
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
static const bool in_atom[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['.'] = true, ['!'] = true,
    ['#'] = true,         ['$'] = true,         ['%'] = true,         ['&'] = true, ['\''] = true,
    ['*'] = true,         ['+'] = true,         ['/'] = true,         ['='] = true, ['?'] = true,
    ['^'] = true,         ['_'] = true,         ['`'] = true,         ['{'] = true, ['|'] = true,
    ['}'] = true,         ['~'] = true,         ['-'] = true,
};

static bool is_atom(struct str s)
{
    if (s.len == 0 || s.at[0] == '.' || s.at[s.len - 1] == '.')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool dots = s.at[i] == '.' && s.at[i - 1] == '.';
        if (dots || !in_atom[(unsigned char)s.at[i]])
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
    return str_starts(address, "IPv6:") ? format_is_ipv6(str_from(address, 5)) : is_ipv4(address);
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

static const struct format formats[] = {
    {"date-time", "ISO datetime", "2026-05-03T00:00:00Z", is_date_time, format_is_local_date_time, 0},
    {"date", "ISO date", "2026-05-03", is_date, NULL, 0},
    {"time", "ISO time with its zone", "09:30:00Z", is_time, NULL, 0},
    {"duration", "ISO duration", "P1DT12H", is_duration, NULL, 0},
    {"uuid", "UUID", "123e4567-e89b-12d3-a456-426614174000", is_uuid, NULL, 0},
    {"email", "email address", "ada@example.com", is_email, NULL, 0},
    {"uri", "absolute URI", "https://example.com/path", uri_is_absolute, NULL, 0},
    {"uri-reference", "URI or relative reference", "/path?query", uri_is_reference, NULL, 0},
    {"ipv4", "IPv4 address", "192.0.2.1", is_ipv4, NULL, 0},
    {"ipv6", "IPv6 address", "2001:db8::1", format_is_ipv6, NULL, 0},
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

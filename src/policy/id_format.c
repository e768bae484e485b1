/* One table: each format is a function over a string, and the words for what it expects. */
#include "policy/id_format.h"

#include "schema/format.h"

#include <stdio.h>

#define PREFIX "prefix:"

static bool all_of(struct str s, bool (*is)(char))
{
    for (size_t i = 0; i < s.len; i++)
        if (!is(s.at[i]))
            return false;
    return s.len > 0;
}

static bool is_integer(struct str s)
{
    return all_of(s.len && s.at[0] == '-' ? str_from(s, 1) : s, ascii_is_digit);
}

static bool is_uuid(struct str s)
{
    return format_find(STR_LIT("uuid"))->check(s);
}

/* Lower-case words joined by single - or _ */
static bool is_slug(struct str s)
{
    bool joined = true;
    for (size_t i = 0; i < s.len; i++) {
        bool joins = s.at[i] == '-' || s.at[i] == '_', is_lower = ascii_lower(s.at[i]) == s.at[i];
        if (joins ? joined : !(ascii_is_alnum(s.at[i]) && is_lower))
            return false;
        joined = joins;
    }
    return s.len > 0 && !joined;
}

static bool is_email(struct str s)
{
    const char *at = s.len ? memchr(s.at, '@', s.len) : NULL;
    if (!at || at == s.at)
        return false;
    struct str host = str_from(s, (size_t)(at - s.at) + 1);
    const char *dot = host.len ? memchr(host.at, '.', host.len) : NULL;
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] <= ' ' || (s.at[i] == '@' && s.at + i != at))
            return false;
    return dot && dot > host.at && host.at[host.len - 1] != '.';
}

static bool is_url(struct str s)
{
    const char *rest = s.len ? memmem(s.at, s.len, "://", 3) : NULL;
    if (!rest || rest == s.at || rest + 3 == s.at + s.len)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] <= ' ')
            return false;
    return all_of((struct str){s.at, (size_t)(rest - s.at)}, ascii_is_alnum);
}

static const struct id_format {
    const char *name;
    bool (*fits)(struct str); /* NULL: all characters are of a class */
    bool (*is)(char);
    const char *expected;
    bool numbers; /* a JSON number may be one, too */
} formats[] = {
    {"uuid", is_uuid, NULL, "a UUID (e.g. '3f2b8c1e-5a74-4d7e-9b1a-0c6d2e8f4a10')", false},
    {"integer", is_integer, NULL, "a whole number (e.g. 1042)", true},
    {"digits", NULL, ascii_is_digit, "digits only (e.g. '0042')", true},
    {"hex", NULL, ascii_is_hex, "hexadecimal digits (e.g. '9f86d081')", false},
    {"slug", is_slug, NULL, "a slug (lower-case words joined by - or _, e.g. 'spring-sale')", false},
    {"email", is_email, NULL, "an email address (e.g. 'ana@example.com')", false},
    {"url", is_url, NULL, "a URL (e.g. 'https://example.com/a')", false},
};

static const struct id_format *format_named(struct str name)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (str_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}

bool id_format_is_known(struct str name)
{
    return format_named(name) || (str_starts(name, PREFIX) && name.len > sizeof(PREFIX) - 1);
}

const char *id_format_mismatch(struct str name, const struct json *value)
{
    static char prefix_expected[128];
    const struct id_format *format = format_named(name);
    bool number = json_is(value, JSON_NUMBER);
    struct str text = number ? (struct str){value->text, value->len} : json_str(value);
    if (!name.len)
        return NULL;
    if (format) {
        bool fits = format->fits ? format->fits(text) : all_of(text, format->is);
        return fits && (!number || format->numbers) ? NULL : format->expected;
    }
    struct str prefix = str_from(name, sizeof(PREFIX) - 1);
    if (!number && text.len > prefix.len && str_eq((struct str){text.at, prefix.len}, prefix))
        return NULL;
    snprintf(prefix_expected, sizeof(prefix_expected), "an id that begins with '" STR_FMT "'",
             STR_ARG(str_cut(prefix, 64)));
    return prefix_expected;
}

/*
 * Checks of strings: the formats that toolgate asserts, each with a check, a name for messages and an
 * example; URIs by RFC 3986, ASCII only; and regular expressions as JSON Schema means them (ECMA-262,
 * unanchored), by PCRE2 with bounded work. Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_FORMAT_H
#define TOOLGATE_SCHEMA_FORMAT_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct arena;
struct pattern;

struct format {
    const char *name;    /* "date-time" */
    const char *title;   /* "ISO datetime" */
    const char *example; /* "2026-05-03T00:00:00Z" */
    bool (*check)(struct str s);
    bool (*check_local)(struct str s); /* fits but for its time zone; NULL: the format has none */
    uint32_t steps;                    /* of a check, beside those of its bytes; see SCHEMA_MAX_STEPS */
};

/* NULL: unknown, or an annotation only. */
const struct format *format_find(struct str name);

/* A date, time, date-time or URI as the format wants it, if that is what the text says in one reading:
 * "2026-05-03 9:00 +0200" as "2026-05-03T09:00:00+02:00", for a date "2026-05-03 00:00:00" as "2026-05-03",
 * and "https://a.de/Käse und Brot" as "https://a.de/K%C3%A4se%20und%20Brot". No zone and no scheme is made
 * up. Empty: none. */
struct str format_respell(struct arena *arena, const struct format *format, struct str text);

/* A date-time that only lacks its zone; and its seconds since 1970 by the clocks of wherever it is. */
bool format_is_local_date_time(struct str s);
int64_t format_local_seconds(struct str s);

/* ---- URIs ---- */

/* With their punctuation: "http:", "//host", "/path", "?query", "#fragment". */
struct uri_parts {
    struct str scheme, authority, path, query, fragment;
};
struct uri_parts uri_parts(struct str uri);

bool uri_is_scheme(struct str name); /* without the colon */

/* user@host:port, each part but the host optional; *port begins with the colon, and an address as *host is in
 * brackets. False: a bracket that is not closed, or a port that is no number. Which characters the user and
 * the host have is not checked. */
bool uri_authority(struct str authority, struct str *user, struct str *host, struct str *port);

/* The target of `reference` seen from `base`. Neither needs to be valid, and either may be empty or relative:
 * real schemas have such identifiers. */
struct str uri_resolve(struct arena *arena, struct str base, struct str reference);

/* The URI without "#fragment"; *fragment: what follows the '#', at NULL if none exists. */
struct str uri_split(struct str uri, struct str *fragment);

/* %XX decoded. */
struct str uri_decode(struct arena *arena, struct str s);

/* ---- regular expressions ---- */

#define PATTERN_MAX_BYTES         8192u  /* of an expression */
#define PATTERN_SUBJECT_MAX_BYTES 32768u /* of a string to match */

/* The compiled expression lives in the arena. ERR_SCHEMA with the reason if it is not valid. */
enum err pattern_compile(struct arena *arena, struct str expression, struct pattern **out, struct why *why);

/* Whether ECMA-262 accepts it, even if PCRE2 cannot (a lookbehind of variable width). */
bool pattern_is_regex(struct str expression);

enum pattern_result { PATTERN_MATCH, PATTERN_NO_MATCH, PATTERN_TOO_COMPLEX };

/* Takes what it examines off the steps (SCHEMA_MAX_STEPS is of the same kind). PATTERN_TOO_COMPLEX: they do
 * not suffice, or the subject is too long. */
enum pattern_result pattern_match(const struct pattern *pattern, struct str subject, uint32_t *steps);

/* The memory of the compiled expression: counted repeats make it many times its text. */
size_t pattern_code_bytes(const struct pattern *pattern);

#endif

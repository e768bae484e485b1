/*
 * Text to value: yajl for the grammar, and a strict pass around it for what
 * yajl lets through (bad UTF-8, lone surrogates, a second value, depth).
 */
#ifndef TOOLGATE_JSON_PARSE_H
#define TOOLGATE_JSON_PARSE_H

#include "base/err.h"
#include "json/value.h"

#include <stdint.h>

struct arena;

#define JSON_MAX_DEPTH 128u
#define JSON_MAX_NODES 100000u

struct json_limits {
    uint32_t depth, nodes; /* 0: the defaults above */
};

enum json_error_code {
    JSON_ERROR_NONE,
    JSON_ERROR_SYNTAX,
    JSON_ERROR_UTF8,
    JSON_ERROR_SURROGATE,     /* \ud800 without its partner */
    JSON_ERROR_DUPLICATE_KEY, /* with its path */
    JSON_ERROR_DEPTH,
    JSON_ERROR_NODES,
    JSON_ERROR_TRAILING, /* something after the value */
    JSON_ERROR_EMPTY,
    JSON_ERROR_SIZE /* text of 4 GiB or more */
};

/*
 * Where and what. Duplicate keys and lone surrogates are *soft*: the value is
 * still built (the later duplicate wins, the surrogate becomes U+FFFD), so
 * that a caller can read the id of the request and answer it; `out` is valid
 * then, and only then, although json_parse failed.
 */
struct json_error {
    enum json_error_code code;
    bool soft;
    size_t offset;  /* byte in the text */
    char text[256]; /* one sentence, e.g. "duplicate key 'limit' in params.arguments" */
};

/* `text` is borrowed by the value: it must live as long as the arena. Returns OK, ERR_PARSE or ERR_LIMIT;
 * `fault` (required) is filled on failure. */
enum err json_parse(struct arena *arena, struct str text, const struct json_limits *limits, struct json *out,
                    struct json_error *fault);

/* For messages too broken to parse: the value text of a top-level "id" (string or integer) if one can be
 * read, else STR_NONE. Looks at the first 64 KiB only and believes nothing else. */
struct str json_recover_id(struct str text);

/* Reads a whole file (at most max_bytes) into the arena and parses it, with the default depth and no limit on
 * nodes but a sane one; `why` says file:line on failure. Never waits: what is no file is refused. */
enum err json_read_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                        struct why *why);

/* The same for files that people keep in their editors: // and block comments, a comma behind the last member
 * and a byte order mark are left out. */
enum err json_read_commented_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                                  struct why *why);

/* For commands: also from a pipe, as of <(…), for whose writer it waits. */
enum err json_read_input(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                         struct why *why);

#endif

/*
 * Parses JSON text: yajl for the grammar, with strict checks for what yajl
 * accepts (invalid UTF-8, lone surrogates, a second value, depth).
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
    JSON_ERROR_SURROGATE,     /* \ud800 without its pair */
    JSON_ERROR_DUPLICATE_KEY, /* with its path */
    JSON_ERROR_DEPTH,
    JSON_ERROR_NODES,
    JSON_ERROR_TRAILING, /* something after the value */
    JSON_ERROR_EMPTY,
    JSON_ERROR_SIZE /* text of 4 GiB or more */
};

/*
 * Where and what. Duplicate keys and lone surrogates are *soft* errors: the
 * value is still built (the later duplicate wins, the surrogate becomes
 * U+FFFD), so that the caller can read the id of the request and answer it. Of
 * failures only these leave `out` valid.
 */
struct json_error {
    enum json_error_code code;
    bool soft;
    size_t offset;  /* byte in the text */
    char text[256]; /* the message, e.g. "duplicate key 'limit' in params.arguments" */
};

/* The value refers to `text`, which must live as long as the arena. Returns OK, ERR_PARSE or ERR_LIMIT;
 * `error` is filled on failure; it may be NULL. */
enum err json_parse(struct arena *arena, struct str text, const struct json_limits *limits, struct json *out,
                    struct json_error *error);

/* The same for a text that others have written, if need be with bytes that are no UTF-8 replaced by U+FFFD,
 * raw control characters by escapes, NaN and Infinity by null; duplicate keys and lone surrogates are OK.
 * `what`: what was replaced, for the log; NULL: nothing. */
enum err json_parse_repaired(struct arena *arena, struct str text, const struct json_limits *limits,
                             struct json *value, struct json_error *error, const char **what);

/* The text without a byte order mark, which some programs on Windows write first (RFC 8259, section 8.1, lets
 * a reader ignore it). */
static inline struct str json_skip_byte_order_mark(struct str text)
{
    return str_starts(text, "\xEF\xBB\xBF") ? str_from(text, 3) : text;
}

/* For messages that do not parse: the literal of a top-level "id" (string or integer), or STR_NONE. Reads the
 * first 64 KiB only. */
struct str json_recover_id(struct str text);

/* Parses a regular file of at most max_bytes, with the default depth and a high limit of nodes. On failure
 * `why` begins with file:line. */
enum err json_read_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                        struct why *why);

/* The same for files that people edit: accepts // and block comments, a comma after the last member and a
 * byte order mark. A duplicate key is no failure here: OK, with `why` filled. */
enum err json_read_commented_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                                  struct why *why);

/* For commands: also reads a pipe, such as <(…), and waits for its writer. */
enum err json_read_input(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                         struct why *why);

#endif

/* Messages of the parser: what is wrong, where, and how to fix it. Private to src/json. */
#ifndef TOOLGATE_JSON_PARSE_ERROR_H
#define TOOLGATE_JSON_PARSE_ERROR_H

#include "json/parse.h"
#include "json/string.h"

/* Keeps the first hard error, or else the first soft one. */
void parse_error_set(struct json_error *error, enum json_error_code code, size_t offset, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

static inline bool parse_error_is_soft(enum json_error_code code)
{
    return code == JSON_ERROR_DUPLICATE_KEY || code == JSON_ERROR_SURROGATE;
}

/* Translates yajl's message. `consumed`: bytes that yajl read; `last_end`: the end of the last valid token;
 * `at_end`: yajl failed only at the end of the text; `open`: brackets that are still open. */
void parse_error_syntax(struct json_error *error, struct str text, const char *yajl_message, size_t consumed,
                        size_t last_end, bool at_end, uint32_t open);

/* What is at `at`, for "found …": a word or one character in quotes, a control byte by its code, or the end.
 */
#define PARSE_ERROR_QUOTE_BYTES 48
void parse_error_quote(char out[PARSE_ERROR_QUOTE_BYTES], struct str text, size_t at);

/* The index of the first byte from `at` on that is not white space. */
static inline size_t parse_error_skip_space(struct str text, size_t at)
{
    while (at < text.len && ascii_is_space(text.at[at]))
        at++;
    return at;
}

#endif

/*
 * The inside of JSON strings: UTF-8, escapes, and fast scanning of plain ASCII.
 * Private to src/json.
 */
#ifndef TOOLGATE_JSON_STRING_H
#define TOOLGATE_JSON_STRING_H

#include "base/str.h"

#include <stdint.h>

#define REPLACEMENT_CHARACTER "\xEF\xBF\xBD" /* U+FFFD */

/* Copies a string of at most 32 bytes none of which needs an escape. False: it is another, and `out`, with
 * room for all of it, holds anything. */
bool json_string_copy_short(char *out, struct str s);

/* What json_string_encode may write for `len` bytes: the longest escape, \u001f, for each, and a vector. */
#define JSON_STRING_ENCODED_BYTES(len) ((len)*6u + 16u)

/* Writes the bytes from *p to `stop` as the inside of a string literal, invalid UTF-8 as U+FFFD, and returns
 * how many it wrote. *p: where it stopped, which is behind `stop` in the middle of a UTF-8 sequence; the
 * string ends at `end`. `out` has JSON_STRING_ENCODED_BYTES of space, of which what is behind the result may
 * be overwritten. */
size_t json_string_encode(char *out, const char **p, const char *stop, const char *end);

enum json_string_error {
    JSON_STRING_OK,
    JSON_STRING_BAD_UTF8,
    JSON_STRING_BAD_SPACE,
    JSON_STRING_LONE_SURROGATE
};

/* Checks a whole text before it is parsed for what yajl accepts: invalid UTF-8, \v and \f as white space, and
 * lone surrogates, which are reported only if there is no other error. *offset: where. */
enum json_string_error json_string_check(struct str text, size_t *offset);

/* Decodes the inside of a valid string literal, a lone surrogate as U+FFFD. `out` needs space for literal.len
 * bytes; returns how many were written. *lone: there was a lone surrogate. */
size_t json_string_decode(char *out, struct str literal, bool *lone);

#endif

/* What is wrong with a text, where, and how to mend it, in one sentence. Only this room uses it. */
#ifndef TOOLGATE_JSON_PARSE_ERROR_H
#define TOOLGATE_JSON_PARSE_ERROR_H

#include "json/parse.h"

/* Keeps the first hard fault, or else the first soft one; the sentence starts with the byte it is about. */
void parse_error_set(struct json_error *fault, enum json_error_code code, size_t offset, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

bool parse_error_is_soft(enum json_error_code code);

/* From yajl's own words to ours. `consumed`: how far yajl got; `last_end`: where the last good token ended;
 * `at_end`: yajl complained only when told that the text is over; `open`: brackets not closed yet. */
void parse_error_syntax(struct json_error *fault, struct str text, const char *yajl_words, size_t consumed,
                        size_t last_end, bool at_end, uint32_t open);

/* What stands at `at`, for "found …": a word or one character in quotes, a control byte by its code, or the
 * end. */
#define PARSE_ERROR_QUOTE_BYTES 48
void parse_error_quote(char out[PARSE_ERROR_QUOTE_BYTES], struct str text, size_t at);

/* JSON's four white space characters, from `at` on. */
size_t parse_error_skip_space(struct str text, size_t at);

#endif

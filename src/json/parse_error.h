/* What is wrong with a text, where, and how to mend it, in one sentence. Only this room uses it. */
#ifndef TOOLGATE_JSON_PARSE_ERROR_H
#define TOOLGATE_JSON_PARSE_ERROR_H

#include "json/parse.h"

/* Keeps the first hard fault, or else the first soft one; the sentence starts with the byte it is about. */
void fault_set(struct json_fault *fault, enum json_fault_code code, size_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

bool fault_is_soft(enum json_fault_code code);

/* From yajl's own words to ours. `consumed`: how far yajl got; `last_end`: where the last good token ended;
 * `at_end`: yajl complained only when told that the text is over; `open`: brackets not closed yet. */
void fault_syntax(struct json_fault *fault, struct str text, const char *yajl_words, size_t consumed,
                  size_t last_end, bool at_end, uint32_t open);

/* What stands at `at`, for "found …": a word or one character in quotes, a control byte by its code, or the
 * end. */
#define FOUND_ROOM_BYTES 48
void fault_quote(char out[FOUND_ROOM_BYTES], struct str text, size_t at);

/* JSON's four white space characters, from `at` on. */
size_t fault_skip_space(struct str text, size_t at);

#endif

/*
 * What the files envelope*.c share: how names are compared, phrases of texts,
 * questions. Only they include this header.
 */
#ifndef TOOLGATE_RESULT_FAILURE_ENVELOPE_INTERNAL_H
#define TOOLGATE_RESULT_FAILURE_ENVELOPE_INTERNAL_H

#include "result/failure_envelope.h"

#define ENVELOPE_NAME_MAX_BYTES 24u /* a longer name means nothing to us */

/* ---- failure_envelope_names.c ------------------------------------------------------- */

/* In small letters, without "_", "-" and spaces: "isError", "is_error" and "is-error" are one. */
struct str envelope_name(struct str key, char out[ENVELOPE_NAME_MAX_BYTES]);
bool envelope_is_one_of(struct str text, const struct str *words, size_t count);
#define IS_ONE_OF(text, words) envelope_is_one_of(text, words, sizeof(words) / sizeof(*(words)))

/* The member with the first of these names that says anything; NULL: none, or no object. */
const struct json *envelope_find(const struct json *object, const struct str *words, size_t count);
#define FIND(object, words) envelope_find(object, words, sizeof(words) / sizeof(*(words)))

/* "none", false, 0, "": no error at all, as some write it. */
bool envelope_is_no_error(const struct json *value);

/* ---- failure_envelope_ask.c --------------------------------------------------------- */

/* Does the object ask something of the user? Fills `e` in. */
bool envelope_read_question(struct arena *arena, const struct json *object, struct envelope *e);

/* ---- failure_envelope_text.c -------------------------------------------------------- */

/* Is it a message of an error, and by which code: NULL where not. */
const char *envelope_text_failure(struct str text);
/* "rate_limited", "timed_out", … where the words say that it passes; NULL otherwise. */
const char *envelope_text_transient(struct str text);
const char *envelope_status_transient(int64_t http_status);
/* "try again in 5 minutes": 300; -1: not told. */
int64_t envelope_text_wait(struct str text);
/* A duration that stands alone: "34s", "500 ms", "2". */
int64_t envelope_duration(struct str text);
/* It begins with a word about several that fit, and asks which is meant. */
bool envelope_text_asks(struct str text);

#endif

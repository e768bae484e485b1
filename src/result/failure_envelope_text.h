/* Phrases of error messages. Only failure_envelope*.c include this header. */
#ifndef TOOLGATE_RESULT_FAILURE_ENVELOPE_TEXT_H
#define TOOLGATE_RESULT_FAILURE_ENVELOPE_TEXT_H

#include "base/str.h"

/* The code of a text that is an error message; NULL: it is not. */
const char *envelope_text_failure(struct str text);

/* "rate_limited", "timed_out", … if the text or the HTTP status means a transient failure; NULL otherwise. */
const char *envelope_text_transient(struct str text);
const char *envelope_status_transient(int64_t http_status);

/* Seconds: 300 for "try again in 5 minutes"; -1: none. */
int64_t envelope_text_wait(struct str text);

/* Seconds of a duration alone: "34s", "500 ms", "2"; -1: not a duration. */
int64_t envelope_duration(struct str text);

/* It begins by naming several matches, and asks which is meant. */
bool envelope_text_asks(struct str text);

#endif

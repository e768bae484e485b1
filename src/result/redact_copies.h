/*
 * The values that a redaction hid, to be found again in texts that repeat them. Only redact*.c and
 * the decision log include this header.
 */
#ifndef TOOLGATE_RESULT_REDACT_COPIES_H
#define TOOLGATE_RESULT_REDACT_COPIES_H

#include "json/value.h"

struct arena;
struct redact_copy;

struct redact_copies {
    struct arena *arena;
    struct redact_copy *by_first[256]; /* by first byte in lower case; of one byte the longest first */
    size_t count;
    bool overflow; /* more than REDACT_COPIES_MAX: not all are here */
};

/* Remembers every string and number in a hidden value, also as JSON would escape it. */
void redact_copies_add(struct redact_copies *copies, const struct json *hidden);

/* The text with each copy masked, in any case of letters, unless it is a part of a longer word or number. The
 * text itself if it has none. */
struct str redact_copies_mask(const struct redact_copies *copies, struct str text);

/* The text with the value behind "field:", "field=" and "\"field\":" masked: for texts that are no JSON, or
 * JSON that breaks off. `fields` as in redact_result; of a path the last name counts. */
struct str redact_named_values(struct arena *arena, const struct str *fields, size_t count, struct str text);

#endif

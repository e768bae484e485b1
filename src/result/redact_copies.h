/*
 * What a redaction looks for in texts: the values that it hid, to be found again where a text repeats them;
 * and the names of the fields, in texts that are no JSON or JSON that breaks off. Only redact.c and the
 * decision log include this header.
 */
#ifndef TOOLGATE_RESULT_REDACT_COPIES_H
#define TOOLGATE_RESULT_REDACT_COPIES_H

#include "base/str.h"
#include "json/value.h"

struct arena;
struct redact_copy;

#define REDACT_STEPS_MAX                                                                                     \
    4000000u /* of about 2 ns each, to add copies and to find them in all texts of a result */
#define REDACT_START_BITS 10u

/* Zeroed at first, but for the arena. */
struct redact_copies {
    struct arena *arena;
    struct redact_copy *list;
    size_t count, room;
    uint16_t *slots; /* numbers in `list` from 1; 0: free */
    size_t slot_count;
    uint64_t *lengths; /* by a hash of the first bytes: bit n for a key of n bytes */
    bool begins[256];  /* by the first byte, in any case */
    size_t steps;      /* of REDACT_STEPS_MAX */
    bool overflow;     /* more than REDACT_COPIES_MAX, or more steps: not all are masked */
};

/* Remembers every string and number in a hidden value, also as JSON would escape it. */
void redact_copies_add(struct redact_copies *copies, const struct json *hidden);

/* The text with each copy masked, in any case of letters, unless it is a part of a longer word or number. The
 * text itself if it has none; "[redacted]" whole once the search took too many steps. */
struct str redact_copies_mask(struct redact_copies *copies, struct str text);

/* Zeroed before redact_names_of. */
struct redact_names {
    struct str *list; /* the last name of each field */
    size_t count;
    bool begins[256]; /* by the first byte, in any case */
};

/* `fields` as in redact_result, and borrowed. */
void redact_names_of(struct redact_names *names, struct arena *arena, const struct str *fields, size_t count);

/* The text with the value behind "field:", "field=" and "\"field\":" masked; the text itself if it has none.
 */
struct str redact_named_values(struct arena *arena, struct redact_names *names, struct str text);

#endif

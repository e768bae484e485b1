/* The names of redacted fields in texts that are no JSON, or JSON that breaks off. Only redact.c includes
 * this header. */
#ifndef TOOLGATE_RESULT_REDACT_NAMES_H
#define TOOLGATE_RESULT_REDACT_NAMES_H

#include "base/str.h"

struct arena;

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

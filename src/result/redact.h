/*
 * Redaction: fields of a result that only the tool may see are masked in every place where the model, facts,
 * quotes, logs or the policy could read them: structured content, text blocks, JSON inside strings, embedded
 * resources, `_meta`, error texts, and texts that repeat a masked value. Binary data is not searched.
 *
 * A mask keeps the type, so that clients that validate accept the result: a string becomes "[redacted]", a
 * number 0, a boolean false, a list [], an object {}; where the output schema forbids that, a sample of the
 * field's schema, or nothing if the field is optional.
 */
#ifndef TOOLGATE_RESULT_REDACT_H
#define TOOLGATE_RESULT_REDACT_H

#include "base/str.h"
#include "json/value.h"
#include "result/result.h"

struct arena;
struct redact_copy;
struct schema;

#define REDACTED "[redacted]"

#define REDACT_COPY_MIN_BYTES   4u    /* shorter masked strings are not looked for in other texts */
#define REDACT_NUMBER_MIN_BYTES 6u    /* the same for numbers: a year or a count is in many texts */
#define REDACT_COPIES_MAX       4096u /* different masked values of one result; with more it is withheld */
#define REDACT_NESTED_MAX       4u    /* JSON in a string in JSON in a string …; deeper JSON is text */
#define REDACT_FIELDS_MAX       64u   /* of a policy that redact_found.fields tells of */

enum redact_status {
    REDACT_NOTHING, /* `result` is unchanged */
    REDACT_DONE,
    REDACT_UNFIT,      /* it cannot be masked so that the output schema accepts it: to be withheld */
    REDACT_TOO_COMPLEX /* it holds more than REDACT_COPIES_MAX values to mask, or too much text to find their
                          copies in: to be withheld */
};

/* What a redaction found; zeroed by the caller, and only added to. */
struct redact_found {
    uint64_t fields; /* bit i: fields[i] is in a result, for i < REDACT_FIELDS_MAX */
    bool blank;      /* a mask could be read as data: 0, false, [], {} */
};

/* `fields`: paths as in gives_ids ("customers[].email"), or the bare name of a field anywhere. `output`: the
 * output schema, which a result that was valid stays valid for; NULL: none. */
enum redact_status redact_result(struct arena *arena, const struct str *fields, size_t count,
                                 const struct schema *output, struct result *result,
                                 struct redact_found *found);

/* An error message, where only text of the form "field: value" is recognised. Itself if none exists. */
struct str redact_text(struct arena *arena, const struct str *fields, size_t count, struct str text);

/* A value without these fields, which are left out instead; itself if it has none of them. An item of a list
 * becomes null. `value` may be NULL. */
const struct json *redact_without(struct arena *arena, const struct str *fields, size_t count,
                                  const struct json *value);

/* Which of the fields, by its path or its bare name, stands at this path under this key; `count`: none. */
size_t redact_field_at(const struct str *fields, size_t count, struct str path, struct str key);

/* ---- the hidden values, to be found again where a text repeats them; for the decision log, too ---- */

#define REDACT_STEPS_MAX                                                                                     \
    4000000u /* of about 2 ns each, to add copies and to find them in all texts of a result */
#define REDACT_START_BITS 10u

/* Zeroed at first, but for the arena. */
struct redact_copies {
    struct arena *arena;
    struct redact_copy *list;
    size_t count;
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

#endif

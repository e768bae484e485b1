/*
 * What a result says of itself: that it failed although it claims success,
 * that it would work a little later, that the user has to decide something.
 * By the conventions of the field alone, and only where there is hardly
 * another way to read it: a record that has an `error` of its own, a list of
 * failed jobs, a log that begins with "Error:" are results like any other.
 */
#ifndef TOOLGATE_RESULT_FAILURE_ENVELOPE_H
#define TOOLGATE_RESULT_FAILURE_ENVELOPE_H

#include "result/result.h"

#define ENVELOPE_TEXT_MAX_BYTES 1000u /* a text that is longer is no message, whatever it begins with */
#define ENVELOPE_LINES_MAX      12u
#define ENVELOPE_WAIT_MAX_S     86400
#define ENVELOPE_QUESTION_BYTES 1000u
#define ENVELOPE_CHOICES_MAX    20u
#define ENVELOPE_CHOICES_BYTES  4096u /* of the choices together, as JSON; more of them are left out */
#define ENVELOPE_MEMBERS_MAX    24u   /* of an object; one with more is data */
#define ENVELOPE_DEPTH          5u    /* levels that are looked at for a time to wait */

enum envelope_kind { ENVELOPE_NONE, ENVELOPE_FAILED, ENVELOPE_TRANSIENT, ENVELOPE_NEEDS_INPUT };

struct envelope {
    enum envelope_kind kind;
    const char *code;           /* by what it was recognised: "success_false", "rate_limited", … */
    int64_t after_s;            /* transient: when to ask again; -1: not told */
    struct str question;        /* asks: the tool's own words, cut; empty: it has none */
    const struct json *choices; /* asks: an array, the first few; NULL: none */
    size_t choices_left_out;
};

/* Of a result that claims success. */
struct envelope envelope_detect(struct arena *arena, const struct result *result);

/* Of one that is told to be an error: FAILED with no code where it says nothing of the two others. */
struct envelope envelope_of_error(struct arena *arena, const struct result *result);

/* The same of an error's message alone. */
struct envelope envelope_of_message(struct str message);

#endif

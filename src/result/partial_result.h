/*
 * Partial results: answers that say themselves that more follows, and the arguments that ask for it. Only
 * what the answer states in a place made for it counts; "1 of the best" or "3 of 3" does not.
 */
#ifndef TOOLGATE_RESULT_PARTIAL_RESULT_H
#define TOOLGATE_RESULT_PARTIAL_RESULT_H

#include "result/result.h"

#define PARTIAL_SCAN_BYTES       300u  /* of a text that are searched: its beginning, and its end */
#define PARTIAL_MEMBERS_MAX      24u   /* of an object that are looked at */
#define PARTIAL_CURSOR_BYTES     2048u /* a longer cursor is not suggested */
#define PARTIAL_CUT_OBJECT_BYTES 16u   /* a shorter text that begins like an object is no cut-off JSON */
#define PARTIAL_CUT_LIST_BYTES   64u   /* the same like a list: lines of logs do, too */

struct partial_result {
    /* "has_more", "next_cursor", "truncated", "n_of_m", "truncated_response"; NULL: complete */
    const char *code;
    struct str detail;
    const struct json *next; /* the arguments to change for the rest; NULL: unknown */
};

/* `input`: the tool's input schema as JSON; `args`: of this call. Either may be NULL. */
struct partial_result partial_result_detect(struct arena *arena, const struct result *result,
                                            const struct json *input, const struct json *args);

/* Where JSON in a text breaks off: "the answer was cut off after 812 bytes inside orders[0].total". Empty: it
 * is no JSON that was cut off. */
struct str partial_result_cut(struct arena *arena, const struct result *result);

#endif

/*
 * Reads JSON that is spelled oddly, as models and their frameworks write it,
 * where exactly one reading is possible, and tells where a text was cut off. It
 * never completes a text.
 */
#ifndef TOOLGATE_JSON_SPELLED_H
#define TOOLGATE_JSON_SPELLED_H

#include "json/value.h"

struct arena;

#define JSON_SPELLED_MAX_BYTES 16777216u /* of a text; a longer one is JSON_NOT_JSON */
#define JSON_CUT_PATH_BYTES    120u      /* of json_cut.path; its end is kept */

enum json_spelling {
    JSON_SPELLED,
    JSON_NOT_JSON, /* or more than one reading, or a duplicate key, or beyond the limits of json_parse */
    JSON_CUT_OFF   /* a beginning of JSON whose end is missing */
};

/* Where a text ends that was cut off. */
struct json_cut {
    size_t chars;    /* the length of the text in characters (code points) */
    struct str path; /* of the innermost unfinished member: "code", "items[2].name"; empty: at the top */
    unsigned open;   /* brackets */
    bool in_string;
};

/*
 * Reads strict JSON and
 *
 *   {"a": [1, 2,],}              a comma after the last member or item
 *   ```json {…} ```              a code fence around all of it
 *   "two                         newlines and tabs in strings
 *   lines"
 *   {\"a\": \"b\"}               the text was escaped once more, as the inside of a string
 *   {'a': True, 'b': None}       a Python literal: single quotes, True, False, None
 *
 * `out` is filled in for JSON_SPELLED, and refers to `text` or the arena; `cut` (may be NULL) for
 * JSON_CUT_OFF.
 */
enum json_spelling json_read_spelled(struct arena *arena, struct str text, struct json *out,
                                     struct json_cut *cut);

#endif

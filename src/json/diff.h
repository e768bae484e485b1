/*
 * Where two values differ, for a person to read: a line for each place, "-"
 * for what was expected there and "+" for what was found. (For programs there
 * is json/patch.h.)
 */
#ifndef TOOLGATE_JSON_DIFF_H
#define TOOLGATE_JSON_DIFF_H

#include "json/value.h"

struct arena;

#define JSON_DIFF_LINES_MAX       24u
#define JSON_DIFF_VALUE_MAX_BYTES 100u /* of a value in a line; the rest is cut */

struct difference {
    char sign;       /* '-' or '+' */
    struct str text; /* items[0].price = 12.5 */
};

struct json_diff_result {
    struct difference lines[JSON_DIFF_LINES_MAX];
    size_t count, more; /* more: lines beyond the limit */
};

/* Values are the same if json_equal says so. */
void json_diff_find(struct arena *arena, const struct json *expected, const struct json *got,
                    struct json_diff_result *out);

#endif

/* The differences of two values, for people to read and as a JSON Patch for programs. */
#ifndef TOOLGATE_JSON_DIFF_H
#define TOOLGATE_JSON_DIFF_H

#include "json/value.h"

struct arena;

#define JSON_DIFF_LINES_MAX       24u
#define JSON_DIFF_VALUE_MAX_BYTES 100u /* of a value in a line; the rest is cut */

struct json_diff_line {
    char sign;       /* '-' or '+' */
    struct str text; /* items[0].price = 12.5 */
};

struct json_diff_result {
    struct json_diff_line lines[JSON_DIFF_LINES_MAX];
    size_t count, more; /* more: lines beyond the limit */
};

/* A line for each place, "-" for what was expected there and "+" for what was found, in the order of the
 * expected value. Compares by json_equal. The lines are in the arena. */
void json_diff_find(struct arena *arena, const struct json *expected, const struct json *got,
                    struct json_diff_result *out);

/* A JSON Patch (RFC 6902) that turns `before` into `after`, an array, empty if nothing changed. It uses
 * `remove`, `add` and `replace` only; an array whose length changed is replaced whole, and so is `before` if
 * the paths would take too many bytes. Two numbers with different literals count as a change, even if they
 * are equal. */
struct json json_patch(struct arena *arena, const struct json *before, const struct json *after);

#endif

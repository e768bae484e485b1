/* The sets that gateway { check = …, result = … } names, looked for in every string and key of a value. What
 * is found is said by its pattern's name and its place, never by its text. */
#ifndef TOOLGATE_RESULT_PATTERN_SETS_H
#define TOOLGATE_RESULT_PATTERN_SETS_H

#include "base/str.h"
#include "json/value.h"
#include "policy/policy.h"

struct arena;

#define PATTERN_PATH_MAX_BYTES 200u /* of the place; a longer one is cut */

struct pattern_found {
    enum pattern_set set;
    struct str pattern; /* "github_token" */
    struct str path;    /* "headers.Authorization", "items[3].body"; empty: the value itself */
};

/* The first thing that one of the sets finds, in the order of the value. */
bool pattern_sets_find(struct arena *arena, unsigned sets, const struct json *value,
                       struct pattern_found *found);

/* The value with each secret as "[redacted github_token]" and without hidden characters, as far as the sets
 * say so; the value itself if none exists. NULL: NULL. */
const struct json *pattern_sets_mask(struct arena *arena, unsigned sets, const struct json *value);
struct str pattern_sets_mask_text(struct arena *arena, unsigned sets, struct str text);

/* The first order at or after `from`, in text[*at], *len bytes long; `name` is the phrase's, such as
 * "ignore_previous". False: none exists. */
bool order_text_find(struct str text, size_t from, size_t *at, size_t *len, struct str *name);

#endif

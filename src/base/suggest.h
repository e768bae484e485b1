/*
 * "Did you mean": the closest of some names. Equal names but for case and
 * separators rank first, then prefixes, then similarity relative to length, so
 * that `calculator` finds `calc` and `name` does not find `path`.
 */
#ifndef TOOLGATE_BASE_SUGGEST_H
#define TOOLGATE_BASE_SUGGEST_H

#include "base/str.h"

#define SUGGEST_MAX 5u

/* Writes the indexes of the closest candidates, best first, to out[SUGGEST_MAX] and returns how many are
 * close enough. */
size_t suggest_ranked(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MAX]);

/* The closest candidate, or STR_NONE if none is close enough. */
struct str suggest_closest(struct str word, const struct str *candidates, size_t count);

/* The candidate that the word is most likely a misspelling of: one slip (a letter added, left out, replaced
 * or swapped with its neighbour), two in long names, never in digits. Far stricter than suggest_closest, for
 * where a wrong guess does harm. STR_NONE: none. */
struct str suggest_misspelled(struct str word, const struct str *candidates, size_t count);

#endif

/*
 * "Did you mean": equal but for case and separators first, then prefix and
 * similarity relative to length, so that `calculator` finds `calc` and `name`
 * does not find `path`.
 */
#ifndef TOOLGATE_BASE_SUGGEST_H
#define TOOLGATE_BASE_SUGGEST_H

#include "base/str.h"

#define SUGGEST_MAX 5u

/* Indexes of the closest candidates, best first, into out[SUGGEST_MAX]; returns how many are close enough. */
size_t suggest(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MAX]);

/* The single closest candidate, or STR_NONE. */
struct str suggest_closest(struct str word, const struct str *candidates, size_t count);

#endif

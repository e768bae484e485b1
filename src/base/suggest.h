/*
 * "Did you mean": the closest of some names. Names are compared by their words, so that separators, case and
 * order do not count: `start_line` finds `lineStart`, `file_path` finds `path`, `titel` finds `title`. Names
 * that only share letters are not alike, nor are names with other digits.
 */
#ifndef TOOLGATE_BASE_SUGGEST_H
#define TOOLGATE_BASE_SUGGEST_H

#include "base/str.h"

#define SUGGEST_MAX 8u

/* How alike two names are; 0: not at all. */
#define SUGGEST_SAME  4000u /* but for case, separators and the order of words */
#define SUGGEST_CLOSE 1000u /* from here on: mistyped, abbreviated, or one of them says less */
unsigned suggest_score(struct str a, struct str b);

/* Writes the indexes of the most similar candidates, best first, to out[SUGGEST_MAX] and returns how many
 * there are. The last ones may merely share a word. */
size_t suggest_ranked(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MAX]);

/* What a tool of that name may have been meant for: the indexes of the closest candidates, best first,
 * min(count, SUGGEST_MEANT) of them however little they are like it. Verbs count as their synonyms:
 * fetch_mail finds read_email. */
#define SUGGEST_MEANT 3u
size_t suggest_meant(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MEANT]);

/* The closest candidate, or STR_NONE if none is close enough, or two are equally close. */
struct str suggest_closest(struct str word, const struct str *candidates, size_t count);

/* The candidate that the word is most likely a misspelling of: one slip (a letter added, left out, replaced
 * or swapped with its neighbour), two in long names, never in digits. Far stricter than suggest_closest, for
 * where a wrong guess does harm. STR_NONE: none. */
struct str suggest_misspelled(struct str word, const struct str *candidates, size_t count);

#endif

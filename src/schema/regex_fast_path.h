/*
 * Plain expressions, which most schemas' patterns are: anchored at the start,
 * a sequence of ASCII characters and classes with counts, in which no count
 * leaves a choice: ^[a-z][a-z0-9_]{0,62}$. They are matched in one walk,
 * without PCRE2, which takes ten times as long to start. All other
 * expressions are none. Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_REGEX_FAST_PATH_H
#define TOOLGATE_SCHEMA_REGEX_FAST_PATH_H

#include "base/str.h"

struct arena;
struct plain;

/* `expression`: one of ECMA-262 that PCRE2 took. NULL where it isn't plain. */
const struct plain *regex_fast_path_compile(struct arena *arena, struct str expression);

/* `subject` is UTF-8. */
bool regex_fast_path_matches(const struct plain *plain, struct str subject);

#endif

/*
 * A fast path for simple expressions, as most patterns in schemas are:
 * anchored at the start, a sequence of ASCII characters and classes with
 * counts that leave no choice, such as ^[a-z][a-z0-9_]{0,62}$. One walk over
 * the subject replaces PCRE2, which takes ten times as long to start. Internal
 * to this room.
 */
#ifndef TOOLGATE_SCHEMA_REGEX_FAST_PATH_H
#define TOOLGATE_SCHEMA_REGEX_FAST_PATH_H

#include "base/str.h"

struct arena;
struct fast_regex;

/* `expression`: of ECMA-262, accepted by PCRE2. NULL: not simple enough. */
const struct fast_regex *regex_fast_path_compile(struct arena *arena, struct str expression);

/* `subject` is UTF-8. */
bool regex_fast_path_matches(const struct fast_regex *regex, struct str subject);

#endif

/*
 * What pattern.c uses: the translation from ECMA-262's regular expressions to
 * PCRE2's, and a fast path for simple ones, as most patterns in schemas are:
 * anchored at the start, a sequence of ASCII characters and classes with counts
 * that leave no choice, such as ^[a-z][a-z0-9_]{0,62}$. One walk over the
 * subject replaces PCRE2, which takes ten times as long to start. Internal to
 * this room.
 */
#ifndef TOOLGATE_SCHEMA_REGEX_H
#define TOOLGATE_SCHEMA_REGEX_H

#include "base/buf.h"
#include "base/err.h"

struct arena;
struct fast_regex;

/* Appends the expression for PCRE2 (with UTF, without UCP) that matches what `expression` matches in
 * ECMA-262. ERR_SCHEMA with the reason if that is not valid; escaped punctuation is accepted, as it is
 * common. */
enum err regex_ecma_to_pcre(struct str expression, struct buf *out, struct why *why);

/* `expression`: of ECMA-262, accepted by PCRE2. NULL: not simple enough. */
const struct fast_regex *regex_fast_path_compile(struct arena *arena, struct str expression);

/* `subject` is UTF-8. */
bool regex_fast_path_matches(const struct fast_regex *regex, struct str subject);

#endif

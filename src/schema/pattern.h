/* Regular expressions as JSON Schema means them (ECMA-262, unanchored), by PCRE2 with bounded work. */
#ifndef TOOLGATE_SCHEMA_PATTERN_H
#define TOOLGATE_SCHEMA_PATTERN_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct arena;
struct pattern;

#define PATTERN_MAX_BYTES         8192u  /* of an expression */
#define PATTERN_SUBJECT_MAX_BYTES 32768u /* of a string to match */

/* The compiled expression lives in the arena. ERR_SCHEMA with the reason if it is not valid. */
enum err pattern_compile(struct arena *arena, struct str expression, struct pattern **out, struct why *why);

/* Whether ECMA-262 accepts it, even if PCRE2 cannot (a lookbehind of variable width). */
bool pattern_is_regex(struct str expression);

enum pattern_result { PATTERN_MATCH, PATTERN_NO_MATCH, PATTERN_TOO_COMPLEX };

/* Takes what it examines off the steps (SCHEMA_MAX_STEPS is of the same kind). PATTERN_TOO_COMPLEX: they do
 * not suffice, or the subject is too long. */
enum pattern_result pattern_match(const struct pattern *pattern, struct str subject, uint32_t *steps);

/* The memory of the compiled expression: counted repeats make it many times its text. */
size_t pattern_code_bytes(const struct pattern *pattern);

#endif

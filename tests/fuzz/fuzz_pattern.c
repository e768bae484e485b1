/*
 * Any regular expression (the first line of the input) on any string (the rest).
 * An expression compiles or is refused with a message; a match ends, and the
 * fast path agrees with PCRE2.
 */
#include "base/arena.h"
#include "schema/format.h"
#include "schema/schema.h"
#include "require.h"

#include <stdint.h>

/* PCRE2 requires valid UTF-8, which the parser checks before any use of a pattern. */
static bool is_utf8(struct str s)
{
    if (!s.len) /* nothing may be added to NULL, not even 0 */
        return true;
    const char *p = s.at, *end = s.at + s.len;
    size_t n = 1;
    while (p < end && (n = str_utf8_length(p, end)) > 0)
        p += n;
    return p == end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct str expression = arena_dup(arena, (struct str){(const char *)data, size}), subject = STR_NONE;
    const char *newline = size ? memchr(expression.at, '\n', size) : NULL;
    struct pattern *pattern;
    struct why why = {""};
    if (newline) {
        subject = str_from(expression, (size_t)(newline - expression.at) + 1);
        expression.len = (size_t)(newline - expression.at);
    }
    if (is_utf8(expression) && is_utf8(subject)) {
        bool regex = pattern_is_regex(expression);
        if (pattern_compile(arena, expression, &pattern, &why) == OK) {
            REQUIRE(regex);
            uint32_t few = 1000, steps = SCHEMA_MAX_STEPS;
            enum pattern_result easily = pattern_match(pattern, subject, &few);
            enum pattern_result answer = pattern_match(pattern, subject, &steps);
            REQUIRE(few <= 1000 && steps <= SCHEMA_MAX_STEPS);
            REQUIRE(easily == PATTERN_TOO_COMPLEX || easily == answer);
        } else {
            REQUIRE(why.text[0]);
        }
    }
    arena_free(arena);
    return 0;
}

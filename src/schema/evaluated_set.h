/*
 * Which members of an object, or items of an array, some keyword has
 * evaluated: one bit each. Kept only where an unevaluated* keyword asks; small
 * values need no memory but the stack's.
 */
#ifndef TOOLGATE_SCHEMA_EVALUATED_SET_H
#define TOOLGATE_SCHEMA_EVALUATED_SET_H

#include <stdbool.h>
#include <stdint.h>

#define MARKS_INLINE_WORDS 4u

struct marks {
    uint64_t small[MARKS_INLINE_WORDS];
    uint64_t *large; /* NULL: small is enough */
    uint32_t words;
};

void marks_init(struct marks *marks, uint32_t count);
void marks_clear(struct marks *marks);

static inline uint64_t *marks_words(struct marks *marks)
{
    return marks->large ? marks->large : marks->small;
}

static inline void marks_set(struct marks *marks, uint32_t at)
{
    if (marks)
        marks_words(marks)[at / 64] |= (uint64_t)1 << (at % 64);
}

static inline bool marks_has(struct marks *marks, uint32_t at)
{
    return marks_words(marks)[at / 64] >> (at % 64) & 1;
}

/* `into` may be NULL: then nobody asked. */
static inline void marks_merge(struct marks *into, struct marks *from)
{
    if (!into)
        return;
    for (uint32_t i = 0; i < from->words; i++)
        marks_words(into)[i] |= marks_words(from)[i];
}

#endif

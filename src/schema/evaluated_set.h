/*
 * Which members of an object, or items of an array, some keyword has
 * evaluated: one bit each. Kept only where an unevaluated* keyword asks; small
 * values need no memory but the stack's.
 */
#ifndef TOOLGATE_SCHEMA_EVALUATED_SET_H
#define TOOLGATE_SCHEMA_EVALUATED_SET_H

#include <stdbool.h>
#include <stdint.h>

#define EVALUATED_SET_INLINE_WORDS 4u

struct marks {
    uint64_t small[EVALUATED_SET_INLINE_WORDS];
    uint64_t *large; /* NULL: small is enough */
    uint32_t words;
};

void evaluated_set_init(struct marks *marks, uint32_t count);
void evaluated_set_clear(struct marks *marks);

static inline uint64_t *evaluated_set_words(struct marks *marks)
{
    return marks->large ? marks->large : marks->small;
}

static inline void evaluated_set_add(struct marks *marks, uint32_t at)
{
    if (marks)
        evaluated_set_words(marks)[at / 64] |= (uint64_t)1 << (at % 64);
}

static inline bool evaluated_set_has(struct marks *marks, uint32_t at)
{
    return evaluated_set_words(marks)[at / 64] >> (at % 64) & 1;
}

/* `into` may be NULL: then nobody asked. */
static inline void evaluated_set_merge(struct marks *into, struct marks *from)
{
    if (!into)
        return;
    for (uint32_t i = 0; i < from->words; i++)
        evaluated_set_words(into)[i] |= evaluated_set_words(from)[i];
}

#endif

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

struct evaluated_set {
    uint64_t small[EVALUATED_SET_INLINE_WORDS];
    uint64_t *large; /* NULL: small is enough */
    uint32_t words;
};

void evaluated_set_init(struct evaluated_set *evaluated, uint32_t count);
void evaluated_set_clear(struct evaluated_set *evaluated);

static inline uint64_t *evaluated_set_words(struct evaluated_set *evaluated)
{
    return evaluated->large ? evaluated->large : evaluated->small;
}

static inline void evaluated_set_add(struct evaluated_set *evaluated, uint32_t at)
{
    if (evaluated)
        evaluated_set_words(evaluated)[at / 64] |= (uint64_t)1 << (at % 64);
}

static inline bool evaluated_set_has(struct evaluated_set *evaluated, uint32_t at)
{
    return evaluated_set_words(evaluated)[at / 64] >> (at % 64) & 1;
}

/* `into` may be NULL: then nobody asked. */
static inline void evaluated_set_merge(struct evaluated_set *into, struct evaluated_set *from)
{
    if (!into)
        return;
    for (uint32_t i = 0; i < from->words; i++)
        evaluated_set_words(into)[i] |= evaluated_set_words(from)[i];
}

#endif

/*
 * Which members of an object or items of an array some keyword has evaluated:
 * one bit each. Kept only for a node with an unevaluated* keyword.
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

void evaluated_set_init(struct evaluated_set *set, uint32_t count);
void evaluated_set_clear(struct evaluated_set *set);

static inline uint64_t *evaluated_set_words(struct evaluated_set *set)
{
    return set->large ? set->large : set->small;
}

/* `set` may be NULL: not kept. */
static inline void evaluated_set_add(struct evaluated_set *set, uint32_t at)
{
    if (set)
        evaluated_set_words(set)[at / 64] |= (uint64_t)1 << (at % 64);
}

static inline bool evaluated_set_has(struct evaluated_set *set, uint32_t at)
{
    return evaluated_set_words(set)[at / 64] >> (at % 64) & 1;
}

/* `into` may be NULL: not kept. */
static inline void evaluated_set_merge(struct evaluated_set *into, struct evaluated_set *from)
{
    for (uint32_t i = 0; into && i < from->words; i++)
        evaluated_set_words(into)[i] |= evaluated_set_words(from)[i];
}

#endif

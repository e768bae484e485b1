/* A set of up to 256 places is on the stack, a larger one on the heap. */
#include "schema/evaluated_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void evaluated_set_init(struct evaluated_set *set, uint32_t count)
{
    memset(set, 0, sizeof(*set));
    set->words = (count + 63) / 64;
    if (set->words <= EVALUATED_SET_INLINE_WORDS)
        return;
    set->large = calloc(set->words, sizeof(uint64_t));
    if (!set->large) {
        fprintf(stderr, "toolgate: out of memory (%u bytes for an evaluated set)\n", set->words * 8);
        abort();
    }
}

void evaluated_set_clear(struct evaluated_set *set)
{
    free(set->large);
    set->large = NULL;
}

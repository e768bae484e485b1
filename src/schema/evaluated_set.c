/* Memory of evaluated: large objects alone need the heap. */
#include "schema/evaluated_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void evaluated_set_init(struct evaluated_set *evaluated, uint32_t count)
{
    memset(evaluated, 0, sizeof(*evaluated));
    evaluated->words = (count + 63) / 64;
    if (evaluated->words <= EVALUATED_SET_INLINE_WORDS)
        return;
    evaluated->large = calloc(evaluated->words, sizeof(uint64_t));
    if (!evaluated->large) {
        fprintf(stderr, "toolgate: out of memory (%u bytes wanted for marks)\n", evaluated->words * 8);
        abort();
    }
}

void evaluated_set_clear(struct evaluated_set *evaluated)
{
    free(evaluated->large);
    evaluated->large = NULL;
}

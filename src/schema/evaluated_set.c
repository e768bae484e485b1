/* Memory of marks: large objects alone need the heap. */
#include "schema/evaluated_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void evaluated_set_init(struct marks *marks, uint32_t count)
{
    memset(marks, 0, sizeof(*marks));
    marks->words = (count + 63) / 64;
    if (marks->words <= EVALUATED_SET_INLINE_WORDS)
        return;
    marks->large = calloc(marks->words, sizeof(uint64_t));
    if (!marks->large) {
        fprintf(stderr, "toolgate: out of memory (%u bytes wanted for marks)\n", marks->words * 8);
        abort();
    }
}

void evaluated_set_clear(struct marks *marks)
{
    free(marks->large);
    marks->large = NULL;
}

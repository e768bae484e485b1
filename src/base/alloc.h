/* Small control structures of a fixed size: running out of memory for one ends the process. What a client or
 * an upstream can size is allocated otherwise, and fails the call. */
#ifndef TOOLGATE_BASE_ALLOC_H
#define TOOLGATE_BASE_ALLOC_H

#include <stdlib.h>

/* Zeroed; free() frees it. */
static inline void *alloc_zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        abort();
    return memory;
}

#endif

/* Small control structures of a fixed size: running out of memory for one ends the process. What a client or
 * an upstream can size is allocated otherwise, and fails the call. */
#ifndef TOOLGATE_BASE_ALLOC_H
#define TOOLGATE_BASE_ALLOC_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the process; `format` says what the memory was for. */
#define alloc_failed(format, ...)                                                                            \
    (fprintf(stderr, "toolgate: out of memory (" format ")\n", __VA_ARGS__), abort())

/* Zeroed; free() frees it. */
static inline void *alloc_zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        abort();
    return memory;
}

#endif

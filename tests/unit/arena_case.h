/* An arena for each test: begin makes it, end frees it. */
#ifndef TOOLGATE_UNIT_ARENA_CASE_H
#define TOOLGATE_UNIT_ARENA_CASE_H

#include "base/arena.h"
#include "base/buf.h"

static struct arena *arena;

static inline int begin(void **state)
{
    (void)state;
    arena = arena_new();
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

#endif

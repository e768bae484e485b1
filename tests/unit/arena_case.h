/* An arena for each test. */
#ifndef TOOLGATE_UNIT_ARENA_CASE_H
#define TOOLGATE_UNIT_ARENA_CASE_H

#include "unit.h"
#include "base/arena.h"
#include "base/buf.h"

static struct arena *arena;

static int begin(void **state)
{
    (void)state;
    arena = arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

FIXTURE(begin, end)

#endif

/* An arena for each test. */
#ifndef TOOLGATE_UNIT_ARENA_CASE_H
#define TOOLGATE_UNIT_ARENA_CASE_H

#include "values.h"

static void open_arena(void)
{
    arena = arena_new();
}

static void close_arena(void)
{
    arena_free(arena);
}

USUAL_FIXTURE(open_arena, close_arena)

#endif

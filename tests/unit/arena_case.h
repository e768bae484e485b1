/* An arena for each test. */
#ifndef TOOLGATE_UNIT_ARENA_CASE_H
#define TOOLGATE_UNIT_ARENA_CASE_H

#include "unit.h"
#include "base/arena.h"
#include "base/buf.h"

static struct arena *arena;

static void begin(void)
{
    arena = arena_new();
}

static void end(void)
{
    arena_free(arena);
}

USUAL_FIXTURE(begin, end)

#endif

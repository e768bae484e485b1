/*
 * A text that repeats any unit takes each function that reads a peer's text a time that grows with its
 * length: that of TIMES the text is at most GROWTH_MAX times as long, unless both are short; a quadratic one
 * takes the square of TIMES. The shortest of several tries, as a machine may be busy.
 */
#include "linear.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE       10000u
#define TIMES      4u
#define UNIT_MAX   64u
#define GROWTH_MAX 8.0
#define SHORT_US   20000 /* of processor time, with sanitizers */
#define TRIES      4

static int64_t taken_us(const struct linear_case *c, struct str unit, size_t len)
{
    struct arena *arena = arena_new();
    struct str text = linear_text(arena, unit, len);
    int64_t began = clock_cpu_us();
    c->read(arena, text);
    int64_t us = clock_cpu_us() - began;
    arena_free(arena);
    return us;
}

static bool is_linear(const struct linear_case *c, struct str unit)
{
    int64_t least = INT64_MAX, most = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t one = taken_us(c, unit, SIZE), all = taken_us(c, unit, (size_t)TIMES * SIZE);
        least = one < least ? one : least;
        most = all < most ? all : most;
        if (most < SHORT_US || (double)most <= GROWTH_MAX * (double)least)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str unit = {(const char *)data, size < UNIT_MAX ? size : UNIT_MAX};
    for (size_t i = 0; unit.len && i < LINEAR_CASES; i++)
        if (!is_linear(&linear_cases[i], unit)) {
            fprintf(stderr, "fuzz_linear: %s is not linear in this unit\n", linear_cases[i].name);
            abort();
        }
    return 0;
}

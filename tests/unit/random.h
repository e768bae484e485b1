/* Random numbers that are the same in every run: xorshift, Marsaglia 2003. */
#ifndef TOOLGATE_UNIT_RANDOM_H
#define TOOLGATE_UNIT_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

/* Of [0, n). */
static uint32_t below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

#endif

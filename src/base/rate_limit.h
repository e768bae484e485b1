/* So many a second and no more, and how many were left out: of log lines that somebody else can cause. */
#ifndef TOOLGATE_BASE_RATE_LIMIT_H
#define TOOLGATE_BASE_RATE_LIMIT_H

#include "base/clock.h"

#include <stdbool.h>

struct trickle { /* embedded; all zero to begin with */
    int64_t since_us;
    uint32_t passed;
    uint64_t held; /* left out since the last one that passed */
};

/* True: this one may pass; *held then tells how many did not before it. */
static inline bool trickle_lets(struct trickle *trickle, uint32_t per_second, uint64_t *held)
{
    int64_t now = clock_mono_us();
    if (now - trickle->since_us >= 1000000) {
        trickle->since_us = now;
        trickle->passed = 0;
    }
    if (trickle->passed >= per_second) {
        trickle->held++;
        return false;
    }
    trickle->passed++;
    *held = trickle->held;
    trickle->held = 0;
    return true;
}

#endif

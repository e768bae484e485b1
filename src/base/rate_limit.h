/* So many a second and no more, and how many were left out: of log lines that somebody else can cause. */
#ifndef TOOLGATE_BASE_RATE_LIMIT_H
#define TOOLGATE_BASE_RATE_LIMIT_H

#include "base/clock.h"

#include <stdbool.h>

struct rate_limit { /* embedded; all zero to begin with */
    int64_t since_us;
    uint32_t passed;
    uint64_t held; /* left out since the last one that passed */
};

/* True: this one may pass; *held then tells how many did not before it. */
static inline bool rate_limit_allow(struct rate_limit *rate_limit, uint32_t per_second, uint64_t *held)
{
    int64_t now = clock_mono_us();
    if (now - rate_limit->since_us >= 1000000) {
        rate_limit->since_us = now;
        rate_limit->passed = 0;
    }
    if (rate_limit->passed >= per_second) {
        rate_limit->held++;
        return false;
    }
    rate_limit->passed++;
    *held = rate_limit->held;
    rate_limit->held = 0;
    return true;
}

#endif

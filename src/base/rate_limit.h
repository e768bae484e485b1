/* At most this many events a second, for log lines that a peer can cause; counts the suppressed ones. */
#ifndef TOOLGATE_BASE_RATE_LIMIT_H
#define TOOLGATE_BASE_RATE_LIMIT_H

#include "base/clock.h"

#include <stdbool.h>

struct rate_limit { /* embedded; initially zero */
    int64_t second_start_us;
    uint32_t allowed;
    uint64_t held; /* suppressed since the last allowed event */
};

/* If true, the event is allowed and *held is the number of events suppressed before it. */
static inline bool rate_limit_allow(struct rate_limit *limit, uint32_t per_second, uint64_t *held)
{
    int64_t now = clock_mono_us();
    if (now - limit->second_start_us >= 1000000) {
        limit->second_start_us = now;
        limit->allowed = 0;
    }
    if (limit->allowed >= per_second) {
        limit->held++;
        return false;
    }
    limit->allowed++;
    *held = limit->held;
    limit->held = 0;
    return true;
}

#endif

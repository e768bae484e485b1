/* The current time. Each name states clock and unit. */
#ifndef TOOLGATE_BASE_CLOCK_H
#define TOOLGATE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Since 1970: for records that people read, and the ledger's clock. */
static inline int64_t clock_wall_ms(void)
{
    return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

/* For what other programs compare with their own times. */
static inline int64_t clock_wall_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

/* Monotonic: for durations and deadlines. */
static inline int64_t clock_mono_us(void)
{
    return clock_read_ns(CLOCK_MONOTONIC) / 1000;
}

static inline int64_t clock_mono_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

/* The processor time of this thread: it does not grow while others run. */
static inline int64_t clock_cpu_us(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

#endif

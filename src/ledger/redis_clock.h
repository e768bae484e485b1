/*
 * The server's clock as seen from here: its distance from a local clock that nobody sets, read off TIME. The
 * local clock is CLOCK_BOOTTIME: it goes on while the machine is suspended.
 */
#ifndef TOOLGATE_LEDGER_REDIS_CLOCK_H
#define TOOLGATE_LEDGER_REDIS_CLOCK_H

#include "base/clock.h"
#include "ledger/redis_command.h"

struct redis_clock {
    int64_t ahead_us; /* the server's time minus the local clock */
    int64_t error_us; /* at most so far off: half the round trip */
    int64_t read_us;  /* by the local clock; 0: never */
};

static inline int64_t redis_clock_local_us(void)
{
    return clock_read_ns(CLOCK_BOOTTIME) / 1000;
}

/* `time` is the reply to a TIME that was sent at `asked_us` by the local clock. False: it is none. */
bool redis_clock_read(struct redis_clock *clock, const struct redis_value *time, int64_t asked_us);

/* Takes over `newer` unless it is much less exact than `clock` is still. */
void redis_clock_update(struct redis_clock *clock, const struct redis_clock *newer);

/* Since 1970; by the wall clock of this machine as long as no server's was read. */
int64_t redis_clock_now_ms(const struct redis_clock *clock);

#endif

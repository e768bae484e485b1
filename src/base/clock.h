/* The current time. Each name states clock and unit. */
#ifndef TOOLGATE_BASE_CLOCK_H
#define TOOLGATE_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970: for records that people read, and the ledger's clock */
int64_t clock_mono_us(void); /* monotonic: for durations and deadlines */
int64_t clock_mono_ns(void);

#endif

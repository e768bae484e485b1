/* Time, in whole units that the names say. */
#ifndef TOOLGATE_BASE_CLOCK_H
#define TOOLGATE_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970; for records people read and the ledger's clock */
int64_t clock_mono_us(void); /* never goes back; for durations and deadlines */
int64_t clock_mono_ns(void);

#endif

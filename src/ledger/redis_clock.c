/* A reading is as exact as its round trip is short. A busy server answers late now and then: such a reading
 * is dropped as long as the last good one is fresh enough for clocks that drift apart by DRIFT_PPM. */
#include "ledger/redis_clock.h"

#include <stdlib.h>

#define DRIFT_PPM 200
#define EXACT_US  1000 /* the ledger counts in milliseconds */

/* Digits only, as a server writes them. */
static bool read_number(const struct redis_value *value, int64_t most, int64_t *out)
{
    *out = 0;
    if (value->kind != REDIS_VALUE_STRING || value->string.len == 0 || value->string.len > 15)
        return false;
    for (size_t i = 0; i < value->string.len; i++) {
        if (!ascii_is_digit(value->string.at[i]))
            return false;
        *out = *out * 10 + (value->string.at[i] - '0');
    }
    return *out <= most;
}

bool redis_clock_read(struct redis_clock *clock, const struct redis_value *time, int64_t asked_us)
{
    int64_t now_us = redis_clock_local_us(), seconds, micros;
    if (time->kind != REDIS_VALUE_ARRAY || time->count != 2)
        return false;
    struct redis_value first = redis_value_at(time, 0), second = redis_value_at(time, 1);
    if (!read_number(&first, 253402300799, &seconds) || !read_number(&second, 999999, &micros))
        return false;
    clock->ahead_us = seconds * 1000000 + micros - (asked_us + now_us) / 2;
    clock->error_us = (now_us - asked_us) / 2;
    clock->read_us = now_us;
    return true;
}

void redis_clock_update(struct redis_clock *clock, const struct redis_clock *newer)
{
    int64_t age_us = newer->read_us - clock->read_us;
    int64_t error_us = clock->error_us + age_us / 1000000 * DRIFT_PPM;
    bool agree = llabs(newer->ahead_us - clock->ahead_us) <= newer->error_us + error_us;
    if (!clock->read_us || !agree || newer->error_us <= error_us || newer->error_us <= EXACT_US)
        *clock = *newer;
}

int64_t redis_clock_now_ms(const struct redis_clock *clock)
{
    return clock->read_us ? (redis_clock_local_us() + clock->ahead_us) / 1000 : clock_wall_ms();
}

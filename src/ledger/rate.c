/* See rate.h: lua/ledger/rate.lua follows the same arithmetic. */
#include "ledger/rate.h"

#define US_PER_S  1000000
#define US_PER_MS 1000

static bool has_taken(const struct rate_bucket *bucket, uint64_t admission)
{
    for (uint32_t i = 0; i < STORE_RATE_ADMISSIONS; i++)
        if (bucket->taken[i] == admission)
            return true;
    return false;
}

/* The level with one call more; `full`: what the rate holds. */
static int64_t raised(int64_t level, uint32_t count, uint32_t window_s, int64_t now_us, int64_t *full)
{
    int64_t step = ((int64_t)window_s * US_PER_S + count - 1) / count;
    *full = step * count;
    if (level < now_us)
        level = now_us;
    if (level > now_us + *full)
        level = now_us + *full;
    return level + step;
}

uint32_t rate_take(struct rate_bucket *bucket, const struct store_rate_request *request, int64_t now_ms)
{
    int64_t now_us = now_ms * US_PER_MS, wait_us = 0, levels[STORE_RATES_MAX];
    if (has_taken(bucket, request->admission))
        return 0;
    for (uint32_t i = 0; i < request->rate_count; i++) {
        uint32_t count = request->rates[i].count, window_s = request->rates[i].window_s;
        int64_t full = 0, wait = (int64_t)window_s * US_PER_S + 1;
        if (count > 0) {
            levels[i] = raised(bucket->level_us[i], count, window_s, now_us, &full);
            wait = levels[i] - now_us - full;
        }
        if (wait > wait_us)
            wait_us = wait;
    }
    if (wait_us > 0) {
        int64_t wait_ms = (wait_us + US_PER_MS - 1) / US_PER_MS;
        return wait_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)wait_ms;
    }
    memcpy(bucket->level_us, levels, request->rate_count * sizeof(*levels));
    bucket->taken[bucket->taken_at++ % STORE_RATE_ADMISSIONS] = request->admission;
    return 0;
}

int64_t rate_keep_ms(const struct store_rate_request *request)
{
    int64_t longest = RATE_KEEP_MS_MIN;
    for (uint32_t i = 0; i < request->rate_count; i++)
        if ((int64_t)request->rates[i].window_s * 1000 > longest)
            longest = (int64_t)request->rates[i].window_s * 1000;
    return longest;
}

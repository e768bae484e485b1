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

static int64_t level_of(const struct rate_bucket *bucket, uint32_t count, uint32_t window_s)
{
    for (uint32_t i = 0; i < STORE_RATES_MAX; i++)
        if (bucket->rates[i].count == count && bucket->rates[i].window_s == window_s)
            return bucket->rates[i].level_us;
    return 0;
}

/* The longest wait; `next` is the bucket with one call more. */
static int64_t wait_us(const struct rate_bucket *bucket, const struct store_rate_request *request,
                       int64_t now_us, struct rate_bucket *next)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < request->rate_count; i++) {
        uint32_t count = request->rates[i].count, window_s = request->rates[i].window_s;
        int64_t step = ((int64_t)window_s * US_PER_S + count - 1) / count, room = step * count;
        int64_t level = level_of(bucket, count, window_s);
        if (level < now_us)
            level = now_us;
        if (level > now_us + room)
            level = now_us + room;
        if (level + step - now_us - room > longest)
            longest = level + step - now_us - room;
        next->rates[i].count = count;
        next->rates[i].window_s = window_s;
        next->rates[i].level_us = level + step;
    }
    return longest;
}

static int64_t to_ms(int64_t us)
{
    return (us + US_PER_MS - 1) / US_PER_MS;
}

uint32_t rate_take(struct rate_bucket *bucket, const struct store_rate_request *request, int64_t now_ms)
{
    struct rate_bucket next = {.expires_ms = now_ms + RATE_KEEP_MS_MIN};
    if (has_taken(bucket, request->admission))
        return 0;
    int64_t wait = to_ms(wait_us(bucket, request, now_ms * US_PER_MS, &next));
    if (wait > 0)
        return wait < UINT32_MAX ? (uint32_t)wait : UINT32_MAX;
    memcpy(bucket->rates, next.rates, sizeof(next.rates));
    bucket->taken[bucket->taken_at++ % STORE_RATE_ADMISSIONS] = request->admission;
    bucket->expires_ms = next.expires_ms;
    for (uint32_t i = 0; i < request->rate_count; i++)
        if (to_ms(next.rates[i].level_us) > bucket->expires_ms)
            bucket->expires_ms = to_ms(next.rates[i].level_us);
    return 0;
}

/*
 * Rates by time window, as arithmetic on a plain struct (GCRA, a leaky bucket as a meter). The memory store
 * runs this file; lua/ledger/rate.lua does the same in Redis. Both work in whole microseconds, which a double
 * holds exactly.
 *
 *   now    the store's clock in ms, times 1000
 *   step   window / count, rounded up: what one call fills
 *   full   step * count
 *   level  until when the rate is filled. Before use: at least `now`, at most `now` + full, so that a clock
 *          put back or a rate made smaller keeps nobody out for longer than one window
 *
 * A rate has room for a call if level + step <= now + full; else there is room after level + step - now -
 * full, rounded up to ms. A call is taken if every rate has room: then each level rises by its step.
 * Otherwise none changes, and the answer is the longest wait. So `count` calls pass at once after a quiet
 * window, and then one for each step.
 *
 * A bucket remembers the admissions that it took last; asked again with one of them, it takes nothing and
 * says 0. Rates are told apart by their place in the list. A bucket is kept until rate_keep_ms after the last
 * call that it took.
 */
#ifndef TOOLGATE_LEDGER_RATE_H
#define TOOLGATE_LEDGER_RATE_H

#include "ledger/session_store.h"

struct rate_bucket { /* initially zero */
    int64_t level_us[STORE_RATES_MAX];
    uint64_t taken[STORE_RATE_ADMISSIONS]; /* a ring; 0: none */
    uint32_t taken_at;
};

#define RATE_KEEP_MS_MIN 60000 /* an admission may come again that long */

/* Sets level and taken if it takes the call, and returns 0; else returns the ms to wait, at least 1. A rate
 * of count 0 never has room: the wait is its window. */
uint32_t rate_take(struct rate_bucket *bucket, const struct store_rate_request *request, int64_t now_ms);

/* The longest window of the rates, at least RATE_KEEP_MS_MIN. */
int64_t rate_keep_ms(const struct store_rate_request *request);

#endif

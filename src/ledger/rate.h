/*
 * Rates by time window, as arithmetic on a plain struct (GCRA, a leaky bucket as a meter). The memory store
 * runs this file; lua/ledger/rate.lua does the same in Redis. Both work in whole microseconds, which a double
 * holds exactly:
 *
 *   step   window / count, rounded up: what one call fills
 *   room   step * count
 *   level  until when the rate is filled. Before use: at least now, at most now + room, so that a clock put
 *          back keeps nobody out for longer than a window
 *
 * A rate has room for a call if level + step <= now + room; else there is room after level + step - now -
 * room, rounded up to ms. A call is taken if every rate has room: then each level rises by its step.
 * Otherwise none changes, and the answer is the longest wait. So `count` calls pass at once after a quiet
 * window, and then one in each step.
 *
 * A bucket remembers the admissions that it took last; asked again with one of them, it takes nothing and
 * says 0. Its rates are told apart by count and window; the memory store forgets a rate that the last call
 * taken did not have, Redis when the bucket goes. A bucket is kept until all its rates are empty again, and
 * for RATE_KEEP_MS_MIN at least.
 */
#ifndef TOOLGATE_LEDGER_RATE_H
#define TOOLGATE_LEDGER_RATE_H

#include "ledger/session_store.h"

#define RATE_KEEP_MS_MIN 60000 /* after the last call that it took: its admission may come again */

struct rate_bucket { /* initially zero */
    struct {
        uint32_t count, window_s;
        int64_t level_us;
    } rates[STORE_RATES_MAX];              /* of the last call that was taken */
    uint64_t taken[STORE_RATE_ADMISSIONS]; /* a ring; 0: none */
    uint32_t taken_at;
    int64_t expires_ms; /* set with each call that is taken */
};

/* 0: the call is taken, or was; else the ms to wait, at least 1. Each rate's count is at least 1. */
uint32_t rate_take(struct rate_bucket *bucket, const struct store_rate_request *request, int64_t now_ms);

#endif

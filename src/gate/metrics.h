/* The counters of `toolgate status` since the daemon's start: calls by kind, verdict, class and ledger
 * engine. */
#ifndef TOOLGATE_GATE_METRICS_H
#define TOOLGATE_GATE_METRICS_H

#include "gate/verdict.h"

struct json_out;

#define METRICS_ENGINES 3

struct metrics {
    uint64_t calls, checks, reports, cancelled;
    uint64_t verdicts[VERDICT_HALT + 1];
    uint64_t classes[CLASS_COUNT];
    uint64_t would; /* verdicts not enforced: mode shadow, or no session */
    uint64_t chains_ended, fabricated_on_retry;
    uint64_t policy_errors;
    uint64_t rewrites; /* calls whose arguments were coerced or normalised */
    uint64_t engines[METRICS_ENGINES];
};

void metrics_count_verdict(struct metrics *metrics, const struct verdict *verdict);

/* `count` repair chains were still open when their turn ended. `metrics` may be NULL. */
static inline void metrics_count_abandoned_chains(struct metrics *metrics, uint32_t count)
{
    if (metrics)
        metrics->chains_ended += count;
}

/* Writes one object. */
void metrics_write(struct json_out *out, const struct metrics *metrics);

#endif

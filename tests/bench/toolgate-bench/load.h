/*
 * The load: connections that each keep `depth` requests in flight for some
 * seconds, every answer counted, looked at and timed.
 */
#ifndef TOOLGATE_BENCH_LOAD_H
#define TOOLGATE_BENCH_LOAD_H

#include "base/err.h"

#include <stdint.h>

#define LOAD_CONNECTIONS_MAX 1024u
#define LOAD_DEPTH_MAX       256u   /* limits.in_flight of a daemon nobody configured */
#define LOAD_WARM_UP_US      100000 /* not counted */
#define LOAD_SILENCE_MS      5000   /* no answer at all for this long: the daemon hangs */

struct load {
    const char *socket;
    const char *method; /* "toolgate/check", "tools/call" */
    const char *wanted; /* bytes that every answer must hold; NULL: any answer counts */
    unsigned connections, depth;
    double seconds;
};

struct load_result {
    uint64_t answers, unwanted; /* counted */
    uint64_t all_answers;       /* with those of the warm-up: what the daemon's CPU time went into */
    double seconds;
    double p50_us, p99_us;
    char sample[256]; /* the first unwanted answer */
};

enum err load_run(const struct load *load, struct load_result *result, struct why *why);

#endif

/*
 * Counts durations in buckets with fixed upper bounds. Embedded in what it measures; all zero is empty. The
 * bounds are shared by all histograms of one metric.
 */
#ifndef TOOLGATE_BASE_HISTOGRAM_H
#define TOOLGATE_BASE_HISTOGRAM_H

#include "base/buf.h"

#define HISTOGRAM_BOUNDS_MAX 24u

struct histogram_bound {
    int64_t ns;          /* inclusive */
    const char *seconds; /* the same for people and Prometheus: "0.001" */
};

struct histogram_bounds {
    struct histogram_bound list[HISTOGRAM_BOUNDS_MAX]; /* ascending */
    size_t count;
};

/* 1 us to 10 s, for stages and commands; 10 ms to 300 s, as OpenTelemetry advises for MCP. */
extern const struct histogram_bounds histogram_fine_bounds, histogram_mcp_bounds;

struct histogram {
    /* not cumulative; the one after the last bound has the rest */
    uint64_t buckets[HISTOGRAM_BOUNDS_MAX + 1];
    uint64_t sum_ns;
};

/* A negative duration counts as 0. */
static inline void histogram_add(struct histogram *h, const struct histogram_bounds *bounds, int64_t ns)
{
    size_t low = 0, high = bounds->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ns <= bounds->list[middle].ns)
            high = middle;
        else
            low = middle + 1;
    }
    h->buckets[low]++;
    h->sum_ns += ns > 0 ? (uint64_t)ns : 0;
}

static inline uint64_t histogram_count(const struct histogram *h)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
        count += h->buckets[i];
    return count;
}

#endif

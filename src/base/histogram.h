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

/*
 * Writes Prometheus' text format 0.0.4. The samples of a metric follow its head; a sample is its name, its
 * labels and its value:
 *
 *   prometheus_head(out, "x_total", "counter", "What x counts.");
 *   prometheus_name(out, "x_total");
 *   prometheus_label(out, "tool", name);
 *   prometheus_value(out, 5);
 *
 * `help` is one line without a backslash.
 */
void prometheus_head(struct buf *out, const char *name, const char *type, const char *help);
void prometheus_name(struct buf *out, const char *name);
void prometheus_label(struct buf *out, const char *key, struct str value); /* escaped */
void prometheus_value(struct buf *out, uint64_t value);
void prometheus_seconds(struct buf *out, int64_t ns);

/* A metric with one sample and no label. */
void prometheus_metric(struct buf *out, const char *name, const char *type, const char *help, uint64_t value);

/* `labels` as prometheus_label has written them into an empty buffer; may be empty. */
void prometheus_histogram(struct buf *out, const char *name, struct str labels,
                          const struct histogram *histogram, const struct histogram_bounds *bounds);

#endif

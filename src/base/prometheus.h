/*
 * Writes Prometheus' text format 0.0.4. The samples of a metric follow its head; a sample is its name, its
 * labels and its value:
 *
 *   prometheus_head(out, "x_total", "counter", "What x counts.");
 *   prometheus_name(out, "x_total");
 *   prometheus_label(out, "tool", name);
 *   prometheus_value(out, 5);
 */
#ifndef TOOLGATE_BASE_PROMETHEUS_H
#define TOOLGATE_BASE_PROMETHEUS_H

#include "base/buf.h"
#include "base/histogram.h"

/* `help` is one line without a backslash. */
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

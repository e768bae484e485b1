/*
 * What `toolgate top` shows, computed from two answers of toolgate/status:
 * rates are the difference of two counters over the time between them.
 */
#ifndef TOOLGATE_CLI_TOP_FIGURES_H
#define TOOLGATE_CLI_TOP_FIGURES_H

#include "json/value.h"

#include <stddef.h>

struct arena;

/* The answers of one moment. They and all figures made of them live in the snapshot's arena. */
struct top_snapshot {
    struct arena *arena;
    const struct json *status;   /* NULL: none yet */
    const struct json *sessions; /* toolgate/sessions; NULL: none */
    int64_t at_us;               /* of the monotonic clock */
};

#define TOP_VERDICTS      6u
#define TOP_CODES_OF_TOOL 3u
#define TOP_SHARE_UNKNOWN (-1.0)

struct top_rate {
    struct str name; /* a verdict */
    int64_t total;
    double per_s;
};

struct top_code {
    struct str code;
    int64_t count;
};

struct top_tool {
    struct str name;
    int64_t calls, refused; /* since the daemon's start; refused: the tool did not run */
    double calls_s, refused_s;
    double refused_share, recovered_share;    /* 0 to 1, or TOP_SHARE_UNKNOWN */
    struct top_code codes[TOP_CODES_OF_TOOL]; /* the most frequent, first; empty code: no more */
};

enum top_order { TOP_BY_RATE, TOP_BY_REFUSALS, TOP_BY_NAME };

struct top_figures {
    double seconds; /* between the two snapshots; 0: rates are since the daemon's start */
    double calls_s;
    struct top_rate verdicts[TOP_VERDICTS];
    size_t verdict_count;
    int64_t chains, recovered;
    struct top_tool *tools; /* those that were called, in the order asked for */
    size_t tool_count;
};

/* `before` may be NULL, or of another daemon process: then the rates are those since the start of this one.
 */
void top_figures_compute(const struct top_snapshot *before, const struct top_snapshot *now,
                         enum top_order order, struct top_figures *out);

/* Both snapshots are of the same daemon process. */
bool top_same_process(const struct top_snapshot *before, const struct top_snapshot *now);

#endif

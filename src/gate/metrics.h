/*
 * What happened since the daemon's start, in numbers. Nothing that a peer sends makes it grow: tools beyond
 * METRICS_TOOLS_MAX share one row, unknown tools another. Rows live as long as the daemon, also those of
 * tools that a reload removes: a counter that starts again at 0 would look like a restart.
 */
#ifndef TOOLGATE_GATE_METRICS_H
#define TOOLGATE_GATE_METRICS_H

#include "base/histogram.h"
#include "gate/call.h"
#include "gate/verdict.h"

#define METRICS_ENGINES          3
#define METRICS_TOOLS_MAX        1024u
#define METRICS_CLIENT_TOOLS_MAX 256u  /* of them, tools that clients registered and named */
#define METRICS_NAME_MAX_BYTES   128u  /* of a tool's name; a longer one is cut */
#define METRICS_CODES_MAX        32u   /* of one tool */
#define METRICS_CODE_MAX_BYTES   64u   /* a longer one, or one that is no identifier, counts as "other" */
#define METRICS_LOOPS_MAX        1024u /* sessions in a loop that are distinguished */

/* Labels that several tools share. A tool of such a name shares it, too. */
#define METRICS_UNKNOWN_TOOL "unknown" /* no tool of that name, or not for this client */
#define METRICS_OTHER        "other"   /* tools and codes beyond the limits */

/* Calls that ended alike. */
struct metrics_outcome {
    enum call_mode mode;
    enum verdict_kind verdict;
    enum error_class class;
    uint64_t count;
};

struct metrics_code {
    struct str code; /* "missing", "maximum", "same_call", "http_503", … */
    uint64_t count;
};

#define METRICS_CHAINS 5
const char *metrics_chain_name(int outcome); /* of a repair chain, as in the log: "success", … */

struct metrics_tool {
    struct str name;
    struct metrics_outcome *outcomes; /* those that occurred */
    size_t outcome_count;
    struct metrics_code *codes; /* of problems, or of the verdict if it has none; warnings do not count */
    size_t code_count;
    uint64_t calls;     /* tools/call and toolgate/check: each call once */
    uint64_t refused;   /* of them, those whose tool did not run, for any reason */
    uint64_t rewritten; /* arguments coerced or normalised */
    uint64_t would;     /* verdicts not enforced: mode shadow, or no session */
    uint64_t loops;     /* begun: a session's first call in a loop since one that was in none */
    uint64_t saved;     /* calls refused or halted as a loop: each would have run without toolgate */
    uint64_t chains[METRICS_CHAINS];
    struct histogram passed, failed; /* tools/call, by isError of the result; only if calls are timed */
};

struct metrics {
    uint64_t calls, checks, reports, cancelled;
    uint64_t verdicts[VERDICT_HALT + 1];
    uint64_t classes[CLASS_COUNT];
    uint64_t would;    /* verdicts not enforced: mode shadow, or no session */
    uint64_t rewrites; /* calls whose arguments were coerced or normalised */
    uint64_t engines[METRICS_ENGINES];
    uint64_t loops, saved, not_saved;          /* not_saved: in a loop, and let run by mode shadow */
    struct histogram parts[CALL_PARTS], total; /* only if calls are timed */

    struct arena *arena; /* of the rows; NULL until the first */
    struct map *by_name;
    struct metrics_tool **tools; /* in the order of their first call */
    size_t tool_count, client_tool_count;
    uint64_t looping[METRICS_LOOPS_MAX]; /* hashes of sessions whose last call was refused as a loop */
    size_t looping_count;
};

const char *metrics_engine_name(int engine); /* "redis", "local", "none" */

void metrics_clear(struct metrics *metrics);

/* A call that has ended, with a verdict; its times, if the gate counts them. */
void metrics_count_call(struct metrics *metrics, const struct call *call);

/* A repair chain has ended: `outcome` in the words of the log, of which `no_retry` (no chain at all) counts
 * nothing. `metrics` may be NULL. */
void metrics_count_chain(struct metrics *metrics, struct str tool, struct str outcome);

/* The row of a tool; NULL: none of its calls has ended yet. */
struct metrics_tool *metrics_tool(const struct metrics *metrics, struct str name);

/* Writes the row as an object, without the counts that are 0. */
void metrics_write_tool(struct json_out *out, const struct metrics_tool *row);

/* Writes one object. */
void metrics_write(struct json_out *out, const struct metrics *metrics);

#endif

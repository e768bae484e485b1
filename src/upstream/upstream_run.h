/*
 * One call under way, as the kinds of upstreams share it. Only the files of
 * this room include it.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_RUN_H
#define TOOLGATE_UPSTREAM_UPSTREAM_RUN_H

#include "io/timer.h"
#include "upstream/upstream.h"

struct upstream; /* upstream.c: one of the set */

struct upstream_run {
    struct upstreams *upstreams;
    struct upstream *upstream; /* NULL: a command or an endpoint that names none */
    const struct upstream_request *request;
    struct arena *arena;
    struct upstream_answer *answer;
    upstream_done *done;
    void *owner;
    struct upstream_run *next, *previous; /* of all that are pending */
    void *work;                           /* the kind's own */
    /* Nobody waits any more: cancel, kill, abort; no run_finish. Set by the kind; the run is gone when it
     * returns. */
    void (*stop)(struct upstream_run *run);
};

/* Each begins one, and either fills the answer in (UPSTREAM_DONE) or sets `stop` and calls run_finish once,
 * later, never inside. MCP's is mcp_call (mcp.h). */
enum upstream_state exec_run(struct upstream_run *run);
enum upstream_state http_run(struct upstream_run *run);

/* The answer is there: tells breaker and owner. The run is gone when it returns. */
void run_finish(struct upstream_run *run);

/* How long a call of it may take: as its policy says, else its upstream (NULL: it names none), else as its
 * kind does. */
uint32_t target_time_ms(const struct target *target, const struct upstream_spec *spec);

/* How long it may take, where its own time is `own_ms`. */
uint32_t run_time_ms(const struct upstream_run *run, uint32_t own_ms);

struct loop *run_loop(const struct upstream_run *run);
const struct upstream_spec *run_spec(const struct upstream_run *run); /* NULL: it names none */

/* For operators alone: into the log, and the last error that status shows. A command tells its own (exec.c).
 */
void run_complain(struct upstream_run *run, struct str code, struct str why);

/* Fills the answer in; `detail` is ours, for the model: says who, what happened and, where known, why. */
void run_answer(struct upstream_run *run, enum upstream_ended ended, const char *code, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

#endif

/*
 * One call under way, as the kinds of upstreams share it. Only the files of
 * this room include it.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_CALL_H
#define TOOLGATE_UPSTREAM_UPSTREAM_CALL_H

#include "io/timer.h"
#include "upstream/upstream.h"

struct upstream; /* upstream.c: one of the set */

struct upstream_call {
    struct upstreams *upstreams;
    struct upstream *upstream; /* NULL: a command or an endpoint that names none */
    const struct upstream_request *request;
    struct arena *arena;
    struct upstream_answer *answer;
    upstream_done *done;
    void *owner;
    struct upstream_call *next, *previous; /* of all that are pending */
    void *work;                            /* the kind's own */
    /* Nobody waits any more: cancel, kill, abort; no upstream_call_finish. Set by the kind; the run is gone
     * when it returns. */
    void (*stop)(struct upstream_call *run);
};

/* Each begins one, and either fills the answer in (UPSTREAM_DONE) or sets `stop` and calls
 * upstream_call_finish once, later, never inside. MCP's is mcp_client_call (mcp.h). */
enum upstream_call_state exec_call(struct upstream_call *run);
enum upstream_call_state http_tool_call(struct upstream_call *run);

/* The answer is there: tells breaker and owner. The run is gone when it returns. */
void upstream_call_finish(struct upstream_call *run);

/* How long a call of it may take: as its policy says, else its upstream (NULL: it names none), else as its
 * kind does. */
uint32_t target_timeout_ms(const struct target *target, const struct upstream_spec *spec);

/* How long it may take, where its own time is `own_ms`. */
uint32_t upstream_call_timeout_ms(const struct upstream_call *run, uint32_t own_ms);

struct loop *upstream_call_loop(const struct upstream_call *run);
const struct upstream_spec *upstream_call_spec(const struct upstream_call *run); /* NULL: it names none */

/* For operators alone: into the log, and the last error that status shows. A command tells its own (exec.c).
 */
void upstream_call_log_failure(struct upstream_call *run, struct str code, struct str why);

/* Fills the answer in; `detail` is ours, for the model: says who, what happened and, where known, why. */
void upstream_call_answer(struct upstream_call *run, enum upstream_outcome ended, const char *code,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif

/*
 * One call under way, as dispatch.c and the runners that it calls (mcp_call.c,
 * http_tool.c, exec.c) share it. Included by this room only.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_CALL_H
#define TOOLGATE_UPSTREAM_UPSTREAM_CALL_H

#include "io/timer.h"
#include "upstream/upstream.h"

#include <sys/queue.h>

struct upstream; /* upstream_internal.h */

/* Calls that wait: those of one user in their order, while users take turns. */
struct call_queue {
    TAILQ_HEAD(, upstream_call) calls;
    uint32_t count;
    uid_t last_user; /* whose call was taken last */
};

struct upstream_call {
    struct upstreams *upstreams;
    struct loop *loop;
    struct upstream *upstream;        /* NULL: a command, or an endpoint that names none */
    const struct upstream_spec *spec; /* of `upstream`, or NULL */
    const struct upstream_request *request;
    struct arena *arena;
    struct upstream_answer *answer; /* begins with after_s -1, reached false */
    upstream_done *done;
    void *owner;
    LIST_ENTRY(upstream_call) entry; /* of all that are pending or queued */
    void *work;                      /* the runner's own */
    /* Set by the runner: abandons the call (cancel, kill, abort) without `finish`. */
    void (*stop)(struct upstream_call *call);
    /* Set by the runner while the user is asked. */
    void (*reply)(struct upstream_call *call, struct str result);
    /* Set by dispatch.c. The answer is filled in: updates the breaker and fires `done`. The call is gone
     * when it returns. */
    void (*finish)(struct upstream_call *call);
    TAILQ_ENTRY(upstream_call) queue_entry; /* of its upstream, or of the commands (exec.c) */
    /* Of dispatch.c alone. */
    struct timer deadline; /* of queueing; the end of a delay (upstream_delay) */
    int64_t began_ms;
    uint32_t files; /* that it holds open */
    bool queued, probe;
};

/* Each starts a call and either fills in the answer (UPSTREAM_DONE), or sets `stop` and later calls
 * `finish` once, from the loop's turn. mcp_client_call (mcp_client.h) is the third. */
enum upstream_call_state exec_call(struct upstream_call *call);
enum upstream_call_state http_tool_call(struct upstream_call *call);

/* Whether another call of this user may wait; each user has a share of `max`. */
bool call_queue_has_room(const struct call_queue *queue, uid_t user, uint32_t max);
void call_queue_add(struct call_queue *queue, struct upstream_call *call);
void call_queue_remove(struct call_queue *queue, struct upstream_call *call);
struct upstream_call *call_queue_next(struct call_queue *queue); /* is its user's turn; it is not empty */

/* The target's own time, else its upstream's, else the default of its kind; the request's max_ms if that is
 * less. */
uint32_t upstream_call_timeout_ms(const struct upstream_call *call);

/* For operators: logs the failure and keeps it as the upstream's last error. Commands log their own. */
void upstream_call_log_failure(struct upstream_call *call, struct str code, struct str why);

/* Fills in outcome, code and detail (our sentence for the model: who, what happened, why if known).
 * Returns UPSTREAM_DONE. */
enum upstream_call_state upstream_call_answer(struct upstream_call *call, enum upstream_outcome outcome,
                                              const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same of a call to a server: the format continues "the server '…', which runs this tool, ". */
enum upstream_call_state upstream_call_refuse(struct upstream_call *call, enum upstream_outcome outcome,
                                              const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif

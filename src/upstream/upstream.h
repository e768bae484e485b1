/*
 * Those who run tools for us, behind one face: MCP servers that we start,
 * MCP servers over HTTP, plain HTTP endpoints, commands. Who is there and what
 * they offer; to call and to cancel; when to ask one that fails again. Knows
 * nothing of policies, budgets or clients.
 *
 *   stopped ─▶ starting ─▶ up ─▶ (dies, does not answer) ─▶ waiting ─▶ starting …
 *                                     UPSTREAM_DOWN_AFTER in a row ─▶ down ─▶ one try each UPSTREAM_RETRY_MS
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_H
#define TOOLGATE_UPSTREAM_UPSTREAM_H

#include "base/err.h"
#include "json/value.h"
#include "upstream/upstream_spec.h"

struct arena;
struct buf;
struct json_out;
struct loop;
struct upstreams;

#define UPSTREAM_DOWN_AFTER     5u     /* failed starts or deaths in a row */
#define UPSTREAM_RETRY_MS       60000u /* one that is down is tried again after this, and after a reload */
#define UPSTREAM_LINE_MAX_BYTES 16777216u
#define UPSTREAM_TOOLS_MAX      1000u /* that one may offer; 64 pages of them */

/* ---- the set ---------------------------------------------------------------- */

struct upstreams_hooks {
    /* What one offers has changed, or whether it is there. From the loop's turn. */
    void (*changed)(void *owner, struct str name);
};

/* `state`: folder where what lazy ones offer is kept; NULL: nowhere. */
struct upstreams *upstreams_new(struct loop *loop, const char *state, const struct upstreams_hooks *hooks,
                                void *owner);
/* Ends every process; calls that are pending are forgotten. */
void upstreams_free(struct upstreams *upstreams);

/* From now on these: new ones are started (lazy ones when needed), those that are gone ended once their calls
 * are answered, those that changed ended and started, the others left alone. Copies the specs. */
void upstreams_apply(struct upstreams *upstreams, const struct upstream_spec *const *specs, size_t count);

/* All that are to run have either answered or failed once: nobody needs to wait for tools any more. */
bool upstreams_are_ready(const struct upstreams *upstreams);
void upstreams_list_starting(const struct upstreams *upstreams,
                             struct buf *out); /* "a, b": those that have not */

/* None is left, also none of those that had calls to answer: after upstreams_apply with no spec. */
bool upstreams_are_stopped(const struct upstreams *upstreams);

/* What one offers: the `tools` array as it sent it. Held by count: a generation keeps it as long as it lives.
 */
struct tool_list;
struct tool_list *upstreams_tool_list(struct upstreams *upstreams,
                                      struct str name); /* NULL: nothing yet; ref'd */
struct tool_list *tool_list_ref(struct tool_list *offer);
void tool_list_unref(struct tool_list *offer); /* NULL is fine */
const struct json *tool_list_array(const struct tool_list *offer);
uint64_t tool_list_hash(const struct tool_list *offer);

/* An array for `toolgate status`: name, kind, state, tools, calls, failures, breaker, last error; no secrets.
 */
void upstreams_write_status(struct json_out *out, const struct upstreams *upstreams);

/* ---- calls ------------------------------------------------------------------ */

enum target_kind { TARGET_MCP, TARGET_HTTP, TARGET_EXEC };

/* Where a tool is run. Of the generation; everything borrowed from it. */
struct target {
    enum target_kind kind;
    struct str upstream; /* its name; empty: a command, or an endpoint with a whole URL */
    struct str tool;     /* MCP: what it is called there. Others: our name of it, for messages */
    const struct http_spec *http;
    const struct exec_spec *exec;
    uint32_t timeout_ms; /* 0: the upstream's or the spec's own */
};

typedef void upstream_progress(void *owner, double progress, double total, struct str message);
typedef void upstream_log(void *owner, struct str level, struct str text);
typedef void upstream_done(void *owner);

struct upstream_request {
    const struct target *target;
    const struct json *arguments;
    bool can_elicit; /* the client can put questions to its user: they come as UPSTREAM_INPUT_REQUIRED with
                      * `input`
                      */
    const struct json *input_responses; /* inputResponses of the client's second try; NULL: none */
    struct str request_state;           /* requestState, likewise */
    uint64_t caller;             /* of whom; two of one conversation have the same. What a server says without
                                    saying of which call is not told to another than it may be about */
    uint32_t max_ms;             /* it may take no longer, whatever its own time is; 0: its own */
    upstream_progress *progress; /* NULL: nobody listens; fires until `done` only */
    upstream_log *log;
    void *listener;
};

enum upstream_outcome {
    UPSTREAM_RESULT,    /* `result`: a CallToolResult, or (HTTP, command) any JSON value */
    UPSTREAM_REFUSED,   /* it says no: a JSON-RPC error, a status 4xx, an exit code. Its words in `quoted` */
    UPSTREAM_TRANSIENT, /* died, timed out, 429, 5xx: `detail` says which, `after_s` when to try again */
    UPSTREAM_UNAVAILABLE,   /* not asked at all: down, not configured, breaker open; `detail`, `after_s` */
    UPSTREAM_BROKEN,        /* what it answered is no tool result: `code` "invalid_json" …, `detail` */
    UPSTREAM_INPUT_REQUIRED /* it wants to know something of the user: `question`, `input` */
};

struct upstream_answer {
    enum upstream_outcome outcome;
    const struct json *result;
    struct str code;     /* "timeout", "crashed", "http_503", "exit_3", "unreachable", …; may be empty */
    struct str detail;   /* our words, for the model */
    struct str quoted;   /* theirs: data, to be quoted and cut */
    int64_t after_s;     /* -1: not told */
    bool reached;        /* it may have begun to run; false: it surely has not */
    struct str question; /* what it asks, for a model to pass on */
    const struct json *input; /* {inputRequests, requestState?} for clients that can be asked; NULL: none */
};

enum upstream_call_state { UPSTREAM_DONE, UPSTREAM_PENDING };

/*
 * Begins. UPSTREAM_DONE: `answer` is filled in and `done` will not fire. UPSTREAM_PENDING: `done` fires
 * exactly once, later, from the loop's turn, never inside this call and never after upstream_cancel; there is
 * always a deadline. Request and answer are borrowed until then; what the answer holds lives in `arena`.
 */
enum upstream_call_state upstream_start(struct upstreams *upstreams, const struct upstream_request *request,
                                        struct arena *arena, struct upstream_answer *answer,
                                        upstream_done *done, void *owner);

/* After this many ms a call of it has an answer, or never was begun: queue, progress and all. */
uint32_t upstream_max_duration_ms(const struct upstreams *upstreams, const struct target *target);

/* `done` fires after `ms`; to be cancelled in the same way. */
void upstream_delay(struct upstreams *upstreams, uint32_t ms, struct arena *arena, upstream_done *done,
                    void *owner);

/* No `done`, progress or log with this owner fires any more; the upstream is told that nobody waits. */
void upstream_cancel(struct upstreams *upstreams, void *owner);

#endif

/*
 * Running tools: MCP servers over stdio or HTTP, plain HTTP endpoints, and
 * commands. Keeps the set of configured upstreams, their tool lists, and every
 * call under way. Knows nothing of policies, budgets or clients.
 *
 *   stopped ─▶ starting ─▶ up ─▶ (exits, does not answer) ─▶ waiting ─▶ starting …
 *                       UPSTREAM_DOWN_AFTER failures in a row ─▶ down ─▶ one try each UPSTREAM_RETRY_MS
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_H
#define TOOLGATE_UPSTREAM_UPSTREAM_H

#include "base/err.h"
#include "json/value.h"
#include "upstream/upstream_spec.h"

#include <sys/types.h>

struct arena;
struct buf;
struct json_out;
struct loop;
struct trace_context;
struct upstreams;

#define UPSTREAM_DOWN_AFTER     5u     /* failed starts or exits in a row */
#define UPSTREAM_RETRY_MS       60000u /* a reload retries at once */
#define UPSTREAM_LINE_MAX_BYTES 16777216u
#define UPSTREAM_TOOLS_MAX      1000u    /* of one upstream; the same for prompts and resource templates */
#define UPSTREAM_RESOURCES_MAX  5000u    /* of one upstream */
#define UPSTREAM_LIST_MAX_BYTES 2097152u /* of its prompts, resources, or templates */

/* What an MCP server lists. */
enum upstream_list {
    UPSTREAM_TOOLS,
    UPSTREAM_PROMPTS,
    UPSTREAM_RESOURCES,
    UPSTREAM_TEMPLATES,    /* of resources */
    UPSTREAM_INSTRUCTIONS, /* of the server, for all that use it: {name, text}, or no entry */
    UPSTREAM_LISTS
};

/* ---- the set ---------------------------------------------------------------- */

struct upstreams_hooks {
    /* The upstream's tool list or state has changed. Fires from the loop's turn. */
    void (*changed)(void *owner, struct str name);
    /* Its prompts, resources or templates have changed. Fires from the loop's turn. */
    void (*listed)(void *owner, struct str name, enum upstream_list list);
    /* A resource that upstreams_subscribe has named has changed. */
    void (*updated)(void *owner, struct str name, struct str uri);
};

/* `state`: folder for the tool lists of upstreams; NULL: they are not cached. */
struct upstreams *upstreams_new(struct loop *loop, const char *state, const struct upstreams_hooks *hooks,
                                void *owner);
/* Kills every process; drops pending calls without firing their `done`. */
void upstreams_free(struct upstreams *upstreams);

/* Replaces the configured set: starts new upstreams (lazy ones at their first call), restarts changed ones,
 * and ends removed ones after their calls are answered. Copies the specs. */
void upstreams_apply(struct upstreams *upstreams, const struct upstream_spec *const *specs, size_t count);

/* Every upstream that starts with the daemon has listed its tools or failed once. */
bool upstreams_are_ready(const struct upstreams *upstreams);
/* Appends "a, b": the upstreams that have done neither. */
void upstreams_list_starting(const struct upstreams *upstreams, struct buf *out);

/* No upstream is left, not even one that is being drained: after upstreams_apply with no spec. */
bool upstreams_are_stopped(const struct upstreams *upstreams);

/* A list of an upstream: the array as it was sent, immutable and reference-counted. */
struct tool_list;
/* Copies the array with its bytes. The caller owns the first reference. */
struct tool_list *tool_list_new(const struct json *tools);
/* A new reference; NULL: not known yet, or it has none. */
struct tool_list *upstreams_list(struct upstreams *upstreams, struct str name, enum upstream_list list);
/* Somebody reads this list: servers that report no changes of theirs list it again, for the next time. */
void upstreams_refresh(struct upstreams *upstreams, enum upstream_list list);
struct tool_list *tool_list_ref(struct tool_list *list);
void tool_list_unref(struct tool_list *list); /* NULL is fine */
const struct json *tool_list_array(const struct tool_list *list);
uint64_t tool_list_hash(const struct tool_list *list); /* equal for the same entries in any order */

/* The lists are cached, one file for each upstream: those of lazy upstreams are served before they are
 * started, and a replay knows the tools. A daemon serves only what it has written itself; a replay by root
 * reads the files of the daemon's user, and runs nothing. */
enum tool_cache_owner { TOOL_CACHE_OWN, TOOL_CACHE_ANY };
/* A new reference. NULL: `state` is NULL, or there is no readable file for this configuration of it. */
struct tool_list *tool_cache_read(const char *state, const struct upstream_spec *spec,
                                  enum upstream_list list, enum tool_cache_owner owner);

/* Asks an MCP server to report changes of a resource, also after its restarts, until as many calls of
 * upstreams_unsubscribe. NULL, or why not, as the end of "the server 'x' …". */
#define UPSTREAM_SUBSCRIPTIONS_MAX 1000u /* resources of one server */
uint32_t upstreams_subscriptions(const struct upstreams *upstreams, struct str name); /* of all clients */
const char *upstreams_subscribe(struct upstreams *upstreams, struct str name, struct str uri);
void upstreams_unsubscribe(struct upstreams *upstreams, struct str name, struct str uri);

const char *mcp_log_level_name(int level); /* 0: debug … 7: emergency */

/* The lowest level of log messages that a client wants, which servers are asked for. */
void upstreams_set_log_level(struct upstreams *upstreams, int level);

/* An array for `toolgate status`; holds no secrets and nothing of any result. */
void upstreams_write_status(struct json_out *out, const struct upstreams *upstreams);

/* "commands": those that run and wait, of all users. */
void exec_write_status(struct json_out *out, struct loop *loop);

/* The same in numbers, of those that are configured. */
struct upstream_figures {
    struct str name;       /* borrowed */
    uint64_t up;           /* 1: it takes calls, or starts with the next one */
    uint64_t circuit_open; /* 1: the circuit breaker is not closed */
    uint64_t calls, failures, starts, in_flight, queued;
};
size_t upstreams_figures(const struct upstreams *upstreams, struct arena *arena,
                         struct upstream_figures **out);

/* ---- calls ------------------------------------------------------------------ */

enum target_kind { TARGET_MCP, TARGET_HTTP, TARGET_EXEC };

/* What runs a tool. Belongs to the generation, which owns all that it points to. */
struct target {
    enum target_kind kind;
    struct str upstream; /* empty: a command, or an endpoint with a whole URL */
    struct str tool;     /* MCP: its name on the server; else its name here, for messages */
    const struct http_spec *http;
    const struct exec_spec *exec;
    uint32_t timeout_ms; /* 0: that of the upstream or the spec */
};

typedef void upstream_progress(void *owner, double progress, double total, struct str message);
typedef void upstream_log(void *owner, struct str level, struct str text);
typedef void upstream_done(void *owner);
/* A server asks the user while its call runs: `params` of elicitation/create. True: upstream_reply follows.
 * NULL: the call ends, or is tried again, and the question that was taken needs no answer any more. */
typedef bool upstream_ask(void *owner, const struct json *params);
#define UPSTREAM_ASK_MS 300000u /* that the questions of one call may add to its time */

struct upstream_request {
    const struct target *target;
    const struct json *arguments;
    const char *method;        /* another method of an MCP server than tools/call; NULL: tools/call */
    const struct json *params; /* its params; their _meta is not passed on */
    bool can_elicit;           /* the client can ask its user: UPSTREAM_INPUT_REQUIRED carries `input` */
    const struct json *input_responses; /* inputResponses of the client's retry; NULL: none */
    struct str request_state;           /* requestState of that retry */
    uid_t user;                         /* the calls of one user leave room for those of others */
    uint64_t caller; /* equal for calls of one conversation: a server message that names no call is relayed
                        only if every call it may be about has the same caller */
    const struct trace_context *trace_context; /* passed on with the call; NULL: none */
    struct str meta;             /* members of the caller's _meta for the server, as JSON; may be empty */
    uint32_t max_ms;             /* upper bound of the call's time; 0: none beside its own */
    upstream_progress *progress; /* NULL: not relayed; fires until `done` */
    upstream_log *log;
    upstream_ask *ask; /* NULL: nobody can be asked while the call runs */
    void *listener;
};

enum upstream_outcome {
    UPSTREAM_RESULT,        /* `result`: a CallToolResult, or (HTTP, command) any JSON value */
    UPSTREAM_REFUSED,       /* JSON-RPC error, status 4xx, exit code; the upstream's words are in `quoted` */
    UPSTREAM_TRANSIENT,     /* crash, timeout, 429, 5xx: `detail`, `after_s` */
    UPSTREAM_UNAVAILABLE,   /* not sent: down, not configured, breaker open; `detail`, `after_s` */
    UPSTREAM_BROKEN,        /* the answer is no tool result: `code` "invalid_json" …, `detail` */
    UPSTREAM_INPUT_REQUIRED /* the upstream asks the user: `question`, `input` */
};

/* The code of an answer full of requests to us: calls to such a server are paused at once. */
#define UPSTREAM_CODE_TOO_MANY_REQUESTS "too_many_requests"

struct upstream_answer {
    enum upstream_outcome outcome;
    const struct json *result;
    struct str code;   /* "timeout", "crashed", "http_503", "exit_3", "unreachable", …; may be empty */
    struct str detail; /* our sentence, for the model */
    struct str quoted; /* the upstream's words: data, to be quoted */
    struct str
        last_stderr;  /* what the upstream's process wrote last before it died, or while it starts; data */
    int64_t rpc_code; /* of a JSON-RPC error; 0: none */
    const struct json *rpc_error; /* the error itself, without configured secrets; NULL: none */
    int64_t after_s;              /* when to retry; -1: unknown */
    bool reached;                 /* the tool may have begun to run; false: it certainly has not */
    struct str question;          /* for a model to pass on */
    const struct json *input;     /* {inputRequests, requestState?}; NULL: the client cannot ask its user */
};

enum upstream_call_state { UPSTREAM_DONE, UPSTREAM_PENDING };

/*
 * Starts a call. UPSTREAM_DONE: `answer` is filled in and `done` does not fire. UPSTREAM_PENDING: `done`
 * fires exactly once, later, from the loop's turn, unless upstream_cancel comes first; every call has a
 * deadline. Request and answer are borrowed until then; the answer's strings live in `arena`.
 */
enum upstream_call_state upstream_start(struct upstreams *upstreams, const struct upstream_request *request,
                                        struct arena *arena, struct upstream_answer *answer,
                                        upstream_done *done, void *owner);

/* Files that all calls together may hold open; further calls are unavailable ("busy"). NULL is allowed. */
void upstreams_limit_files(struct upstreams *upstreams, uint32_t files);

/* The longest time between upstream_start and `done`, with queueing and progress. */
uint32_t upstream_max_duration_ms(const struct upstreams *upstreams, const struct target *target);

/* `done` fires after `ms`, unless upstream_cancel comes first. */
void upstream_delay(struct upstreams *upstreams, uint32_t ms, struct arena *arena, upstream_done *done,
                    void *owner);

/* The user's answer to the question that upstream_ask has taken: {action, content?}. */
void upstream_reply(struct upstreams *upstreams, void *owner, struct str result);

/* Fires no `done`, progress or log for this owner any more; sends the upstream a cancellation. */
void upstream_cancel(struct upstreams *upstreams, void *owner);

#endif

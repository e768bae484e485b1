/*
 * One request to call, check or report a tool, from its arguments to its verdict. tools/call, toolgate/check,
 * toolgate/report, policy examples and specs all go through it; call.c has the picture of the stages.
 *
 * call_new, call_start, then, once it has finished: read its call_outcome, and call_free.
 */
#ifndef TOOLGATE_GATE_CALL_H
#define TOOLGATE_GATE_CALL_H

#include "base/err.h"
#include "base/str.h"
#include "ledger/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct config;
struct json_out;

#define CALL_COST_KEY "dev.toolgate/cost" /* in a result's _meta: what the call cost */

enum call_mode {
    CALL_RUN,   /* tools/call: all stages */
    CALL_CHECK, /* toolgate/check: stops after stage 5 */
    CALL_REPORT /* toolgate/report: enters at stage 7 */
};

struct str call_method(enum call_mode mode); /* "tools/call", "toolgate/check", "toolgate/report" */

/* Marks of a check. */
#define CALL_NOT_ENFORCED 1u /* mode shadow: what was said against it is only recorded */
#define CALL_APPROVED     2u /* a policy has asked, and somebody approved it */

/* Who answers what a policy asks of the user. */
enum call_asks {
    CALL_ASKS_NOBODY,     /* the client has no user to ask: an operator may approve */
    CALL_ASKS_CONNECTION, /* the server puts it to the client's user, and calls again (call_methods.c) */
    CALL_ASKS_REPLY       /* the reply asks, and the client calls again with the answer (input_required) */
};

/* As upstream_log, upstream_ask and upstream_progress (upstream/upstream.h). */
typedef void call_log(void *owner, struct str level, struct str text);
typedef bool call_elicit(void *owner, const struct json *params);
typedef void call_progress(void *owner, double progress, double total, struct str message);

/* The request. Everything is borrowed and must live as long as the call. */
struct call_request {
    enum call_mode mode;
    struct str tool;              /* a report may leave it out, and the arguments: the ledger knows them */
    const struct json *arguments; /* NULL: none; a JSON string that holds an object is read as that object */
    /* why the arguments could not be read (duplicate keys, …); empty: they could */
    struct str arguments_fault;
    struct str session;    /* as the client named it; empty: anonymous */
    struct str connection; /* names the anonymous session; unique per connection */
    uint32_t turn;         /* 0: not given */
    uint32_t turn_text;    /* its hash (ledger_turn_text), if a text names the turn; 0: none */
    struct str step, goal, label, ext;
    struct str agent; /* a sub-agent's name; empty: the session's main agent */
    bool by_person;   /* a person began the turn */
    /* 32 hex digits of the client's trace, or of the one that begins here; empty: none */
    struct str trace_id;
    struct str protocol; /* the version of MCP that the client speaks; empty: none */
    /* what the client sent without effect; the verdict's `warnings`; NULL: nothing */
    const struct str *notices;
    size_t notice_count;
    const struct trace_context *trace_context; /* of the caller, for upstreams; NULL: none */
    struct str meta;            /* members of the caller's _meta, for upstreams, as JSON; may be empty */
    const struct json *context; /* for the policies: an object; NULL: none. In no fingerprint or log */
    const struct peer *peer;    /* NULL: no access rules apply */
    struct client_tools *client_tools; /* NULL: none */

    /* Only a report: either `result` or `has_error`. */
    const struct json *result; /* a CallToolResult or any JSON */
    struct str error_message;
    bool has_error, error_transient;
    bool error_retry;           /* the model should try again with other arguments */
    bool error_cancelled;       /* its run was stopped: counts as if it had not been made */
    bool error_transient_given; /* false: the message is searched for signs of a transient failure */
    struct str coverage;        /* what a judge in the agent's program found; empty: it did not judge */
    const struct json *judged_facts, *judged_follow_up; /* beside it; NULL: none */
    struct str judged_question;                         /* to the user; empty: none */
    struct ledger_call_id check; /* from call_read_id; marks: CALL_NOT_ENFORCED, CALL_APPROVED */

    /* Only tools/call. */
    bool supports_elicitation; /* the client can put an upstream's questions to its user */
    enum call_asks asks;
    const struct consent *consents; /* the user's answers to questions of check hooks */
    size_t consent_count;
    uint64_t answered;                  /* CALL_ASKS_REPLY: the question that `answer` is to; 0: none */
    const struct json *answer;          /* of a form: {action, content?} */
    const struct json *input_responses; /* the user's answers to them; NULL: none yet */
    struct str request_state;           /* the upstream's state that goes with them; may be empty */
    /* What the tool reports while it runs; each may be NULL. They fire until `done`, never after call_start
     * has returned true or after call_cancel. upstream_reply, of the call, answers what `elicit` has put. */
    call_progress *progress;
    call_log *log;
    call_elicit *elicit;
    void *listener; /* owner of these three */

    /* Only examples and specs. */
    const struct json *simulated_result; /* used instead of running the tool; NULL: it runs */
    const struct json *facts;            /* used instead of the session's facts; NULL: those of the session */
    bool ignore_prepare;                 /* finds tools that prepare hooks hide */
    bool force_enforce;                  /* treats mode shadow and off as enforce */
    const struct policy *enforced_overlay; /* the same for this policy of several tools; NULL: none */
    /* only a replay: paths ("card.number") whose values are masks; no problem there counts */
    const struct str *masked;
    size_t masked_count;

    const struct ledger_answer *past; /* by stage 1: what prepare hooks see of the session; NULL: nothing */
    uint64_t batch;      /* of messages that were sent before an answer to any of them was read; 0: alone */
    int64_t received_ns; /* when the message was read, by the monotonic clock; 0: unknown */
    bool dry_run;        /* asks the ledger nothing and counts nothing */
    bool trace;          /* records each stage in call_outcome.traces */
};

/* What all calls of a process share. */
struct gate {
    struct generation *generation; /* the current one; a reload replaces it */
    struct ledger *ledger;
    struct upstreams *upstreams;    /* NULL: tools that run in an upstream are unavailable */
    struct metrics *metrics;        /* NULL: nothing is counted */
    struct busy *busy;              /* two, of calls and of dry runs; NULL: no tool is ever busy */
    struct approvals *approvals;    /* NULL: there are no approvals */
    struct decision_log *decisions; /* NULL: nothing is recorded */
    struct span_exporter *spans;    /* NULL: no call is traced */
    bool timed;                     /* measures the call_timing of each call */
    bool counts_times;              /* and adds it to the histograms of `metrics` */
    bool many_users;                /* have connected since the start, root aside */
    uint64_t admissions;            /* state of the call id generator; 0: seeded by the first call */
};

typedef void call_done(void *owner);

/* Allocated in `arena` and freed with it. Holds a reference to gate->generation until call_free. */
struct call *call_new(struct gate *gate, struct arena *arena, const struct call_request *request);

/* True: the call has finished, and `done` will not fire. False: `done` fires exactly once, later, never
 * inside call_start, and never after call_cancel. */
bool call_start(struct call *call, call_done *done, void *owner);

/* Stops a call that has not finished and releases its reservation; `done` never fires. */
void call_cancel(struct call *call);
void call_free(struct call *call);

const struct tool *call_tool(const struct call *call); /* NULL: unknown tool */
struct str call_id(struct call *call);                 /* of a check: names it in its report */
bool call_is_dry_run(const struct call *call);

/* For a caller in the same process: names the finished check in its report, without the text of a callId. */
void call_report_of(const struct call *check, struct call_request *report);

/* Reads the callId of a report into `report`, whose peer, session and connection are set. ERR_UNAVAILABLE:
 * ledger_call_id_read says when. ERR_NOT_FOUND, and `why` for the agent's program: no check of this user has
 * this id, or it was made in another session. */
enum err call_read_id(const struct gate *gate, struct arena *arena, struct str id,
                      struct call_request *report, struct why *why);

struct call_trace {
    const char *stage;   /* "known", "schema", "rules", "admit", "check", "run", "judge", "retry", "settle" */
    struct str decision; /* "pass", "repair: 2 problems", … */
    int64_t ns;
};

/* Where the time of a call went, for the metrics and the decision log. Measured only if struct gate says so:
 * each boundary between two parts reads the clock once. */
enum call_part {
    CALL_PART_QUEUE,    /* from the socket's read to stage 1: the calls before it, and its own JSON */
    CALL_PART_SCHEMA,   /* stage 2 */
    CALL_PART_POLICY,   /* stages 1, 3, 5 and 7: Lua, formats of ids, the judgement of the result */
    CALL_PART_LEDGER,   /* stages 4 and 8, and each wait for the ledger in another stage */
    CALL_PART_UPSTREAM, /* stage 6: the tool itself, its retries and their pauses included */
    CALL_PARTS
};

struct call_timing {
    int64_t total_ns; /* 0: not measured. More than the sum of the parts: the feedback is in none of them */
    int64_t part_ns[CALL_PARTS];
};

/* "queue", "schema", "policy", "ledger", "upstream". */
const char *call_part_name(enum call_part part);

/* What a finished call has for its caller, as long as its arena. */
struct call_outcome {
    const struct verdict *verdict;
    struct str alias;             /* the alias that the client used; empty: the tool's name */
    const struct json *arguments; /* after coercion and normalise */
    struct str feedback;          /* for the model, on an error; else empty */
    struct str advice;            /* notes for the model beside a result; may be empty */
    /* The result as the model gets it, NULL if none exists: MCP content array, structuredContent, _meta. */
    const struct json *content, *structured, *metadata;
    bool masked;               /* a problem at a masked path was dropped */
    uint64_t redacted;         /* bit i: a result had field i of the policy's `redact` */
    const struct json *result; /* all of it as one value, as the result hook sees it; NULL: none */
    /* {inputRequests, requestState?} from the upstream, for clients that support elicitation; NULL: none */
    const struct json *input_requests;
    uint64_t question; /* CALL_ASKS_REPLY: the verdict's, which the reply puts to the user; 0: none */
    const struct call_trace *traces; /* in the order in which the stages ran */
    size_t trace_count;
    const struct call_timing *timing; /* NULL: not measured */
};
const struct call_outcome *call_outcome(const struct call *call);

/* The result as the model gets it, as one value. */
const struct json *call_visible_result(const struct call *call);

/* The ledger's name of a session: "uid:1000/chat-7", "shared/chat-7", "anonymous/…". */
struct str call_session_key(struct arena *arena, const struct config *config, const struct peer *peer,
                            struct str session, struct str connection);

/* ---- what a client reads and is asked ---- */

/* callId, arguments, text, advice, and the stages if the request wanted a trace. */
void call_reply_check(struct json_out *out, struct call *call);

/* text, advice, content. */
void call_reply_report(struct json_out *out, const struct call *call);

/* content: the tool's result and the advice, or the feedback, as MCP content blocks of a version
 * (mcp_version.h; with STR_NONE `arena` may be NULL). `unsent`: the structured result that the client does
 * not get otherwise, as text if there is no content; NULL: none. */
void call_reply_content(struct arena *arena, struct json_out *out, const struct call *call,
                        struct str protocol, const struct json *unsent);
void call_reply_text_block(struct json_out *out, struct str text); /* nothing if `text` is empty */

#define CONSENTS_MAX 8u /* questions of one call: several policies may ask, each its own */

struct consent {
    struct str question; /* as the hook has put it */
    struct str choice;   /* that was taken; empty: none */
    bool given;          /* it was the first one, or yes */
    struct str id, by;   /* of the approval, and the operator who answered it; empty: the client's user has */
};

#define CONSENT_PROPERTY       "answer" /* of the form that a client puts to its user */
#define CONSENT_CHOICES_MAX    30u      /* a question with more is put as text */
#define CONSENT_TEXT_MAX_BYTES 4096u    /* of a question in a form: nobody says yes to what is cut off */

/* Whether a form can put it whole: `choices` is a verdict's. */
bool consent_fits_form(struct str question, const struct json *choices);
/* The params of elicitation/create, into an open object: the first of the choices lets the call proceed;
 * without any, yes does. */
void consent_write_form(struct json_out *out, struct arena *arena, struct str question,
                        const struct json *choices);
/* Reads the form's result {action, content}. False: it fits no form that was sent. */
bool consent_read(struct arena *arena, const struct json *result, const struct json *choices,
                  struct consent *consent);

#endif

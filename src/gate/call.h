/*
 * The life of a call: known, shape, meaning, admit, check, run, judge,
 * settle. One state machine for tools/call, toolgate/check, toolgate/report,
 * examples and replay; see call.c for the picture.
 */
#ifndef TOOLGATE_GATE_CALL_H
#define TOOLGATE_GATE_CALL_H

#include "catalog/client_tools.h"
#include "gate/verdict.h"

struct call;
struct upstreams;

#define CALL_COST_KEY "dev.toolgate/cost" /* in a result's _meta: what the call really cost */

enum call_mode {
    CALL_RUN,   /* tools/call: all stages */
    CALL_CHECK, /* toolgate/check: stops after stage 5 */
    CALL_REPORT /* toolgate/report: enters at stage 7 */
};

/* What was asked. Everything is borrowed and must live in the call's arena or longer. */
struct call_request {
    enum call_mode mode;
    struct str tool;
    const struct json *arguments; /* NULL: none; a JSON string holding an object is read as that object */
    struct str arguments_fault; /* not empty: they could not be read (duplicate keys, …), and this says why */
    struct str session;         /* the client's word; empty: anonymous */
    struct str connection;      /* names the anonymous session, unique to the connection */
    uint32_t turn;              /* 0: not told */
    struct str step, goal, label, ext;
    const struct peer *peer;
    struct client_tools *client_tools; /* NULL: none */
    const struct json
        *result; /* report: what the tool gave: an MCP CallToolResult or any JSON; NULL with an error */
    struct str error_message; /* report: the tool failed */
    bool has_error, error_transient;
    bool error_transient_given; /* report: `error_transient` was told; otherwise the message is read for it */
    struct str call_id;         /* report: from the check; empty: there was none */
    const struct json *simulated_result; /* examples: what the tool gives instead of being run */
    const struct json *facts;            /* examples: instead of the ledger's; NULL otherwise */
    bool supports_elicitation;           /* the client puts an upstream's questions to its user itself */
    const struct json *responses; /* what the user said to them, on its second try; NULL: nothing yet */
    struct str request_state;     /* the upstream's own note that goes with them; may be empty */
    bool session_stuck;  /* the gate's own word: the session is stuck, and prepare_tools hides nothing */
    bool ignore_prepare; /* examples: a tool that prepare hooks hide exists all the same */
    bool force_enforce;  /* examples: whatever the mode, they show what is said where it is felt */
    bool dry_run;        /* `check --trace` without a session: nothing is counted */
    bool trace;          /* keep a line per stage */
};

/* What every call shares. */
struct gate {
    struct generation *generation; /* current; swapped by reload */
    struct ledger *ledger;
    struct upstreams *upstreams; /* NULL: examples, commands without a daemon; nothing is run outside */
    struct metrics *metrics;     /* NULL: examples */
    uint64_t admissions;         /* seed and counter of call ids */
};

typedef void call_done(void *owner, struct call *call);
typedef void call_log(void *owner, struct str level, struct str text);
typedef void call_progress(void *owner, double progress, double total, struct str message);

/* The call lives in `arena` and dies with it; it holds its generation by reference until call_free. */
struct call *call_new(struct gate *gate, struct arena *arena, const struct call_request *request);
/* Who hears what a tool says while it runs: until `done`, and no more once call_start has said true or after
 * call_cancel. */
void call_on_progress(struct call *call, call_progress *progress, void *owner);
void call_on_log(struct call *call, call_log *log, void *owner);

/* True: finished at once, and `done` will not fire. False: `done` fires exactly once, later, never inside
 * this call, and never after call_cancel. */
bool call_start(struct call *call, call_done *done, void *owner);

/* The client does not want it any more: reservations are released, `done` never fires. */
void call_cancel(struct call *call);
void call_free(struct call *call); /* drops the generation; the memory goes with the arena */

/* After it finished: */
const struct verdict *call_verdict(const struct call *call);
const struct tool *call_tool(const struct call *call); /* NULL: unknown */
struct str call_alias(const struct call *call); /* the alias it was called by; empty: the tool's own name */
struct str call_id(const struct call *call);    /* 16 hex digits */
const struct json *call_arguments(const struct call *call); /* as normalised; what the tool was given */
struct str
call_feedback(const struct call *call); /* what the model reads: the feedback; empty on a plain pass */
struct str call_advice(
    const struct call *call); /* on a pass: notes for the model ("nothing changed", a mended argument) */

/* The tool's result of a CALL_RUN that passed (or partial, garbage): MCP content array and structuredContent,
 * metadata; NULL where there is none. Sent bytes are kept. */
const struct json *call_content(const struct call *call);
const struct json *call_structured(const struct call *call);
const struct json *call_metadata(const struct call *call);

/* What the upstream asks of a client that can be asked: {inputRequests, requestState?}; NULL: nothing. */
const struct json *call_input_requests(const struct call *call);

/* The same as one value, as the model gets it; NULL where there is none. */
const struct json *call_visible_result(const struct call *call);
const struct json *call_result(const struct call *call); /* as one value, the way a policy reads it */

struct call_trace {
    const char *stage;   /* "known", "shape", … in order */
    struct str decision; /* "pass", "repair: 2 problems", … */
    int64_t ns;
};
size_t call_traces(const struct call *call, const struct call_trace **out);

/* "uid:1000/chat-7", "shared/chat-7", "anonymous/…": the ledger's name for a session. */
struct str call_session_key(struct arena *arena, const struct config *config, const struct peer *peer,
                            struct str session, struct str connection);

#endif

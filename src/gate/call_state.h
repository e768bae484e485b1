/* The state of one call, and what its stages share. Private to the call: README.md names its files. */
#ifndef TOOLGATE_GATE_CALL_STATE_H
#define TOOLGATE_GATE_CALL_STATE_H

#include "base/clock.h"
#include "catalog/generation.h"
#include "gate/arguments.h"
#include "gate/call.h"
#include "gate/ids.h"
#include "gate/verdict.h"
#include "policy/policy_hooks.h"
#include "result/compact.h"
#include "upstream/upstream.h"

#include <stdint.h>

#define CALL_TRACES_MAX 24u /* a retry passes some stages more than once */

/* For a call whose first run may have taken effect. */
#define CALL_HINT_CHECK_FIRST                                                                                \
    STR_LIT("First check whether it was carried out; only if not, make the same call again.")

/* For a result that is too large, or was cut off. */
#define CALL_HINT_ASK_FOR_LESS                                                                               \
    STR_LIT("Ask for less: fewer items, a page, a narrower range; or use another tool.")

/* A call to an upstream. */
struct upstream_exchange {
    struct upstream_request request;
    struct upstream_answer answer;
};

struct call {
    struct call_request request; /* first: call_new copies it, and zeroes what follows */
    struct gate *gate;
    struct generation *generation; /* referenced until call_free */
    struct arena *arena;
    call_done *done;
    void *owner; /* of `done` */

    uint64_t admission;         /* the call id */
    const char *id;             /* its text; NULL: call_id makes it */
    const struct tool *tool;    /* NULL until stage 1 has found it */
    struct ledger_answer *peek; /* NULL: no hook can hide the tool */
    bool peek_is_newest;        /* not of this daemon's cache */
    struct str told_goal;       /* by the request itself */
    struct arguments args;
    struct call_lax *lax;      /* NULL: valid, or nothing to insist on */
    struct id_candidates *ids; /* NULL: no id needs to have been seen */
    /* the question about ids that were not seen before; NULL: no question */
    const struct policy_outcome *unseen;
    struct hash128 fingerprint;       /* of one that was admitted, not reported */
    const struct json *fingerprinted; /* the arguments that it is of; NULL: not admitted */
    struct ledger_place place;
    const struct ledger_answer *answer; /* to admit; until then, and of a report, an empty one */
    struct ledger_answer *settled;      /* NULL until stage 8 */
    struct upstream_exchange *upstream; /* NULL: the tool does not run in an upstream */
    struct verdict *before_run;         /* restored before a retry; NULL: failures are not retried */
    uint32_t tries;
    int64_t first_try_ms;
    struct result result;
    const struct json *hashed; /* call_result_hash's last value; NULL: none yet */
    struct hash128 result_hash;
    struct compaction compacted;     /* the result that is shown, if `compacted.done` */
    struct verdict verdict;          /* VERDICT_PASS, CLASS_OK until a stage decides otherwise */
    struct call_outcome outcome;     /* complete once the call has finished */
    bool busy;                       /* nothing of it is counted */
    const struct ledger_call *rated; /* its admit, if the tool has rates */
    int64_t rated_ns;
    bool admitted, ran, settle_started, finished, cancelled;
    struct call_ask *ask; /* NULL: no policy has asked the user */
    bool under_way;       /* the call may be a poll, and its result says that what it asks for goes on */
    bool uninformative;   /* the result adds nothing: the ledger counts it as garbage */

    struct policy_time time; /* of its hooks so far */
    struct call_timing timing;
    int64_t began_ns, part_began_ns; /* 0: not timed */
    enum call_part part;             /* the one that runs or waits */

    struct call_span *span; /* NULL: not traced */
    size_t stage;
    struct call_trace *traces; /* CALL_TRACES_MAX; NULL: not requested */
    int64_t stage_began_ns;
};

/* A call whose problems a model may insist on. */
struct call_lax {
    const struct json *args; /* after the policies' normalise */
    const struct ledger_problem *problems;
    size_t problem_count;
    uint64_t known; /* by the fleet: see ledger_call.lax_known */
};

/* What a stage returns: go on to the next stage, wait for call_resume, or go back to stage 6. */
enum step { STEP_NEXT, STEP_WAIT, STEP_RETRY };

/* ---- call_run.c ---- */

static inline int64_t call_mono_ms(void)
{
    return clock_mono_us() / 1000;
}

enum step call_run(struct call *call);          /* 6 */
enum step call_run_answered(struct call *call); /* 6, resumed */
enum step call_retry(struct call *call);        /* after 7: waits, to go back to 6 */
enum step call_retry_due(struct call *call);

/* ---- call_judge.c ---- */

enum step call_judge(struct call *call); /* 7 */
/* A JSON-RPC error says that the call was one too many: it did not run. `after_s`: when to repeat it; -1. */
bool call_is_rate_limited(const struct call *call, const struct upstream_answer *answer, int64_t *after_s);
/* The call may be a poll, and its result says that what it asks for goes on. */
bool call_under_way(struct arena *arena, const struct ledger_limits *limits, const struct json *args,
                    const struct result *result);

/* ---- call_ask.c ---- */

/* 4: the model insists on ids that were not seen before. Of a tool that destroys data, and of `strict` ids,
 * stage 5 asks the user first. */
void call_ask_unseen(struct call *call, struct str goal);
enum step call_check(struct call *call); /* 5 */
/* What the check hook of one policy decides. */
void call_check_hook(struct call *call, const struct policy *policy, struct verdict *found);
enum step call_ask_answered(struct call *call); /* 5, resumed: what has become of the question */
/* 8: an unanswered question that is repeated counts as a loop; one that is being put to the user does not. */
bool call_ask_counts(const struct call *call);
/* The tool has asked the user something itself, and will be called again: what was approved for this call
 * still is. */
void call_ask_reopen(struct call *call);

/* ---- call_lax.c ---- */

enum step call_lax_ask(struct call *call); /* 3, of invalid arguments: may the model insist? */
void call_lax_pass(struct call *call);     /* 4: it does */
/* 8: bit i: the server's error names what lax->problems[i] is about. Of a report, `lax` is found here. */
uint64_t call_lax_refused(struct call *call);

void call_lax_settled(struct call *call); /* 8: the fleet learns what the session has learnt */

/* The callback of ledger and upstream requests: continues the call, which is `owner`. */
void call_resume(void *owner);

/* An error message without what the tool's policies redact; itself if they redact nothing in it. */
struct str call_redact_text(struct call *call, struct str text);
void call_redact(struct call *call); /* the result likewise */

/* ---- call_state.c ---- */

/* The call as the policy's hooks see it. */
struct policy_call call_for_policy(struct call *call);
/* The user's goal, from this call or from its turn. */
struct str call_goal(const struct call *call);
/* Whether the ledger knows the session of this key by that id. */
bool call_is_of(struct str session_key, struct hash128 id);
/* The problems of invalid arguments, by which the ledger tells whether an attempt was progress. None if not
 * all are listed: then progress is unknown. */
const struct ledger_problem *call_problems(const struct call *call, size_t *count);
/* The errors of a list. */
const struct ledger_problem *call_list_problems(struct arena *arena, const struct problems *problems,
                                                size_t *count);
/* Takes back what was decided if the tool's mode is shadow (`would` keeps the code) or off. Every mode
 * enforces that the tool exists, runs here, and gets readable arguments. */
void call_discard_unless_enforced(struct call *call);

/* A stage has ended: keeps which one decided, and its trace and span. */
void call_leave_stage(struct call *call, const char *name);
/* The log of calls, without their arguments. */
void call_log_end(const struct call *call);

/* Of its arguments, without volatile ones: by it the ledger knows calls that are alike. */
struct hash128 call_fingerprint(const void *call);
/* The json_fingerprint of the arguments as they came, for the decision log. */
struct hash128 call_arguments_hash(struct call *call);
/* The json_fingerprint of the result, or of what the ledger compares of it. */
struct hash128 call_result_hash(struct call *call, const struct json *value);
/* What a failed tool said, with its data. */
struct str call_failure_text(const struct call *call);
/* Sets what the ledger compares: of `value`, else (NULL) of the text. `c` NULL: a call of the past. */
void call_compare(struct call *c, struct arena *arena, const struct json *value, struct str text,
                  struct ledger_call *settle);

/* Which tools exist for one request. A tool that the peer may not call, or that a policy hides, does not
 * exist: not in lists, not in suggestions, not in errors. */

/* NULL: no such tool. Client tools come first; stage 1 refuses to run them (agent_runs_this). */
const struct tool *tool_lookup_find(const struct call *call, const struct call_request *request);

#define TOOL_LOOKUP_ALL_MAX 12u /* names that are listed if there are no more */

/* Existing names close to request->tool, best first (*close of them), and if there are at most
 * TOOL_LOOKUP_ALL_MAX in all, the others, too. Returns how many. */
size_t tool_lookup_suggest(const struct call *call, const struct call_request *request,
                           struct str out[TOOL_LOOKUP_ALL_MAX], size_t *close);

/* ---- call_span.c: a span of kind SERVER for the call, one for each stage, and one of kind CLIENT for each
 * run in an upstream. They hold names, classes and codes, never arguments, results or sentences. ---- */

#define CALL_SPAN_STAGES_MAX 32u /* a retry passes some stages more than once; further ones are left out */

/* NULL: the call is not sampled. */
struct call_span *call_span_begin(struct call *call);

/* A stage has ended, or the retry's pause; `call->stage_began_ns` is its beginning. */
void call_span_stage(struct call *call, const char *name);

/* What the upstream gets instead of the client's trace context. */
const struct trace_context *call_span_for_upstream(struct call *call);

/* Writes them; `stage`: the one that a cancellation has interrupted, or NULL. */
void call_span_end(struct call *call, const char *stage);

/* ---- overlays.c: policies for several tools. Each lies over the tool's own policy and is asked after it, in
 * the order of the files; the strictest verdict wins. In mode shadow an overlay leaves only the code that it
 * would have given. ---- */

void overlays_check_rules(struct call *call); /* 3: rules, normalise, format of ids */
void overlays_check(struct call *call);       /* 5 */

/* What the enforced ones make of the arguments of an earlier call, whose verdict is known. */
void overlays_normalise(struct arguments *args, const struct policy_call *call);

/* Takes over what an overlay found, if it is stricter than the verdict so far; `found` began as a copy of
 * that. */
void overlays_merge(struct call *call, const struct overlay *overlay, const struct verdict *found);

/* Pattern sets (result/pattern_sets.h), as gateway { check, result } names them: arguments with a find are
 * refused, secrets in results are masked, orders in results are marked as data. */

/* Masks what the sets find in every part of the result. */
void pattern_guard_mask(struct call *c, unsigned sets);

/* Notes what the policy's sets find in the result: for the model if it is enforced, else as `would`. */
void pattern_guard_judge(struct call *c, const struct overlay *overlay);

#endif

/*
 * All that is known of a call while it lives. call.c tells its life, call_run.c
 * how it is run, call_judge.c how its result is judged, call_settle.c what the
 * ledger is told of it, call_accessors.c answers what others ask of it. Only these
 * five include this header.
 */
#ifndef TOOLGATE_GATE_CALL_STATE_H
#define TOOLGATE_GATE_CALL_STATE_H

#include "gate/call.h"
#include "result/compact.h"
#include "gate/verdict_from.h"
#include "upstream/upstream.h"

#define CALL_TRACES_MAX 24u /* some stages more than once, where a call is tried again */

/* Of a call that others run. */
struct outside {
    struct upstream_request request;
    struct upstream_answer answer;
};

struct call {
    struct gate *gate;
    struct generation *generation;
    struct arena *arena;
    struct call_request request;
    call_done *done;
    call_progress *progress;
    call_log *log;
    void *owner, *listener;

    uint64_t admission;
    const struct tool *tool;  /* NULL until known */
    struct str called;        /* the alias it was called by; empty: its name */
    struct ledger_peek *peek; /* NULL: no hook hides it */
    struct arguments args;
    struct id_candidates *ids; /* NULL: none must have been seen */
    struct hash128 fingerprint;
    struct ledger_place place;
    struct ledger_answer answer;
    struct ledger_settled settled;
    struct outside *outside; /* NULL: it runs here */
    struct verdict *fresh;   /* as it was before the first try; NULL: it is not tried again */
    uint32_t tries;
    int64_t first_try_ms;
    struct result result;
    struct compacted shown; /* what is shown of it, where that is less; `done` says so */
    struct verdict verdict; /* VERDICT_PASS, CLASS_OK until something decides otherwise */
    struct str text, advice;
    bool admitted, ran, settling, empty, finished;

    size_t stage;
    struct call_trace traces[CALL_TRACES_MAX];
    size_t trace_count;
    int64_t stage_began;
};

/* What a stage wants next: the one behind it; to be resumed; the stage that runs the call once more. */
enum step { GO_ON, WAIT, GO_BACK };

enum step call_run(struct call *call);               /* 6 */
enum step call_upstream_answered(struct call *call); /* its upstream has answered */
enum step call_retry(struct call *call);             /* a pause, where another try is right */
enum step call_retry_due(struct call *call);         /* it is over */
enum step call_judge(struct call *call);             /* 7 */
enum step call_settle(struct call *call);            /* 8 */
enum step call_settle_answered(struct call *call);   /* the ledger has answered */
/* Of one that was admitted and that nobody waits for any more: gives back what it took. */
void call_release(struct call *call);

/* Who a stage waits for calls this, with the call. */
void call_resume(void *call);
/* The call as hooks may know it. */
struct policy_call call_for_policy(struct call *call);
/* What the user asked for, as this call or its turn told it. */
struct str call_goal(const struct call *call);
/* Only what is enforced is felt: takes back what was decided in shadow mode, which remembers it, and in off.
 */
void call_discard_unless_enforced(struct call *call);

#endif

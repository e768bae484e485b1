/*
 * What the files of the rules share: rules.c applies requests, window.c reads the window of calls, chains.c
 * keeps repair chains, admit.c keeps sums and the pace of polls.
 */
#ifndef TOOLGATE_LEDGER_RULES_INTERNAL_H
#define TOOLGATE_LEDGER_RULES_INTERNAL_H

#include "ledger/session.h"

/* One request and what it is applied to. */
struct rules_ctx {
    struct session *session;
    struct session_changes *changes;
    const struct ledger_call *request;  /* NULL: of a turn or a reset */
    const struct ledger_limits *limits; /* of its tool */
    int64_t now_ms;
    uint32_t now_s;
    int64_t idle_ms;           /* since the session's last request */
    bool halted, not_enforced; /* of the call that is noted */
};

#define STEPS_APART 128u /* half of what a call's byte tells apart */

/* The class is that of a tool that ran, and whose result is known. */
static inline bool call_ran(const struct session_call *call)
{
    return call->class >= CALL_OK && call->class <= CALL_TOOL_ERROR;
}

/* A person ended the runs of its tool: it keeps its place, with arguments that no other call has. */
static inline bool call_was_reset(const struct session_call *call)
{
    return call->arguments == call->admission;
}

/* A tool with these effects changes something, and that is declared. */
static inline bool effects_change(enum ledger_effects effects)
{
    return effects == LEDGER_EFFECTS_WRITE || effects == LEDGER_EFFECTS_DESTRUCTIVE;
}

/* A limit that is a count of calls: larger ones than LEDGER_COUNT_MAX never fit in the window. */
static inline unsigned limit_count(uint32_t limit)
{
    return limit == LEDGER_UNLIMITED  ? SESSION_COUNT_MAX
           : limit < LEDGER_COUNT_MAX ? limit
                                      : LEDGER_COUNT_MAX;
}

/* FNV-1a: the hashes of a path's beginnings come with that of the path. */
#define RULES_HASH_EMPTY 2166136261u
static inline uint32_t rules_hash_more(uint32_t hash, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 16777619u;
    return hash;
}

/* ---- rules.c ---- */

/* What is stored of names and hashes. */
uint32_t rules_hash_label(struct str label); /* 0: it is empty */
/* Of a tool that reads or is unknown, the same call of another agent is another call; what is written is the
 * session's. */
uint64_t rules_cut_arguments(struct hash128 arguments, uint32_t agent, enum ledger_effects effects);
/* To what a call has for its result (39 bits), or for it without what is masked (40). 0: {0, 0}, nothing is
 * known of it: no known result is 0. */
uint64_t rules_cut_result(struct hash128 result, unsigned bits);

/* A call of the session's turn and step; its arguments and class are the caller's to set. */
struct session_call rules_new_call(const struct rules_ctx *ctx);

/* Changes nothing yet: a request that was applied already has no time. */
struct rules_ctx rules_begin(struct session *session, struct session_changes *changes,
                             const struct ledger_call *request, int64_t now_ms);
void rules_expire(struct rules_ctx *ctx);
/* `may_guess`: silence may begin a turn. */
void rules_come_to_turn(struct rules_ctx *ctx, bool may_guess);
void rules_come_to_step(struct rules_ctx *ctx);
void rules_end_silence(struct rules_ctx *ctx);
/* Feedback of a call of this step goes out: the next unnamed call is of another step. */
void rules_end_step(struct session *session, uint8_t step);
/* Something new came of an agent's call, or nothing. */
void rules_progress(struct session *session, uint16_t agent, bool made);

/* Entries of the journal; their time is that of the request. */
void rules_note(struct rules_ctx *ctx, struct session_note note, unsigned retries);
void rules_note_call(struct rules_ctx *ctx, const struct session_call *call, uint8_t label,
                     enum session_code code, unsigned retries);

/* ---- window.c ---- */

/* Whose past is asked for. */
struct window_query {
    const struct session *session;
    const struct session_call *call;    /* what is known of it */
    const struct session_call *self;    /* in the window; NULL: it is not there yet */
    const struct ledger_limits *limits; /* of its tool */
    unsigned older;                     /* calls of the window that are older than it */
    uint32_t now_s;
    bool any_outcome;   /* runs go by the arguments alone */
    bool spent_forever; /* `spent` counts calls of earlier turns, too */
};

/* Steps in a row with one outcome. */
struct window_run {
    unsigned steps;
    unsigned alike;  /* of these, with exactly the newest outcome that is known, that included */
    unsigned nearly; /* of these, with one that differs in what is masked */
};
/* The length of the run if the call is made now: what differs in what is masked counts half, and the call and
 * those of unknown outcome as well unless two were exactly alike. */
unsigned window_times(const struct window_run *run);

/* What the window says of a call. Counts are of steps, but for `held` and `transients`. */
struct window_past {
    enum ledger_came_of came_of;   /* of the newest that was judged, in any turn */
    struct window_run run, across; /* in this turn; in any */
    unsigned asked, polls; /* in a row with any outcome, in this turn; of these, with a changed result */
    unsigned asked_ever;   /* the same as `asked`, beyond the window and whatever time lay between */
    bool paced;     /* LEDGER_POLL_PACE_S lie between the last of them and now: then it does not count */
    bool under_way; /* what it asked for went on when it last ran, in any turn */
    unsigned spent; /* of its same-call budget */
    unsigned failed_alike; /* runs of this turn with the query's error, else that of the last, since a write
                              succeeded */
    unsigned held;         /* calls in this turn */
    unsigned transients;   /* failures since it ran last, in this turn */
    bool twin;             /* it runs or ran in this step, and no other call came since */
    unsigned at_once;      /* of its same-call budget, in this step or still running */
    bool broken;           /* its result did not match its schema, in this turn */
    bool invalid_before;   /* its arguments were invalid, in this turn */
    bool invalid_last;     /* and nothing else came of it since */
};

/* Of a call that is at `self` in the window, or comes behind all calls (NULL). */
struct window_query window_query(const struct rules_ctx *ctx, const struct session_call *call,
                                 const struct session_call *self);
bool window_has_tool(const struct session *session, uint32_t tool);
void window_look(const struct window_query *query, struct window_past *past);

/* How often a cycle of 2 to 5 calls has been repeated if this call is made now; 1: it is in no cycle. */
unsigned window_rounds(const struct window_query *query);

/* The same call's last result in an earlier step of its turn; NULL: none exists. */
const struct session_call *window_last_result(const struct window_query *query);

/* Failures in a row of the agent's calls of the tool with one masked error, in the turn, before the call; no
 * call of any tool succeeded between. `masked` 0: any; else they must have this one. */
unsigned window_same_failure(const struct window_query *query, uint64_t masked);

/* Counts of calls that left the window are forgotten: of one tool (0: of all) with these effects (bits). What
 * an annotation alone calls destructive is a write. */
void window_spent_drop(struct session *session, uint32_t tool, unsigned effects);
/* The same by a success that re-arms them. */
void window_spent_settle(struct session *session, const struct session_call *call);

/* Adds a call to the window; when it is full, one leaves (find_leaving). Returns where it is now. */
struct session_call *window_add(struct session *session, const struct session_call *call);
/* Drops calls that would be mistaken for calls of a turn that begins now. */
void window_forget_turn(struct session *session, uint8_t turn);

/* ---- chains.c ---- */

struct chain_state {
    bool exhausted;     /* this attempt is one too many */
    bool runs_away;     /* and there were many after that */
    bool made_progress; /* it cost nothing */
    unsigned attempt, left;
    unsigned free_attempts;       /* of a look: those that have made progress */
    enum session_outcome outcome; /* of a chain that ended now */
    unsigned retries;             /* of that chain */
};

/* The chain is that of a call: of its tool, its agent, and the request's dev.toolgate/call. */

/* It is invalid. `no_problems`: its problems do not count: it is valid, and refused because it was invalid
 * before. `again`: the same arguments were invalid before. */
struct chain_state chain_extend(struct rules_ctx *ctx, const struct session_call *call, bool no_problems,
                                bool again);
/* What `attempt` and `left` are for the next such call in its step; for its last one if `invalid`. */
struct chain_state chain_look(const struct rules_ctx *ctx, const struct session_call *call, bool invalid);
/* It ran. The tool's chains that were used up are forgotten. */
struct chain_state chain_succeed(struct rules_ctx *ctx, const struct session_call *call);
/* It had an id that no result gave. */
struct chain_state chain_fabricated(struct rules_ctx *ctx, const struct session_call *call);
/* It was let run although it is invalid: an attempt of the chain, if there is one, that does not end it. */
struct chain_state chain_spend(struct rules_ctx *ctx, const struct session_call *call);
void chain_give_up_all(struct rules_ctx *ctx);
void chain_drop_tool(struct session *session, uint32_t tool);

/* ---- lax.c ---- */

enum lax_kind {
    LAX_NONE,    /* refused like any invalid call: the server has refused one of its problems, say */
    LAX_LATER,   /* it does not run, and the same call in a later step would */
    LAX_AT_ONCE, /* it runs: the server has accepted each of its problems before */
    LAX_INSISTS  /* it runs: the session has asked about the others in an earlier step */
};
enum lax_kind lax_judge(const struct rules_ctx *ctx, uint8_t step);
/* Its problems were asked about in `step`, or (admission) it is let run with them. */
void lax_remember(struct rules_ctx *ctx, uint8_t step, uint64_t admission);
/* True: the session has learnt from this call that the server accepts a problem. */
bool lax_settle(struct rules_ctx *ctx, const struct session_call *call);
void lax_drop_tool(struct session *session, uint32_t tool);

/* ---- admit.c ---- */

/* Adds to the sums, or takes back; `this_turn`: to those of the turn, too. */
void limits_add(struct rules_ctx *ctx, uint32_t tool, int calls, int64_t cost, bool this_turn);
/* It is let run now; `runs` false: it was not after all. */
void limits_pace(struct rules_ctx *ctx, uint32_t tool, uint64_t arguments, bool runs);

#endif

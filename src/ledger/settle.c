/*
 * settle: what became of a call that was admitted. Its result is compared with the last one, its repair chain
 * may end, what was taken for it makes room for what it came to.
 */
#include "ledger/rules_internal.h"

static const enum session_call_class settled_classes[LEDGER_CLASS_COUNT] = {
    [LEDGER_CLASS_OK] = CALL_OK,
    [LEDGER_CLASS_PARTIAL] = CALL_PARTIAL,
    [LEDGER_CLASS_GARBAGE] = CALL_GARBAGE,
    [LEDGER_CLASS_SCHEMA_MISMATCH] = CALL_MISMATCH,
    [LEDGER_CLASS_TOOL_ERROR] = CALL_TOOL_ERROR,
    [LEDGER_CLASS_TRANSIENT] = CALL_TRANSIENT,
    [LEDGER_CLASS_INVALID] = CALL_INVALID,
    [LEDGER_CLASS_FABRICATED] = CALL_FABRICATED,
    [LEDGER_CLASS_RELEASED] = CALL_RELEASED,
    [LEDGER_CLASS_REFUSED] = CALL_REFUSED,
};

/* What became of a call. */
struct settlement {
    struct rules_ctx ctx;
    struct session_call *call;
    struct session_call came; /* what is to be recorded of it */
    bool is_counted;          /* already */
    bool was_denied, is_orphan;
    struct window_query query;
    struct window_past past;
    struct chain_state chain;
    struct ledger_answer *settled;
};

static void find_call(struct settlement *s)
{
    s->call = (struct session_call *)session_find(s->ctx.session, s->ctx.request->admission);
    if (!s->call) { /* never admitted, or the window has lost it: its effect is unknown */
        const struct ledger_call *request = s->ctx.request;
        s->is_orphan = true;
        rules_come_to_step(&s->ctx);
        struct session_call orphan = rules_new_call(&s->ctx);
        orphan.arguments = rules_cut_arguments(request->arguments, request->place.agent, orphan.effects);
        orphan.class = CALL_UNKNOWN;
        s->ctx.changes->new_tool = !window_has_tool(s->ctx.session, orphan.tool);
        s->call = window_add(s->ctx.session, &orphan);
        s->came = *s->call;
        return;
    }
    const struct session_call *call = s->call;
    s->was_denied = call->class == CALL_DENIED;
    s->is_counted = call->class != CALL_PENDING && call->class != CALL_DENIED &&
                    !(call->class == CALL_UNKNOWN && call->may_settle);
    s->came = *call;
    s->came.class = settled_classes[s->ctx.request->class];
    s->came.result = call_ran(&s->came) ? rules_cut_result(s->ctx.request->result, 39) : 0;
    s->came.masked = call_ran(&s->came) && s->came.class != CALL_MISMATCH
                         ? rules_cut_result(s->ctx.request->masked, 40)
                         : 0;
    s->came.may_settle = s->came.changed = false;
}

static void compare_with_last(struct settlement *s)
{
    s->query = window_query(&s->ctx, &s->came, s->call);
    window_look(&s->query, &s->past);
    if (!call_ran(&s->came))
        return;
    s->came.asked = s->past.asked_ever < SESSION_COUNT_MAX ? s->past.asked_ever + 1 : SESSION_COUNT_MAX;
    s->came.under_way = s->ctx.request->under_way;
    if (s->past.held == 0)
        return;
    const struct session_call *last = window_last_result(&s->query);
    s->settled->unchanged = last && last->result == s->came.result;
    /* A new result is a reason to ask again only where asking changes nothing itself. */
    const struct ledger_limits *limits = s->ctx.limits;
    bool excuses = !limits->compare_arguments && (limits->polls || !effects_change(s->came.effects));
    s->came.changed = last && !s->settled->unchanged && s->came.class <= CALL_PARTIAL && excuses;
}

static void settle_chain(struct settlement *s)
{
    const struct session_call *came = &s->came;
    if (came->class == CALL_INVALID) {
        bool anonymous = s->ctx.request->place.anonymous;
        s->chain = chain_extend(&s->ctx, came, false, s->past.invalid_before);
        s->settled->says = s->chain.exhausted && !anonymous ? LEDGER_REFUSE : LEDGER_REPAIR;
    } else if (came->class >= CALL_OK && came->class <= CALL_MISMATCH) {
        s->chain = chain_succeed(&s->ctx, came);
    } else if (came->class == CALL_FABRICATED) {
        s->chain = chain_fabricated(&s->ctx, came);
    }
}

/* What was taken when it was let run makes room for what it came to; what did not run costs nothing. */
static void settle_sums(struct settlement *s)
{
    const struct ledger_call *request = s->ctx.request;
    const struct ledger_limits *limits = s->ctx.limits;
    bool taken = !s->was_denied && !s->is_orphan;
    bool given_back = s->came.class >= CALL_RELEASED || request->not_begun;
    int64_t cost = given_back ? 0 : (int64_t)(request->cost_told ? request->cost : limits->cost);
    int calls = s->was_denied && !given_back;
    if (taken)
        cost -= (int64_t)limits->cost;
    if (taken && given_back) {
        calls = -1;
        limits_pace(&s->ctx, s->came.tool, s->came.arguments, false);
    }
    if (calls || cost)
        limits_add(&s->ctx, s->came.tool, calls, cost, s->came.turn == (uint8_t)s->ctx.session->turn);
}

static void count_settled(struct settlement *s)
{
    struct session *session = s->ctx.session;
    session->last_ms = (uint64_t)s->ctx.now_ms;
    settle_chain(s);
    if (session->lax_count && !s->is_orphan)
        s->settled->lax_learnt = lax_settle(&s->ctx, &s->came);
    rules_end_step(session, s->came.step);
    rules_end_silence(&s->ctx);
    enum session_call_class class = s->came.class;
    if (class == CALL_PARTIAL || (class == CALL_OK && !s->settled->unchanged) || s->chain.made_progress)
        rules_progress(session, s->came.agent, true);
    else if (class != CALL_TRANSIENT && class != CALL_RELEASED && class != CALL_UNKNOWN)
        rules_progress(session, s->came.agent, false);
    settle_sums(s);
    if (s->settled->says != LEDGER_REPAIR)
        rules_note_call(&s->ctx, &s->came, s->is_orphan ? 0 : ledger_label_number(s->ctx.request->label),
                        s->settled->says == LEDGER_REFUSE ? CODE_RETRY_BUDGET
                        : s->ctx.request->declined        ? CODE_DECLINED
                        : s->ctx.request->approved        ? CODE_APPROVED
                                                          : CODE_NONE,
                        s->chain.retries);
    *s->call = s->came;
    window_spent_settle(session, s->call);
}

bool session_settle(struct session *session, const struct ledger_call *request, int64_t now_ms,
                    struct ledger_answer *settled, struct session_changes *changes)
{
    struct settlement s = {.chain.attempt = 1, .settled = settled};
    settled->says = LEDGER_RUN;
    settled->unchanged = settled->lax_learnt = false;
    s.ctx = rules_begin(session, changes, request, now_ms);
    s.ctx.not_enforced = request->not_enforced;
    s.chain.left = limit_count(s.ctx.limits->repair);
    find_call(&s);
    compare_with_last(&s);
    if (!s.is_counted) {
        count_settled(&s);
    } else {
        s.chain = chain_look(&s.ctx, &s.came, true);
        if (s.came.class == CALL_INVALID)
            settled->says = s.chain.exhausted ? LEDGER_REFUSE : LEDGER_REPAIR;
    }
    bool failed = s.came.class == CALL_TOOL_ERROR && s.came.masked;
    unsigned row = failed ? 1 + window_same_failure(&s.query, s.came.masked) : 0;
    settled->error = OK;
    settled->repeats = s.past.run.steps + 1;
    settled->asked = s.past.asked_ever + 1;
    settled->no_progress = session_idle_calls(s.ctx.session, s.came.agent);
    settled->same_failure = row;
    settled->failed_alike = row ? s.past.failed_alike + 1 : 0;
    settled->attempt = s.chain.attempt;
    settled->attempts_left = s.chain.left;
    settled->transient_count = s.past.transients + (s.came.class == CALL_TRANSIENT);
    settled->chain = ledger_outcome_name(s.chain.outcome);
    settled->chain_retries = s.chain.retries;
    return !s.is_counted;
}

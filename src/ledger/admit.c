/*
 * admit: a call asks to be let run. It comes to its turn and step, the window says what its past is, then
 * what speaks against it is looked for in order of precedence (judge), and it is recorded.
 */
#include "ledger/rules_internal.h"

/* ---- what a tool and a session may use up. A call's declared cost is taken when it is let run, so that
 * parallel calls cannot overspend together; when it is settled, what it really cost takes its place. ---- */

#define COST_SUM_MAX (((int64_t)1 << 48) - 1)

static bool is_limited(const struct ledger_allowance *a)
{
    return a->calls_per_turn || a->calls_per_session || a->seconds_per_turn || a->cost_per_turn ||
           a->cost_per_session;
}

/* ---- sums ------------------------------------------------------------------------ */

static uint32_t add_calls(uint32_t sum, int by)
{
    if (by < 0)
        return sum > 0 ? sum - 1 : 0;
    return sum == UINT32_MAX ? sum : sum + (uint32_t)by;
}

static uint64_t add_cost(uint64_t sum, int64_t by)
{
    int64_t result = (int64_t)sum + by;
    return (uint64_t)(result < 0 ? 0 : result > COST_SUM_MAX ? COST_SUM_MAX : result);
}

/* The counter of a tool. Those that find no place share the last one, whose tool is 0. NULL: nothing is
 * counted yet. */
static struct session_counter *find_counter(struct session *session, uint32_t tool)
{
    for (unsigned i = 0; i < session->counter_count; i++)
        if (session->counters[i].tool == tool)
            return &session->counters[i];
    return session->counter_count == SESSION_COUNTERS_MAX ? &session->counters[SESSION_COUNTERS_MAX - 1]
                                                          : NULL;
}

/* What a tool has used, as of this turn. */
static struct session_counter read_counter(const struct rules_ctx *ctx, uint32_t tool)
{
    const struct session_counter *kept = find_counter(ctx->session, tool);
    struct session_counter counter = {.tool = tool, .turn = ctx->session->turn, .began_s = ctx->now_s};
    if (!kept)
        return counter;
    counter.tool = kept->tool;
    counter.calls = kept->calls;
    counter.cost = kept->cost;
    if (kept->turn == ctx->session->turn) {
        counter.calls_turn = kept->calls_turn;
        counter.cost_turn = kept->cost_turn;
        if (kept->calls_turn > 0)
            counter.began_s = kept->began_s;
    }
    return counter;
}

void limits_add(struct rules_ctx *ctx, uint32_t tool, int calls, int64_t cost, bool this_turn)
{
    struct session *session = ctx->session;
    session->calls_made = add_calls(session->calls_made, calls);
    session->cost = add_cost(session->cost, cost);
    if (this_turn) {
        session->calls_in_turn = add_calls(session->calls_in_turn, calls);
        session->cost_in_turn = add_cost(session->cost_in_turn, cost);
    }
    if (!is_limited(&ctx->limits->tool))
        return;
    struct session_counter counter = read_counter(ctx, tool);
    counter.calls = add_calls(counter.calls, calls);
    counter.cost = add_cost(counter.cost, cost);
    if (this_turn) {
        counter.calls_turn = add_calls(counter.calls_turn, calls);
        counter.cost_turn = add_cost(counter.cost_turn, cost);
    }
    struct session_counter *to = find_counter(session, tool);
    if (!to) {
        if (session->counter_count == SESSION_COUNTERS_MAX - 1)
            counter.tool = 0;
        to = &session->counters[session->counter_count++];
    }
    *to = counter;
}

/* ---- allowances ------------------------------------------------------------------ */

/* The first allowance that is used up, and how much of it was; CODE_NONE: there is room for the call. */
static enum session_code check_allowance(const struct rules_ctx *ctx, const struct ledger_allowance *a,
                                         const struct session_counter *so_far, uint64_t *used)
{
    const struct ledger_limits *limits = ctx->limits;
    const struct {
        enum session_code code;
        uint64_t most, used, more;
    } rows[] = {
        {CODE_CALLS_PER_TURN, a->calls_per_turn, so_far->calls_turn, 1},
        {CODE_CALLS_PER_SESSION, a->calls_per_session, so_far->calls, 1},
        {CODE_SECONDS_PER_TURN, a->seconds_per_turn, ctx->now_s - so_far->began_s, 1},
        {CODE_COST_PER_TURN, limits->costs ? a->cost_per_turn : 0, so_far->cost_turn, limits->cost},
        {CODE_COST_PER_SESSION, limits->costs ? a->cost_per_session : 0, so_far->cost, limits->cost},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].most && (rows[i].used >= rows[i].most || rows[i].used + rows[i].more > rows[i].most)) {
            *used = rows[i].used;
            return rows[i].code;
        }
    return CODE_NONE;
}

/* ---- pace ------------------------------------------------------------------------ */

/* The call's place among the paced ones; paced_count if it has none. */
static unsigned find_paced(const struct session *session, uint32_t tool, uint64_t arguments)
{
    unsigned i = 0;
    while (i < session->paced_count &&
           (session->paced[i].tool != tool || session->paced[i].arguments != arguments))
        i++;
    return i;
}

/* How long a polled call must wait still. */
static uint32_t limits_wait_ms(const struct rules_ctx *ctx, uint32_t tool, uint64_t arguments)
{
    uint32_t every = ctx->limits->poll_every_ms;
    if (!every)
        return 0;
    unsigned i = find_paced(ctx->session, tool, arguments);
    if (i == ctx->session->paced_count)
        return 0;
    uint64_t at = ctx->session->paced[i].at_ms, now = (uint64_t)ctx->now_ms;
    uint64_t since = now > at ? now - at : 0;
    return since >= every ? 0 : every - (uint32_t)since;
}

void limits_pace(struct rules_ctx *ctx, uint32_t tool, uint64_t arguments, bool runs)
{
    struct session *session = ctx->session;
    if (!ctx->limits->poll_every_ms)
        return;
    unsigned i = find_paced(session, tool, arguments);
    if (i == SESSION_PACED_MAX && runs)
        i = 0; /* the one let run longest ago goes */
    if (i < session->paced_count)
        DROP_AT(session->paced, session->paced_count, i);
    if (!runs)
        return;
    session->paced[session->paced_count++] =
        (struct session_paced){.tool = tool, .arguments = arguments, .at_ms = (uint64_t)ctx->now_ms};
}

/* ---- what speaks against a call ------------------------------------------- */

/* A call that asks to be let run. */
struct admission {
    struct rules_ctx ctx;
    struct session_call call; /* what the window knows of it before it is judged */
    struct window_query query;
    struct window_past past;
    uint32_t rate_wait_ms;
    enum ledger_so_far so_far; /* the request's; LEDGER_SO_FAR_VALID of one that may run with its problems */
    enum lax_kind lax;         /* LAX_NONE: it may not run with its problems */
    unsigned patience;         /* invalid arguments that have shrunk are a halt this many calls later */

    /* The verdict. */
    enum ledger_says says;
    enum session_code code, would;
    bool loops; /* the code is of a loop, which is looked for in calls of any kind */
    bool of_session;
    uint64_t used;
    struct chain_state chain;
};

/* That of the tool counts before that of the session. */
static enum session_code check_limits(struct admission *a)
{
    const struct session *s = a->ctx.session;
    const struct ledger_limits *limits = a->ctx.limits;
    enum session_code code = CODE_NONE;
    a->used = 0;
    if (is_limited(&limits->tool)) {
        struct session_counter tool = read_counter(&a->ctx, a->call.tool);
        code = check_allowance(&a->ctx, &limits->tool, &tool, &a->used);
    }
    if (!code && is_limited(&limits->session)) {
        struct session_counter all = {.calls_turn = s->calls_in_turn,
                                      .calls = s->calls_made,
                                      .cost_turn = s->cost_in_turn,
                                      .cost = s->cost,
                                      .began_s = s->turn_began_s};
        code = check_allowance(&a->ctx, &limits->session, &all, &a->used);
        a->of_session = code != CODE_NONE;
    }
    return code;
}

/* Of this many polls in a row. Those that leave time between them may go on for long. More than the window
 * tells are counted as they were asked. */
static bool over_polls(struct admission *a, unsigned polls)
{
    uint32_t most = a->ctx.limits->poll_max;
    if (most > LEDGER_COUNT_MAX)
        polls = a->past.asked_ever;
    bool over = a->past.asked_ever >= LEDGER_POLLS_MAX || (!a->past.paced && polls >= most);
    if (over && most != LEDGER_UNLIMITED)
        a->used = a->past.asked_ever;
    return over && most != LEDGER_UNLIMITED;
}

/* Runs and cycles; the longer one gives the code. Returns how often the call would have been made. */
static unsigned judge_loop(struct admission *a)
{
    const struct ledger_limits *limits = a->ctx.limits;
    unsigned times = window_times(&a->past.run), repeats = limit_count(limits->repeats);
    if (limits->polls || a->past.under_way) { /* it is meant to be asked again, with any results, and what it
                                                 asks for goes on, so that it never ends the run */
        if (over_polls(a, a->past.asked))
            a->code = CODE_POLL_BUDGET;
        return times;
    }
    if (times >= repeats || window_times(&a->past.across) >= limit_count(limits->across_turns))
        a->code = CODE_LOOP;
    if (a->past.held >= 2) {
        unsigned rounds = window_rounds(&a->query);
        if (rounds >= repeats && rounds > times) {
            a->code = CODE_CYCLE;
            times = rounds;
        }
    }
    if (a->code && times >= limit_count(limits->halt) + a->patience)
        a->says = LEDGER_HALT;
    return times;
}

/* What re-arms a failed call may be a shell that changed nothing: in the long run only a write helps. */
static bool fails_alike(struct admission *a)
{
    uint32_t most = a->ctx.limits->same_failure;
    if (a->past.failed_alike >= LEDGER_FAILED_ALIKE_MAX && !a->ctx.limits->polls) {
        a->used = a->past.failed_alike;
        return true;
    }
    const struct session_call *calls = a->ctx.session->calls;
    unsigned failed = 0; /* mostly too few did, which is quicker to count than a row */
#pragma GCC unroll 32
    for (unsigned i = 0; i < SESSION_CALLS_MAX; i++)
        failed += calls[i].class == CALL_TOOL_ERROR;
    if (most == LEDGER_UNLIMITED || failed + 1 < most)
        return false;
    unsigned failures = window_same_failure(&a->query, 0);
    if (failures + 1 < most)
        return false;
    a->used = failures;
    return true;
}

static enum session_code over_same_call(struct admission *a)
{
    const struct ledger_limits *limits = a->ctx.limits;
    unsigned most = limits->same_call < LEDGER_SAME_CALL_MAX ? limits->same_call : LEDGER_SAME_CALL_MAX;
    if (limits->same_call == LEDGER_UNLIMITED || limits->polls ||
        (a->past.under_way && !limits->same_call_hard && a->past.at_once < most) ||
        a->past.spent + a->past.at_once < most)
        return CODE_NONE;
    /* In a session whose turns are guessed from silence, "this turn" is too vague to refuse a read for; calls
     * in flight are not. */
    bool only_advises = limits->effects == LEDGER_EFFECTS_READ && !a->ctx.session->told_turn &&
                        a->ctx.request->place.turn_idle_s > 0 && a->past.at_once < most;
    if (!only_advises)
        return CODE_SAME_CALL;
    a->would = CODE_SAME_CALL;
    return CODE_NONE;
}

/* With more different writes in a turn than are remembered, a call that destroys may be a repeated one. */
static enum session_code over_writes(struct admission *a)
{
    const struct ledger_limits *limits = a->ctx.limits;
    if (!a->ctx.session->spent_full || a->past.spent || a->past.held)
        return CODE_NONE;
    if (limits->effects == LEDGER_EFFECTS_DESTRUCTIVE && !limits->hinted)
        return CODE_WRITES_PER_TURN;
    if (effects_change(limits->effects) || limits->same_call_hard)
        a->would = CODE_WRITES_PER_TURN;
    return CODE_NONE;
}

/* What speaks against a valid call that is in no loop, in order of precedence. */
static enum session_code find_refusal(struct admission *a)
{
    const struct ledger_limits *limits = a->ctx.limits;
    const struct window_past *past = &a->past;
    if (past->broken)
        return CODE_ALREADY_BROKEN;
    if ((a->used = limits_wait_ms(&a->ctx, a->call.tool, a->call.arguments)) > 0)
        return CODE_TOO_SOON;
    if (fails_alike(a))
        return CODE_SAME_FAILURE;
    if (past->twin && effects_change(limits->effects))
        return CODE_DUPLICATE_IN_STEP;
    if (over_same_call(a))
        return CODE_SAME_CALL;
    if (over_writes(a))
        return CODE_WRITES_PER_TURN;
    if (limits->transient != LEDGER_UNLIMITED && past->transients >= limit_count(limits->transient))
        return CODE_TRANSIENT_BUDGET;
    if (!limits->polls && !past->under_way && over_polls(a, past->polls))
        return CODE_POLL_BUDGET;
    enum session_code code = check_limits(a);
    if (code || !a->rate_wait_ms)
        return code;
    a->used = a->rate_wait_ms;
    return CODE_RATE_LIMIT;
}

/* ---- the repair chain ----------------------------------------------------- */

/* Asking again what was invalid just now is one more attempt, also if a loop is what speaks against it. */
static void judge_chain(struct admission *a)
{
    bool is_valid = a->so_far == LEDGER_SO_FAR_VALID;
    if (a->so_far == LEDGER_SO_FAR_FABRICATED) {
        a->chain = chain_fabricated(&a->ctx, &a->call);
    } else if (a->so_far == LEDGER_SO_FAR_INVALID || (is_valid && a->loops && a->past.invalid_last)) {
        a->chain = chain_extend(&a->ctx, &a->call, is_valid, is_valid || a->past.invalid_before);
        if (a->chain.runs_away && (!a->loops || a->ctx.request->arguments_lost))
            a->says = LEDGER_HALT;
        if (a->chain.exhausted && !a->loops && !is_valid)
            a->code = CODE_RETRY_BUDGET;
    } else {
        a->chain = chain_look(&a->ctx, &a->call, false);
    }
}

/* ---- the verdict ---------------------------------------------------------- */

/* Without a session everything advises, but for one call that is repeated again and again. */
static void advise_only(struct admission *a, unsigned times)
{
    const struct ledger_place *place = &a->ctx.request->place;
    uint32_t most = place->anonymous_repeats;
    if (a->code == CODE_LOOP && most && times >= limit_count(most)) {
        a->says = LEDGER_REFUSE;
        return;
    }
    a->would = a->code;
    a->code = CODE_NONE;
}

static void judge(struct admission *a)
{
    enum lax_kind lax = LAX_NONE;
    if (a->so_far == LEDGER_SO_FAR_INVALID && a->ctx.request->lax)
        lax = lax_judge(&a->ctx, a->call.step);
    if (lax > LAX_LATER) { /* what is wrong with it is let through: it is judged as if it were valid */
        a->lax = lax;
        a->so_far = LEDGER_SO_FAR_VALID;
    }
    enum ledger_so_far so_far = a->so_far;
    if (so_far == LEDGER_SO_FAR_INVALID)
        a->patience = a->ctx.request->arguments_lost ? SESSION_COUNT_MAX
                                                     : chain_look(&a->ctx, &a->call, false).free_attempts;
    a->says = LEDGER_REFUSE;
    unsigned times = judge_loop(a);
    a->loops = a->code != CODE_NONE;
    if (!a->loops && so_far == LEDGER_SO_FAR_VALID) {
        a->code = find_refusal(a);
        if (a->code)
            a->would = CODE_NONE;
    }
    judge_chain(a);
    if (a->code && a->ctx.request->place.anonymous)
        advise_only(a, times);
    if (!a->code)
        a->says = so_far == LEDGER_SO_FAR_VALID     ? LEDGER_RUN
                  : so_far == LEDGER_SO_FAR_INVALID ? LEDGER_REPAIR
                                                    : LEDGER_REFUSE;
    if (a->lax == LAX_INSISTS && a->says == LEDGER_RUN)
        a->chain = chain_spend(&a->ctx, &a->call);
}

/* What was decided during an outage stands. */
static void judge_past(struct admission *a, const struct session_past *past)
{
    a->loops = past->code != CODE_NONE && past->code != CODE_RETRY_BUDGET;
    if (past->says == LEDGER_RUN && a->so_far == LEDGER_SO_FAR_INVALID) {
        bool at_once = lax_judge(&a->ctx, a->call.step) == LAX_AT_ONCE;
        a->lax = at_once ? LAX_AT_ONCE : LAX_INSISTS;
        a->so_far = LEDGER_SO_FAR_VALID;
    }
    if (a->lax == LAX_INSISTS)
        a->chain = chain_spend(&a->ctx, &a->call);
    else if (a->so_far == LEDGER_SO_FAR_VALID)
        a->chain = chain_look(&a->ctx, &a->call, false);
    else
        judge_chain(a);
    a->says = past->says;
    a->code = past->code;
}

/* ---- the record ----------------------------------------------------------- */

static enum session_call_class class_of(const struct admission *a)
{
    enum ledger_so_far so_far = a->so_far;
    if (a->code && (a->loops || so_far == LEDGER_SO_FAR_VALID))
        return CALL_DENIED;
    return so_far == LEDGER_SO_FAR_INVALID      ? CALL_INVALID
           : so_far == LEDGER_SO_FAR_FABRICATED ? CALL_FABRICATED
           : a->says == LEDGER_RUN              ? CALL_PENDING
                                                : CALL_REFUSED;
}

static uint8_t label_of(const struct admission *a, const struct session_call *call)
{
    enum session_code code = call->code;
    if (call->class == CALL_DENIED)
        return ledger_label_number(code == CODE_TOO_SOON || code == CODE_RATE_LIMIT ? STR_LIT("transient")
                                   : code == CODE_LOOP || code == CODE_CYCLE        ? STR_LIT("loop")
                                                                             : STR_LIT("retry_budget"));
    if (call->class == CALL_INVALID)
        return ledger_label_number(STR_LIT("invalid_arguments"));
    if (call->class == CALL_FABRICATED)
        return ledger_label_number(STR_LIT("fabricated_id"));
    return ledger_label_number(a->ctx.request->refused_as);
}

/* A call that comes too soon again takes the place of the one before: hammering must not push out of the
 * window what the session remembers. */
static void add_call(struct session *session, const struct session_call *call)
{
    struct session_call *last =
        session->call_count ? session_call_at(session, session->call_count - 1u) : NULL;
    if (call->class == CALL_DENIED && call->code == CODE_TOO_SOON && last && last->class == CALL_DENIED &&
        last->code == CODE_TOO_SOON && last->tool == call->tool && last->arguments == call->arguments) {
        uint8_t slot = last->slot;
        *last = *call;
        last->slot = slot;
        return;
    }
    window_add(session, call);
}

static void record_refusal(struct admission *a, const struct session_call *call)
{
    struct session *session = a->ctx.session;
    if (a->chain.made_progress && call->class == CALL_INVALID)
        rules_progress(session, call->agent, true);
    else if (a->code != CODE_TOO_SOON && a->code != CODE_RATE_LIMIT)
        rules_progress(session, call->agent, false);
    session->spoken = true;
    if (a->says != LEDGER_REPAIR)
        rules_note_call(&a->ctx, call, label_of(a, call), a->code, a->chain.retries);
}

static void record(struct admission *a)
{
    const struct ledger_call *request = a->ctx.request;
    struct session_call *call = &a->call;
    call->class = class_of(a);
    if (call->class == CALL_DENIED) {
        call->says = a->says;
        call->code = a->code;
        if (a->code != CODE_TOO_SOON) /* which counts nowhere */
            call->denied_asked = (uint8_t)(a->past.asked_ever < SESSION_COUNT_MAX ? a->past.asked_ever + 1
                                                                                  : SESSION_COUNT_MAX);
    }
    a->ctx.changes->new_tool = !window_has_tool(a->ctx.session, call->tool);
    if (call->class == CALL_PENDING) {
        uint32_t lasts = request->reservation_ms ? request->reservation_ms : LEDGER_RESERVATION_MS;
        call->deadline_ms = (uint64_t)a->ctx.now_ms + lasts;
        limits_add(&a->ctx, call->tool, 1, (int64_t)a->ctx.limits->cost, true);
        limits_pace(&a->ctx, call->tool, call->arguments, true);
    } else {
        a->ctx.not_enforced = request->not_enforced;
        a->ctx.halted = a->says == LEDGER_HALT;
        record_refusal(a, call);
    }
    if (request->lax && (call->class == CALL_INVALID || (a->lax && call->class == CALL_PENDING)))
        lax_remember(&a->ctx, call->step, a->lax ? call->admission : 0);
    add_call(a->ctx.session, call);
}

/* ---- admit ----------------------------------------------------------------------- */

static void fill_answer(const struct admission *a, struct ledger_answer *answer)
{
    const struct session *session = a->ctx.session;
    answer->error = OK;
    answer->says = a->says;
    answer->code = ledger_code_name(a->code);
    answer->would = ledger_code_name(a->would);
    answer->of_session = a->of_session;
    answer->used = a->used;
    answer->turn = session->turn;
    answer->lax = a->lax && a->says == LEDGER_RUN;
    answer->insists = answer->lax && a->lax == LAX_INSISTS;
    answer->may_insist = a->ctx.request->lax && !a->lax && lax_judge(&a->ctx, a->call.step);
    answer->attempt = a->chain.attempt;
    answer->attempts_left = a->chain.left;
    answer->repeats = a->past.run.steps;
    answer->at_once = a->past.at_once;
    answer->came_of = a->past.came_of;
    answer->no_progress = session_idle_calls(session, a->ctx.request->place.agent);
    answer->spent = a->past.spent + a->past.at_once + 1;
    answer->transient_count = a->past.transients;
    answer->chain = ledger_outcome_name(a->chain.outcome);
    answer->chain_retries = a->chain.retries;
}

static void look_back(struct admission *a, const struct session_call *before)
{
    const struct ledger_call *request = a->ctx.request;
    a->call = rules_new_call(&a->ctx);
    a->call.arguments = rules_cut_arguments(request->arguments, request->place.agent, a->ctx.limits->effects);
    if (before) {
        a->call.turn = before->turn;
        a->call.step = before->step;
    }
    a->query = window_query(&a->ctx, &a->call, before);
    window_look(&a->query, &a->past);
}

/* The call is there already: what was decided then. Of a chain, what is left of it now. */
static void answer_again(struct admission *a, const struct session_call *before, struct ledger_answer *answer)
{
    bool is_invalid = before->class == CALL_INVALID;
    a->says = LEDGER_REFUSE;
    look_back(a, before);
    bool let_run = before->class <= CALL_RELEASED;
    a->lax = let_run && a->so_far == LEDGER_SO_FAR_INVALID ? LAX_INSISTS : LAX_NONE;
    a->chain = chain_look(&a->ctx, &a->call, is_invalid);
    if (before->class == CALL_DENIED) {
        a->says = before->says;
        a->code = before->code;
    } else if (let_run) {
        a->says = LEDGER_RUN;
    } else if (is_invalid && a->chain.exhausted) {
        a->says = a->chain.runs_away ? LEDGER_HALT : LEDGER_REFUSE;
        a->code = CODE_RETRY_BUDGET;
    } else if (is_invalid) {
        a->says = LEDGER_REPAIR;
    }
    fill_answer(a, answer);
    answer->gave_up = 0;
}

void session_admit(struct session *session, const struct ledger_call *request,
                   const struct session_past *past, uint32_t rate_wait_ms, int64_t now_ms,
                   struct ledger_answer *answer, struct session_changes *changes)
{
    struct admission a = {.rate_wait_ms = rate_wait_ms, .so_far = request->so_far};
    uint32_t gave_up = changes->gave_up_count;
    answer->version = session->version;
    a.ctx = rules_begin(session, changes, request, now_ms);
    const struct session_call *before = session_find(session, request->admission);
    if (before) {
        /* Daemons replay an outage one after the other: the report of a call may come before the call. */
        struct session_call *orphan = &session->calls[before - session->calls];
        if (past && past->says == LEDGER_RUN && orphan->class == CALL_UNKNOWN && !orphan->may_settle) {
            orphan->may_settle = true;                    /* so that it is adopted once */
            limits_add(&a.ctx, orphan->tool, 1, 0, true); /* its report has counted what it cost */
        }
        answer_again(&a, before, answer);
        return;
    }
    session->last_ms = (uint64_t)a.ctx.now_ms;
    rules_expire(&a.ctx);
    rules_come_to_turn(&a.ctx, !past);
    rules_come_to_step(&a.ctx);
    look_back(&a, NULL);
    if (past)
        judge_past(&a, past);
    else
        judge(&a);
    record(&a);
    fill_answer(&a, answer);
    answer->gave_up = changes->gave_up_count - gave_up;
}

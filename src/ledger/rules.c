/*
 * What the requests of ledger.h do to a session: admit, settle, turn, reset. docs/LEDGER's table, read from
 * top to bottom: a call comes to its turn and step, the window says what its past is, then what speaks
 * against it is looked for in order of precedence, then it is recorded. What the window says of a call is in
 * window.c, repair chains are in chains.c, sums and pace in limits.c.
 */
#include "ledger/rules.h"

#include "ledger/rules_internal.h"

#define ARGUMENTS_MASK (((uint64_t)1 << 48) - 1)
#define RESULT_MASK    ARGUMENTS_MASK

/* ---- what is stored of names and hashes ------------------------------------------ */

static uint32_t hash_name(struct str name)
{
    uint32_t hash = (uint32_t)hash_stable(name).low;
    return hash ? hash : 1;
}

uint32_t session_tool(struct str name)
{
    return hash_name(name);
}

static uint32_t hash_label(struct str label)
{
    return label.len ? hash_name(label) : 0;
}

/* Spread, so that admissions counted up by several daemons do not meet. */
static uint64_t cut_admission(uint64_t admission)
{
    return admission * 0x9e3779b97f4a7c15u >> 24;
}

/* 0 says that nothing is known of it, so no known result is 0. */
static uint64_t cut_result(struct hash128 result)
{
    uint64_t low = result.low & RESULT_MASK;
    return low || (!result.low && !result.high) ? low : 1;
}

static unsigned place_of(const struct session *session, const struct session_call *call)
{
    return ((unsigned)(call - session->calls) + SESSION_CALLS_MAX - session->oldest) % SESSION_CALLS_MAX;
}

const struct session_call *session_find(const struct session *session, uint64_t admission)
{
    uint64_t cut = cut_admission(admission);
    for (unsigned i = session->call_count; i-- > 0;) {
        const struct session_call *call = session_call_at((struct session *)session, i);
        if (call->admission == cut && call->class != CALL_BOUNDARY)
            return call;
    }
    return NULL;
}

/* ---- requests -------------------------------------------------------------------- */

static uint32_t second_of(int64_t ms)
{
    return (uint32_t)(ms / 1000);
}

static struct rules_ctx begin_request(struct session *session, struct session_changes *changes,
                                      const struct ledger_limits *limits, int64_t now_ms)
{
    if (now_ms < (int64_t)session->last_ms)
        now_ms = (int64_t)session->last_ms;
    return (struct rules_ctx){.session = session,
                              .changes = changes,
                              .limits = limits ? limits : &ledger_default_limits,
                              .now_ms = now_ms,
                              .now_s = second_of(now_ms)};
}

void session_begin(struct session *session, uint64_t version, int64_t now_ms)
{
    memset(session, 0, sizeof(*session));
    session->version = version;
    session->last_ms = (uint64_t)now_ms;
    session->renewed_s = session->turn_began_s = second_of(now_ms);
    session->spoken = true;
}

/* Applied already? Remembers it otherwise. */
static bool is_repeated(struct session *session, uint32_t id)
{
    for (unsigned i = 0; id && i < SESSION_REQUESTS_MAX; i++)
        if (session->requests[i] == id)
            return true;
    session->requests[session->request_at] = id;
    session->request_at = (session->request_at + 1) % SESSION_REQUESTS_MAX;
    return false;
}

void rules_note(struct rules_ctx *ctx, const struct session_note *note)
{
    struct session_changes *changes = ctx->changes;
    ctx->session->journal_count++;
    if (changes->note_count == SESSION_NOTES_MAX)
        return;
    changes->notes[changes->note_count] = *note;
    changes->notes[changes->note_count++].second = ctx->now_s;
}

/* The window has the turn's low byte only. */
static uint32_t turn_of(const struct session *session, const struct session_call *call)
{
    return session->turn - (uint8_t)(session->turn - call->turn);
}

static void note_call(struct rules_ctx *ctx, const struct session_call *call, uint8_t label,
                      enum session_code code, unsigned retries)
{
    rules_note(ctx, &(struct session_note){.tool = call->tool,
                                           .label = label,
                                           .code = code,
                                           .turn = turn_of(ctx->session, call),
                                           .step = call->step,
                                           .retries = (uint8_t)retries});
}

/* Feedback of this call goes out: the next unnamed call is of another step. */
static void speak(struct session *session, uint8_t step)
{
    if (step == session->step)
        session->spoken = true;
}

static void fare_badly(struct session *session)
{
    if (session->no_progress < SESSION_COUNT_MAX)
        session->no_progress++;
    if (session->no_progress >= LEDGER_STUCK)
        session->stuck = true;
}

/* What was let run and not settled in its time: it may have run, nobody knows with what result. */
static void expire_calls(struct rules_ctx *ctx)
{
    struct session *session = ctx->session;
    for (unsigned i = 0; i < session->call_count; i++) {
        struct session_call *call = session_call_at(session, i);
        if (call->class != CALL_PENDING || (uint64_t)ctx->now_ms <= call->deadline_ms)
            continue;
        call->class = CALL_UNKNOWN;
        call->may_settle = true;
        call->deadline_ms = 0;
        speak(session, call->step);
        note_call(ctx, call, ledger_label_number(STR_LIT("unknown")), CODE_NONE, 0);
        window_changed(ctx, call);
    }
}

/* ---- turns and steps ------------------------------------------------------------- */

static void begin_turn(struct rules_ctx *ctx, uint32_t turn)
{
    struct session *session = ctx->session;
    chain_give_up_all(ctx);
    session->turn = turn;
    session->turn_began_s = ctx->now_s;
    session->calls_in_turn = 0;
    session->cost_in_turn = 0;
    session->stuck = session->has_goal = false;
    session->label = 0;
    session->spoken = true;
    window_forget_turn(ctx, (uint8_t)turn);
}

/* Where silence begins turns, requests break it. */
static void end_silence(struct rules_ctx *ctx)
{
    if (ctx->session->heard_s)
        ctx->session->heard_s = ctx->now_s;
}

/* A turn that is past counts in the current one. Silence begins a turn only if nobody ever named one. */
static void come_to_turn(struct rules_ctx *ctx, const struct ledger_place *place, bool may_guess)
{
    struct session *session = ctx->session;
    if (place->turn)
        session->told_turn = place->turn;
    if (place->turn > session->turn)
        begin_turn(ctx, place->turn);
    else if (!session->told_turn && may_guess && place->turn_idle_s && session->heard_s &&
             ctx->now_s - session->heard_s >= place->turn_idle_s)
        begin_turn(ctx, session->turn + 1);
    if (place->turn_idle_s)
        session->heard_s = ctx->now_s;
}

/* Calls of one model message: those of one name, else those admitted before the feedback of a sibling. */
static void come_to_step(struct session *session, struct str name)
{
    uint32_t label = hash_label(name);
    if (label == session->label && (label || !session->spoken))
        return;
    session->step++;
    session->spoken = false;
    session->label = label;
}

/* ---- admit: what speaks against a call ------------------------------------------- */

/* A call that asks to be let run. */
struct admission {
    struct rules_ctx ctx;
    const struct ledger_admit *request;
    struct window_query query;
    struct window_past past;
    uint32_t rate_wait_ms;
};

struct verdict {
    enum ledger_says says;
    enum session_code code, would;
    bool loops; /* the code is of a loop, which is looked for in calls of any kind */
    bool of_session;
    uint64_t used;
    struct chain_state chain;
};

/* Runs go by arguments alone where a new result is no reason to go on. */
static bool ignores_results(const struct ledger_limits *limits)
{
    return limits->compare_arguments || limits->effects == LEDGER_EFFECTS_WRITE ||
           limits->effects == LEDGER_EFFECTS_DESTRUCTIVE;
}

/* A tool that is meant to be asked again: at most so often in a row, whatever comes of it. */
static void judge_poll(const struct admission *a, struct verdict *verdict)
{
    const struct ledger_limits *limits = a->ctx.limits;
    int asked = (int)a->past.asked, most = (int)limit_count(limits->poll_max);
    if (asked < most)
        return;
    verdict->code = CODE_POLL_BUDGET;
    if (asked >= most + (int)limit_count(limits->halt) - (int)limit_count(limits->repeats))
        verdict->says = LEDGER_HALT;
}

/* Runs and cycles; the longer one gives the code. Returns how often the call would have been made. */
static unsigned judge_loop(const struct admission *a, struct verdict *verdict)
{
    const struct ledger_limits *limits = a->ctx.limits;
    unsigned times = a->past.run + 1, repeats = limit_count(limits->repeats);
    if (limits->polls) {
        judge_poll(a, verdict);
        return times;
    }
    if (times >= repeats || a->past.across + 1 >= limit_count(limits->across_turns))
        verdict->code = CODE_LOOP;
    if (a->past.held >= 2) {
        unsigned rounds = window_rounds(a->ctx.session, &a->query);
        if (rounds >= repeats && rounds > times) {
            verdict->code = CODE_CYCLE;
            times = rounds;
        }
    }
    if (verdict->code && times >= limit_count(limits->halt))
        verdict->says = LEDGER_HALT;
    return times;
}

static bool fails_alike(const struct admission *a, struct verdict *verdict)
{
    uint32_t most = a->ctx.limits->same_failure;
    if (most == LEDGER_UNLIMITED)
        return false;
    unsigned failures = window_same_failure(a->ctx.session, &a->query, 0);
    if (failures + 1 < most)
        return false;
    verdict->used = failures;
    return true;
}

/* In a session whose turns are guessed from silence, "this turn" is too vague to refuse a read for. */
static bool only_advises_same_call(const struct admission *a)
{
    return a->ctx.limits->effects == LEDGER_EFFECTS_READ && !a->ctx.session->told_turn &&
           a->request->place.turn_idle_s > 0;
}

static enum session_code over_same_call(const struct admission *a, struct verdict *verdict)
{
    const struct ledger_limits *limits = a->ctx.limits;
    if (limits->same_call == LEDGER_UNLIMITED || limits->polls ||
        a->past.spent < limit_count(limits->same_call))
        return CODE_NONE;
    if (!only_advises_same_call(a))
        return CODE_SAME_CALL;
    verdict->would = CODE_SAME_CALL;
    return CODE_NONE;
}

static enum session_code over_limits(const struct admission *a, struct verdict *verdict)
{
    struct limit_use use = limits_check(&a->ctx, a->query.tool);
    verdict->of_session = use.of_session;
    verdict->used = use.used;
    return use.code;
}

/* What speaks against a valid call that is in no loop, in order of precedence. */
static enum session_code find_refusal(const struct admission *a, struct verdict *verdict)
{
    const struct ledger_limits *limits = a->ctx.limits;
    const struct window_past *past = &a->past;
    bool changes = limits->effects == LEDGER_EFFECTS_WRITE || limits->effects == LEDGER_EFFECTS_DESTRUCTIVE;
    if (past->broken)
        return CODE_ALREADY_BROKEN;
    if ((verdict->used = limits_wait_ms(&a->ctx, a->query.tool, a->query.arguments)) > 0)
        return CODE_TOO_SOON;
    if (fails_alike(a, verdict))
        return CODE_SAME_FAILURE;
    if (past->twin && changes)
        return CODE_DUPLICATE_IN_STEP;
    if (over_same_call(a, verdict))
        return CODE_SAME_CALL;
    if (limits->transient != LEDGER_UNLIMITED && past->transients >= limit_count(limits->transient))
        return CODE_TRANSIENT_BUDGET;
    if (limits->poll_max != LEDGER_UNLIMITED && past->polls >= limit_count(limits->poll_max))
        return CODE_POLL_BUDGET;
    enum session_code limit = over_limits(a, verdict);
    if (limit || !a->rate_wait_ms)
        return limit;
    verdict->used = a->rate_wait_ms;
    return CODE_RATE_LIMIT;
}

static void judge_budgets(const struct admission *a, struct verdict *verdict)
{
    verdict->code = find_refusal(a, verdict);
    if (verdict->code == CODE_TOO_SOON && a->past.early + 1 >= limit_count(a->ctx.limits->halt))
        verdict->says = LEDGER_HALT;
    if (verdict->code)
        verdict->would = CODE_NONE;
}

/* ---- admit: the repair chain ----------------------------------------------------- */

static struct chain_key chain_key_of(struct str tool, struct str call)
{
    return (struct chain_key){hash_name(tool), hash_label(call)};
}

/* Asking again what was invalid just now is one more attempt, also if a loop is what speaks against it. */
static void judge_attempt(struct admission *a, struct verdict *verdict)
{
    const struct ledger_admit *request = a->request;
    bool is_valid = request->so_far == LEDGER_SO_FAR_VALID;
    struct chain_attempt attempt = {
        .key = chain_key_of(request->tool, request->call),
        .step = a->query.step,
        .name = request->tool,
        .ext = request->ext,
        .problems = is_valid ? NULL : request->problems,
        .problem_count = is_valid ? 0 : request->problem_count,
        .no_problems = is_valid,
        .again = is_valid || a->past.invalid_before,
        .only_advises = request->place.anonymous,
    };
    verdict->chain = chain_extend(&a->ctx, &attempt);
    if (verdict->chain.exhausted && !verdict->loops && !is_valid)
        verdict->code = CODE_RETRY_BUDGET;
}

static void judge_chain(struct admission *a, struct verdict *verdict)
{
    const struct ledger_admit *request = a->request;
    bool is_valid = request->so_far == LEDGER_SO_FAR_VALID;
    struct chain_key key = chain_key_of(request->tool, request->call);
    if (request->so_far == LEDGER_SO_FAR_INVALID || (is_valid && verdict->loops && a->past.invalid_last))
        judge_attempt(a, verdict);
    else if (request->so_far == LEDGER_SO_FAR_FABRICATED)
        verdict->chain = chain_fabricated(&a->ctx, key, a->query.step);
    else
        verdict->chain = chain_look(&a->ctx, key, false);
}

/* ---- admit: the verdict ---------------------------------------------------------- */

static enum ledger_says says_otherwise(enum ledger_so_far so_far)
{
    return so_far == LEDGER_SO_FAR_VALID     ? LEDGER_RUN
           : so_far == LEDGER_SO_FAR_INVALID ? LEDGER_REPAIR
                                             : LEDGER_REFUSE;
}

/* Without a session everything advises, but for one call that is repeated again and again. */
static void advise_only(const struct admission *a, unsigned times, struct verdict *verdict)
{
    const struct ledger_place *place = &a->request->place;
    uint32_t most = place->anonymous_repeats;
    if (verdict->code == CODE_LOOP && most && times >= limit_count(most)) {
        verdict->says = LEDGER_REFUSE;
        return;
    }
    verdict->would = verdict->code;
    verdict->code = CODE_NONE;
}

static void judge(struct admission *a, struct verdict *verdict)
{
    enum ledger_so_far so_far = a->request->so_far;
    verdict->says = LEDGER_REFUSE;
    unsigned times = judge_loop(a, verdict);
    verdict->loops = verdict->code != CODE_NONE;
    if (!verdict->loops && so_far == LEDGER_SO_FAR_VALID)
        judge_budgets(a, verdict);
    judge_chain(a, verdict);
    if (verdict->code && a->request->place.anonymous)
        advise_only(a, times, verdict);
    if (!verdict->code)
        verdict->says = says_otherwise(so_far);
}

/* What was decided during an outage stands. */
static void judge_past(struct admission *a, const struct session_past *past, struct verdict *verdict)
{
    verdict->loops = past->code != CODE_NONE && past->code != CODE_RETRY_BUDGET;
    if (a->request->so_far == LEDGER_SO_FAR_VALID)
        verdict->chain = chain_look(&a->ctx, chain_key_of(a->request->tool, a->request->call), false);
    else
        judge_chain(a, verdict);
    verdict->says = past->says;
    verdict->code = past->code;
}

/* ---- admit: the record ----------------------------------------------------------- */

static enum session_call_class class_of(const struct admission *a, const struct verdict *verdict)
{
    enum ledger_so_far so_far = a->request->so_far;
    if (verdict->code && (verdict->loops || so_far == LEDGER_SO_FAR_VALID))
        return CALL_DENIED;
    return so_far == LEDGER_SO_FAR_INVALID      ? CALL_INVALID
           : so_far == LEDGER_SO_FAR_FABRICATED ? CALL_FABRICATED
           : verdict->says == LEDGER_RUN        ? CALL_PENDING
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
    return ledger_label_number(a->request->refused_as);
}

/* A call that comes too soon again takes the place of the one before: hammering must not push out of the
 * window what the session remembers. */
static void add_call(struct admission *a, const struct session_call *call)
{
    struct session *session = a->ctx.session;
    struct session_call *last =
        session->call_count ? session_call_at(session, session->call_count - 1u) : NULL;
    if (call->code == CODE_TOO_SOON && last && last->class == CALL_DENIED && last->code == CODE_TOO_SOON &&
        last->tool == call->tool && last->arguments == call->arguments) {
        *last = *call;
        window_changed(&a->ctx, last);
        return;
    }
    window_add(&a->ctx, call);
}

static void record_run(struct admission *a, struct session_call *call)
{
    const struct ledger_limits *limits = a->ctx.limits;
    uint32_t lasts = a->request->reservation_ms ? a->request->reservation_ms : LEDGER_RESERVATION_MS;
    call->deadline_ms = (uint64_t)a->ctx.now_ms + lasts;
    limits_add(&a->ctx, call->tool, 1, (int64_t)limits->cost, true);
    limits_pace(&a->ctx, call->tool, call->arguments, true);
}

static void record_refusal(struct admission *a, const struct session_call *call,
                           const struct verdict *verdict)
{
    struct session *session = a->ctx.session;
    if (verdict->chain.made_progress && call->class == CALL_INVALID)
        session->no_progress = 0;
    else if (verdict->code != CODE_TOO_SOON && verdict->code != CODE_RATE_LIMIT)
        fare_badly(session);
    session->spoken = true;
    if (verdict->says != LEDGER_REPAIR)
        note_call(&a->ctx, call, label_of(a, call), verdict->code, verdict->chain.retries);
}

static void record(struct admission *a, const struct verdict *verdict)
{
    struct session_call call = {
        .tool = a->query.tool,
        .arguments = a->query.arguments,
        .admission = cut_admission(a->request->admission),
        .class = class_of(a, verdict),
        .effects = a->ctx.limits->effects,
        .turn = a->query.turn,
        .step = a->query.step,
    };
    if (call.class == CALL_DENIED) {
        call.says = verdict->says;
        call.code = verdict->code;
        if (verdict->code == CODE_TOO_SOON)
            call.early = a->past.early < SESSION_COUNT_MAX ? (uint8_t)(a->past.early + 1) : SESSION_COUNT_MAX;
    }
    a->ctx.changes->new_tool = !a->past.tool_known;
    if (call.class == CALL_PENDING)
        record_run(a, &call);
    else
        record_refusal(a, &call, verdict);
    add_call(a, &call);
}

/* ---- admit ----------------------------------------------------------------------- */

static void fill_answer(const struct admission *a, const struct verdict *verdict,
                        struct ledger_answer *answer)
{
    const struct session *session = a->ctx.session;
    answer->error = OK;
    answer->says = verdict->says;
    answer->code = ledger_code_name(verdict->code);
    answer->would = ledger_code_name(verdict->would);
    answer->of_session = verdict->of_session;
    answer->used = verdict->used;
    answer->turn = session->turn;
    answer->attempt = verdict->chain.attempt;
    answer->attempts_left = verdict->chain.left;
    answer->repeats = a->past.run;
    answer->no_progress = session->no_progress;
    answer->spent = a->past.spent + 1;
    answer->transient_count = a->past.transients;
    answer->chain = ledger_outcome_name(verdict->chain.outcome);
    answer->chain_retries = verdict->chain.retries;
}

static void look_back(struct admission *a, const struct session_call *before)
{
    struct session *session = a->ctx.session;
    a->query = (struct window_query){
        .tool = hash_name(a->request->tool),
        .arguments = a->request->arguments.low & ARGUMENTS_MASK,
        .older = before ? place_of(session, before) : session->call_count,
        .turn = before ? before->turn : (uint8_t)session->turn,
        .step = before ? before->step : session->step,
        .any_outcome = ignores_results(a->ctx.limits),
        .spent_forever = a->ctx.limits->effects == LEDGER_EFFECTS_DESTRUCTIVE && !session->told_turn,
    };
    window_look(session, &a->query, &a->past);
}

/* The call is there already: what was decided then. Of a chain, what is left of it now. */
static void answer_again(struct admission *a, const struct session_call *before, struct ledger_answer *answer)
{
    bool is_invalid = before->class == CALL_INVALID;
    struct verdict verdict = {.says = LEDGER_REFUSE};
    look_back(a, before);
    verdict.chain = chain_look(&a->ctx, chain_key_of(a->request->tool, a->request->call), is_invalid);
    if (before->class == CALL_DENIED) {
        verdict.says = before->says;
        verdict.code = before->code;
    } else if (before->class <= CALL_RELEASED) {
        verdict.says = LEDGER_RUN;
    } else if (is_invalid && verdict.chain.exhausted) {
        verdict.code = CODE_RETRY_BUDGET;
    } else if (is_invalid) {
        verdict.says = LEDGER_REPAIR;
    }
    fill_answer(a, &verdict, answer);
    answer->gave_up = 0;
}

void session_admit(struct session *session, const struct ledger_admit *request,
                   const struct session_past *past, uint32_t rate_wait_ms, int64_t now_ms,
                   struct ledger_answer *answer, struct session_changes *changes)
{
    struct admission a = {.request = request, .rate_wait_ms = rate_wait_ms};
    struct verdict verdict = {0};
    uint32_t gave_up = changes->gave_up_count;
    answer->version = session->version;
    a.ctx = begin_request(session, changes, request->limits, now_ms);
    const struct session_call *before = session_find(session, request->admission);
    if (before) {
        answer_again(&a, before, answer);
        return;
    }
    session->last_ms = (uint64_t)a.ctx.now_ms;
    expire_calls(&a.ctx);
    come_to_turn(&a.ctx, &request->place, !past);
    come_to_step(session, request->place.step);
    look_back(&a, NULL);
    if (past)
        judge_past(&a, past, &verdict);
    else
        judge(&a, &verdict);
    record(&a, &verdict);
    fill_answer(&a, &verdict, answer);
    answer->gave_up = changes->gave_up_count - gave_up;
}

/* ---- settle ---------------------------------------------------------------------- */

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
    const struct ledger_settle *request;
    struct session_call *call;
    struct session_call came; /* what is to be recorded of it */
    bool is_counted;          /* already */
    bool was_denied, is_orphan;
    struct window_query query;
    struct window_past past;
    struct chain_state chain;
    enum ledger_says says;
    bool unchanged;
};

/* Never admitted, or so long ago that the window has lost it: nobody knows what it did. */
static struct session_call *add_orphan(struct settlement *s)
{
    const struct ledger_settle *request = s->request;
    struct session *session = s->ctx.session;
    struct session_call orphan = {
        .tool = hash_name(request->tool),
        .arguments = request->arguments.low & ARGUMENTS_MASK,
        .admission = cut_admission(request->admission),
        .class = CALL_UNKNOWN,
        .effects = s->ctx.limits->effects,
    };
    come_to_step(session, request->place.step);
    orphan.turn = (uint8_t)session->turn;
    orphan.step = session->step;
    s->ctx.changes->new_tool = true;
    for (unsigned i = 0; i < session->call_count; i++)
        if (session->calls[i].tool == orphan.tool)
            s->ctx.changes->new_tool = false;
    return window_add(&s->ctx, &orphan);
}

static void find_call(struct settlement *s)
{
    s->call = (struct session_call *)session_find(s->ctx.session, s->request->admission);
    if (!s->call) {
        s->is_orphan = true;
        s->call = add_orphan(s);
        s->came = *s->call;
        return;
    }
    const struct session_call *call = s->call;
    s->was_denied = call->class == CALL_DENIED;
    s->is_counted = call->class != CALL_PENDING && call->class != CALL_DENIED &&
                    !(call->class == CALL_UNKNOWN && call->may_settle);
    s->came = *call;
    s->came.class = settled_classes[s->request->class];
    s->came.result = call_ran(&s->came) ? cut_result(s->request->result) : 0;
    s->came.may_settle = s->came.changed = false;
    s->came.deadline_ms = 0;
    s->came.says = LEDGER_RUN;
    s->came.code = CODE_NONE;
    s->came.early = 0;
}

/* A new result is a reason to ask again only where asking changes nothing itself. */
static bool excuses_change(const struct settlement *s)
{
    const struct ledger_limits *limits = s->ctx.limits;
    return !limits->compare_arguments && (limits->polls || !call_changes(&s->came));
}

static void compare_with_last(struct settlement *s)
{
    struct session *session = s->ctx.session;
    s->query = (struct window_query){
        .tool = s->came.tool,
        .arguments = s->came.arguments,
        .older = place_of(session, s->call),
        .turn = s->came.turn,
        .step = s->came.step,
        .outcome = call_outcome(&s->came),
        .any_outcome = ignores_results(s->ctx.limits),
    };
    window_look(session, &s->query, &s->past);
    if (!call_ran(&s->came) || s->past.held == 0)
        return;
    const struct session_call *last = window_last_result(session, &s->query);
    s->unchanged = last && last->result == s->came.result;
    s->came.changed = last && !s->unchanged && s->came.class <= CALL_PARTIAL && excuses_change(s);
}

static void settle_chain(struct settlement *s)
{
    const struct ledger_settle *request = s->request;
    struct chain_key key = chain_key_of(request->tool, request->call);
    struct chain_attempt attempt = {
        .key = key,
        .step = s->came.step,
        .name = request->tool,
        .ext = request->ext,
        .problems = request->problems,
        .problem_count = request->problem_count,
        .again = s->past.invalid_before,
        .only_advises = request->place.anonymous,
    };
    if (s->came.class == CALL_INVALID) {
        s->chain = chain_extend(&s->ctx, &attempt);
        s->says = s->chain.exhausted && !request->place.anonymous ? LEDGER_REFUSE : LEDGER_REPAIR;
    } else if (s->came.class >= CALL_OK && s->came.class <= CALL_MISMATCH) {
        s->chain = chain_succeed(&s->ctx, key, s->came.step);
    } else if (s->came.class == CALL_FABRICATED) {
        s->chain = chain_fabricated(&s->ctx, key, s->came.step);
    }
}

static void settle_progress(struct settlement *s)
{
    enum session_call_class class = s->came.class;
    if (class == CALL_PARTIAL || (class == CALL_OK && !s->unchanged) || s->chain.made_progress)
        s->ctx.session->no_progress = 0;
    else if (class != CALL_TRANSIENT && class != CALL_RELEASED && class != CALL_UNKNOWN)
        fare_badly(s->ctx.session);
}

/* What was taken when it was let run makes room for what it came to; what did not run after all costs
 * nothing.
 */
static void settle_sums(struct settlement *s)
{
    const struct ledger_settle *request = s->request;
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
    speak(session, s->came.step);
    end_silence(&s->ctx);
    settle_progress(s);
    settle_sums(s);
    if (s->says != LEDGER_REPAIR)
        note_call(&s->ctx, &s->came, s->is_orphan ? 0 : ledger_label_number(s->request->label),
                  s->says == LEDGER_REFUSE ? CODE_RETRY_BUDGET : CODE_NONE, s->chain.retries);
    *s->call = s->came;
    window_changed(&s->ctx, s->call);
}

static void look_settled(struct settlement *s)
{
    bool is_invalid = s->came.class == CALL_INVALID;
    s->chain = chain_look(&s->ctx, chain_key_of(s->request->tool, s->request->call), true);
    if (is_invalid)
        s->says = s->chain.exhausted ? LEDGER_REFUSE : LEDGER_REPAIR;
}

static void fill_settled(const struct settlement *s, struct ledger_settled *settled)
{
    bool failed = s->came.class == CALL_TOOL_ERROR && s->came.result;
    settled->error = OK;
    settled->says = s->says;
    settled->unchanged = s->unchanged;
    settled->repeats = s->past.run + 1;
    settled->no_progress = s->ctx.session->no_progress;
    settled->same_failure = failed ? 1 + window_same_failure(s->ctx.session, &s->query, s->came.result) : 0;
    settled->attempt = s->chain.attempt;
    settled->attempts_left = s->chain.left;
    settled->transient_count = s->past.transients + (s->came.class == CALL_TRANSIENT);
    settled->chain = ledger_outcome_name(s->chain.outcome);
    settled->chain_retries = s->chain.retries;
}

bool session_settle(struct session *session, const struct ledger_settle *request, int64_t now_ms,
                    struct ledger_settled *settled, struct session_changes *changes)
{
    struct settlement s = {.request = request, .says = LEDGER_RUN};
    s.chain = (struct chain_state){.attempt = 1};
    s.ctx = begin_request(session, changes, request->limits, now_ms);
    s.chain.left = limit_count(s.ctx.limits->repair);
    find_call(&s);
    compare_with_last(&s);
    if (s.is_counted)
        look_settled(&s);
    else
        count_settled(&s);
    fill_settled(&s, settled);
    return !s.is_counted;
}

/* ---- turn, reset, boundary ------------------------------------------------------- */

/* The conversation is over: no turn begins, but what was left open ends. */
static uint32_t end_conversation(struct rules_ctx *ctx)
{
    uint32_t before = ctx->changes->gave_up_count;
    chain_give_up_all(ctx);
    return ctx->changes->gave_up_count - before;
}

bool session_turn(struct session *session, const struct ledger_turn *request, uint32_t id, int64_t now_ms,
                  struct ledger_turned *turned, struct session_changes *changes)
{
    struct rules_ctx ctx = begin_request(session, changes, NULL, now_ms);
    bool is_new = request->turn > 0 && !request->end ? true : !is_repeated(session, id);
    uint32_t turn = request->turn ? request->turn : session->turn + is_new;
    uint32_t before = changes->gave_up_count;
    *turned = (struct ledger_turned){.error = OK, .turn = session->turn};
    if (!is_new)
        return false;
    session->last_ms = (uint64_t)ctx.now_ms;
    end_silence(&ctx);
    if (request->end) {
        turned->gave_up = end_conversation(&ctx);
        return false;
    }
    session->told_turn = turn;
    if (turn > session->turn)
        begin_turn(&ctx, turn);
    turned->turn = session->turn;
    turned->gave_up = changes->gave_up_count - before;
    if (turn != session->turn || request->goal.len == 0)
        return false;
    session->has_goal = true;
    return true;
}

/* Its calls keep their places, with arguments that no call has: without them others would stand in a row that
 * never did. */
void session_reset(struct session *session, struct str tool, uint32_t id, int64_t now_ms,
                   struct session_changes *changes)
{
    uint32_t hash = hash_name(tool);
    if (is_repeated(session, id))
        return;
    struct rules_ctx ctx = begin_request(session, changes, NULL, now_ms);
    session->last_ms = (uint64_t)ctx.now_ms;
    for (unsigned i = 0; i < session->call_count; i++) {
        struct session_call *call = session_call_at(session, i);
        if (call->tool != hash)
            continue;
        call->arguments = call->admission;
        window_changed(&ctx, call);
    }
    chain_drop_tool(session, hash);
}

void session_boundary(struct session *session, struct session_changes *changes)
{
    struct rules_ctx ctx = {.session = session, .changes = changes, .limits = &ledger_default_limits};
    struct session_call boundary = {
        .class = CALL_BOUNDARY,
        .turn = (uint8_t)session->turn,
        .step = (uint8_t)(session->step + 128),
    };
    if (session->call_count == 0 ||
        session_call_at(session, session->call_count - 1u)->class == CALL_BOUNDARY)
        return;
    window_add(&ctx, &boundary);
}

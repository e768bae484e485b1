/*
 * The rules: what requests do to a session. This file has what they share, and turn, reset and boundary;
 * admit is in admit.c, settle in settle.c. What the window says of a call is in window.c, repair chains are
 * in chains.c, sums and pace in admit.c.
 */
#include "ledger/rules_internal.h"

#define LOW_48_BITS (((uint64_t)1 << 48) - 1)

/* ---- what is stored of names and hashes ------------------------------------------ */

uint32_t session_tool(struct str name)
{
    uint32_t hash = (uint32_t)hash_stable(name).low;
    return hash ? hash : 1;
}

uint32_t rules_hash_label(struct str label)
{
    return label.len ? session_tool(label) : 0;
}

/* Spread, so that admissions counted up by several daemons do not meet. */
static uint64_t cut_admission(uint64_t admission)
{
    return admission * 0x9e3779b97f4a7c15u >> 24;
}

uint64_t rules_cut_arguments(struct hash128 arguments, uint32_t agent, enum ledger_effects effects)
{
    uint64_t own = effects_change(effects) ? 0 : agent * 0x9e3779b97f4a7c15u;
    return (arguments.low ^ own) & LOW_48_BITS;
}

uint64_t rules_cut_result(struct hash128 result, unsigned bits)
{
    uint64_t low = result.low & (((uint64_t)1 << bits) - 1);
    return low || (!result.low && !result.high) ? low : 1;
}

/* 0: the session's main agent, and no other. */
static uint16_t cut_agent(uint32_t agent)
{
    return (uint16_t)(agent && !(uint16_t)agent ? 1 : agent);
}

struct session_call rules_new_call(const struct rules_ctx *ctx)
{
    const struct ledger_limits *limits = ctx->limits;
    return (struct session_call){.tool = session_tool(ctx->request->tool),
                                 .second = ctx->now_s,
                                 .admission = cut_admission(ctx->request->admission),
                                 .agent = cut_agent(ctx->request->place.agent),
                                 .effects = limits->effects,
                                 .hard = limits->same_call_hard,
                                 .hinted = limits->hinted,
                                 .edits_files = limits->edits_files,
                                 .turn = (uint8_t)ctx->session->turn,
                                 .step = ctx->session->step};
}

const struct session_call *session_find(const struct session *session, uint64_t admission)
{
    uint64_t cut = cut_admission(admission);
    const struct session_call *calls = session->calls;
#pragma GCC unroll 32
    for (unsigned i = 0; i < SESSION_CALLS_MAX; i++)
        if (calls[i].admission_low == (uint32_t)cut && calls[i].admission == cut && i < session->call_count &&
            calls[i].class != CALL_BOUNDARY)
            return &calls[i];
    return NULL;
}

/* ---- requests -------------------------------------------------------------------- */

/* Servers that take over from each other differ by less: a clock that is farther behind was set back. */
#define CLOCK_SET_BACK_MS 60000u

static uint32_t earlier(uint32_t second, uint32_t by_s)
{
    return second > by_s ? second - by_s : 0;
}

/* All times of the session move with the clock: pauses, time limits and reservations last as long as they
 * were to. */
static void set_back(struct session *session, uint64_t by_ms)
{
    uint32_t by_s = (uint32_t)(by_ms / 1000);
    session->last_ms -= by_ms;
    session->renewed_s = earlier(session->renewed_s, by_s);
    session->turn_began_s = earlier(session->turn_began_s, by_s);
    session->heard_s = earlier(session->heard_s, by_s);
    for (unsigned i = 0; i < session->counter_count; i++)
        session->counters[i].began_s = earlier(session->counters[i].began_s, by_s);
    for (unsigned i = 0; i < session->paced_count; i++)
        session->paced[i].at_ms -= by_ms < session->paced[i].at_ms ? by_ms : session->paced[i].at_ms;
    for (unsigned i = 0; i < session->call_count; i++) {
        struct session_call *call = session_call_at(session, i);
        call->second = earlier(call->second, by_s);
        if (call->class == CALL_PENDING)
            call->deadline_ms -= by_ms < call->deadline_ms ? by_ms : call->deadline_ms;
    }
}

struct rules_ctx rules_begin(struct session *session, struct session_changes *changes,
                             const struct ledger_call *request, int64_t now_ms)
{
    if (now_ms + CLOCK_SET_BACK_MS < (int64_t)session->last_ms)
        set_back(session, session->last_ms - (uint64_t)now_ms);
    if (now_ms < (int64_t)session->last_ms)
        now_ms = (int64_t)session->last_ms;
    return (struct rules_ctx){.session = session,
                              .changes = changes,
                              .request = request,
                              .limits = request && request->limits ? request->limits : &ledger_default_limits,
                              .now_ms = now_ms,
                              .now_s = (uint32_t)(now_ms / 1000),
                              .idle_ms = now_ms - (int64_t)session->last_ms};
}

void session_begin(struct session *session, uint64_t version, int64_t now_ms)
{
    memset(session, 0, sizeof(*session));
    session->version = version;
    session->last_ms = (uint64_t)now_ms;
    session->renewed_s = session->turn_began_s = (uint32_t)(now_ms / 1000);
    session->spoken = true;
}

/* Whether a request was applied already; remembers it otherwise. */
static bool is_repeated(struct session *session, uint32_t id)
{
    for (unsigned i = 0; id && i < SESSION_REQUESTS_MAX; i++)
        if (session->requests[i] == id)
            return true;
    session->requests[session->request_at] = id;
    session->request_at = (session->request_at + 1) % SESSION_REQUESTS_MAX;
    return false;
}

void rules_note(struct rules_ctx *ctx, struct session_note note, unsigned retries)
{
    struct session_changes *changes = ctx->changes;
    if (changes->note_count == SESSION_NOTES_MAX)
        return;
    note.second = ctx->now_s;
    note.retries = retries < SESSION_RETRIES_MAX ? retries : SESSION_RETRIES_MAX;
    ctx->session->journal_count++;
    changes->notes[changes->note_count++] = note;
}

void rules_note_call(struct rules_ctx *ctx, const struct session_call *call, uint8_t label,
                     enum session_code code, unsigned retries)
{
    uint32_t turn = ctx->session->turn; /* of the call's the window has the low byte only */
    struct session_note note = {.tool = call->tool,
                                .label = label,
                                .code = code,
                                .turn = turn - (uint8_t)(turn - call->turn),
                                .step = call->step,
                                .halted = ctx->halted,
                                .not_enforced = ctx->not_enforced};
    rules_note(ctx, note, retries);
}

void rules_end_step(struct session *session, uint8_t step)
{
    if (step == session->step)
        session->spoken = true;
}

uint8_t session_idle_calls(const struct session *session, uint32_t agent)
{
    for (unsigned i = 0; i < SESSION_AGENTS_MAX; i++)
        if (session->idle[i].agent == cut_agent(agent))
            return session->idle[i].calls;
    return 0;
}

void rules_progress(struct session *session, uint16_t agent, bool made)
{
    struct session_idle *idle = session->idle, now = {agent, session_idle_calls(session, agent)};
    unsigned at = 0;
    while (at < SESSION_AGENTS_MAX - 1 && idle[at].agent != agent)
        at++;
    memmove(idle + 1, idle, at * sizeof(*idle));
    now.calls = (uint8_t)(made ? 0 : now.calls < SESSION_COUNT_MAX ? now.calls + 1 : now.calls);
    session->stuck |= now.calls >= LEDGER_STUCK;
    idle[0] = now;
}

static bool is_overdue(const struct session_call *call, uint64_t now_ms)
{
    return call->class == CALL_PENDING && now_ms > call->deadline_ms;
}

/* What was let run and not settled in its time: it may have run, with an unknown result. The first look is at
 * all of the array, in any order, as there is mostly none. */
void rules_expire(struct rules_ctx *ctx)
{
    struct session *session = ctx->session;
    uint64_t now_ms = (uint64_t)ctx->now_ms;
    bool any = false;
#pragma GCC unroll 32
    for (unsigned i = 0; i < SESSION_CALLS_MAX; i++)
        any |= is_overdue(&session->calls[i], now_ms);
    for (unsigned i = 0; any && i < session->call_count; i++) {
        struct session_call *call = session_call_at(session, i);
        if (!is_overdue(call, now_ms))
            continue;
        call->class = CALL_UNKNOWN;
        call->may_settle = true;
        call->deadline_ms = 0;
        rules_end_step(session, call->step);
        rules_note_call(ctx, call, ledger_label_number(STR_LIT("unknown")), CODE_NONE, 0);
    }
}

/* ---- turns and steps ------------------------------------------------------------- */

#define ALL_EFFECTS  (~0u)
#define BIT(effects) (1u << (effects))

/* Calls of these effects (of one tool, or 0: of all) keep their places, with arguments that no other call has
 * (call_was_reset): without them others would stand in a row that never did. */
static void reset_calls(struct rules_ctx *ctx, uint32_t tool, unsigned effects)
{
    window_spent_drop(ctx->session, tool, effects);
    for (unsigned i = 0; i < ctx->session->call_count; i++) {
        struct session_call *call = session_call_at(ctx->session, i);
        if ((tool && call->tool != tool) || !(effects & BIT(call->effects)) || call->class == CALL_BOUNDARY)
            continue;
        call->arguments = call->admission;
    }
}

/* What a person asks for again, or what is asked for again after a pause, is no loop. What destroys keeps its
 * count where turns are guessed. */
static void begin_turn(struct rules_ctx *ctx, uint32_t turn, bool by_person)
{
    struct session *session = ctx->session;
    if (by_person || ctx->idle_ms >= LEDGER_ACROSS_WITHIN_MS)
        reset_calls(ctx, 0, ALL_EFFECTS & ~BIT(LEDGER_EFFECTS_DESTRUCTIVE));
    window_spent_drop(session, 0, session->told_turn ? ALL_EFFECTS : ~BIT(LEDGER_EFFECTS_DESTRUCTIVE));
    chain_give_up_all(ctx);
    session->turn = turn;
    session->turn_began_s = ctx->now_s;
    session->calls_in_turn = 0;
    session->cost_in_turn = 0;
    session->stuck = session->has_goal = session->spent_full = false;
    session->label = 0;
    session->batch = 0;
    session->spoken = true;
    window_forget_turn(session, (uint8_t)turn);
}

/* Where silence begins turns, requests break it. */
void rules_end_silence(struct rules_ctx *ctx)
{
    if (ctx->session->heard_s)
        ctx->session->heard_s = ctx->now_s;
}

/* The number of the turn that a text names: a new text is the next one's, the latest that of now, an earlier
 * one's is past. The same request again finds its text, and begins nothing. */
static uint32_t named_turn(struct session *session, uint32_t text)
{
    uint32_t *texts = session->turn_texts;
    for (unsigned i = session->turn_text_count; i-- > 0;)
        if (texts[i] == text)
            return i + 1u == session->turn_text_count ? session->turn : session->turn - 1;
    if (session->turn_text_count == SESSION_TURNS_MAX)
        memmove(texts, texts + 1, --session->turn_text_count * sizeof(*texts));
    texts[session->turn_text_count++] = text;
    return session->turn + 1;
}

static bool is_after_silence(const struct session *session, const struct ledger_place *place, uint32_t now_s)
{
    return !session->told_turn && place->turn_idle_s && session->heard_s &&
           now_s - session->heard_s >= place->turn_idle_s;
}

uint32_t session_turn_of(const struct session *session, const struct ledger_place *place, int64_t now_ms)
{
    for (unsigned i = 0; place->turn_text && i < session->turn_text_count; i++)
        if (session->turn_texts[i] == place->turn_text)
            return session->turn;
    if (place->turn_text)
        return session->turn + 1;
    if (place->turn)
        return place->turn > session->turn ? place->turn : session->turn;
    return session->turn + is_after_silence(session, place, (uint32_t)(now_ms / 1000));
}

/* A turn that is past counts in the current one. Silence begins a turn only if no client ever named one. */
void rules_come_to_turn(struct rules_ctx *ctx, bool may_guess)
{
    const struct ledger_place *place = &ctx->request->place;
    struct session *session = ctx->session;
    uint32_t turn = place->turn_text ? named_turn(session, place->turn_text) : place->turn;
    if (turn)
        session->told_turn = turn;
    if (turn > session->turn)
        begin_turn(ctx, turn, place->by_person);
    else if (may_guess && is_after_silence(session, place, ctx->now_s))
        begin_turn(ctx, session->turn + 1, place->by_person);
    if (place->turn_idle_s)
        session->heard_s = ctx->now_s;
}

/* Calls of one model message: those of one name, else those that were sent together or admitted before the
 * feedback of a sibling. */
void rules_come_to_step(struct rules_ctx *ctx)
{
    const struct ledger_place *place = &ctx->request->place;
    struct session *session = ctx->session;
    uint32_t label = rules_hash_label(place->step);
    /* They were sent together, and no other connection's call came between. */
    bool is_of_batch = place->batch && place->batch == session->batch && session->step == session->batch_step;
    bool goes_on = label || !session->spoken || is_of_batch;
    if (label != session->label || !goes_on) {
        session->step++;
        /* A call may stay in the window for more steps than its byte counts: none must look like a call of
         * the step that begins. */
        for (unsigned i = 0; i < session->call_count; i++) {
            struct session_call *call = session_call_at(session, i);
            if (call->step == session->step)
                call->step = (uint8_t)(call->step + STEPS_APART);
        }
        session->spoken = false;
        session->label = label;
    }
    if (place->batch == session->batch)
        return;
    session->batch = place->batch;
    session->batch_step = session->step;
}

/* ---- turn, reset, boundary ------------------------------------------------------- */

bool session_turn(struct session *session, const struct ledger_call *request, uint32_t id, int64_t now_ms,
                  struct ledger_answer *turned, struct session_changes *changes)
{
    struct rules_ctx ctx = rules_begin(session, changes, NULL, now_ms);
    bool is_named = (request->place.turn || request->place.turn_text) && !request->end && !request->compacted;
    bool is_new = is_named || !is_repeated(session, id);
    uint32_t turn = session->turn + is_new;
    if (is_named)
        turn = request->place.turn_text ? named_turn(session, request->place.turn_text) : request->place.turn;
    uint32_t before = changes->gave_up_count;
    LEDGER_CLEAR(turned);
    turned->turn = session->turn;
    if (!is_new)
        return false;
    session->last_ms = (uint64_t)ctx.now_ms;
    rules_end_silence(&ctx);
    if (request->end) { /* no turn begins, but what was left open ends */
        chain_give_up_all(&ctx);
        turned->gave_up = changes->gave_up_count - before;
        return false;
    }
    if (request->compacted) {
        reset_calls(&ctx, 0, BIT(LEDGER_EFFECTS_READ) | BIT(LEDGER_EFFECTS_UNKNOWN));
        return false;
    }
    session->told_turn = turn;
    if (turn > session->turn)
        begin_turn(&ctx, turn, request->place.by_person);
    turned->turn = session->turn;
    turned->gave_up = changes->gave_up_count - before;
    if (turn != session->turn || request->goal.len == 0)
        return false;
    session->has_goal = true;
    return true;
}

void session_reset(struct session *session, struct str tool, uint32_t id, int64_t now_ms,
                   struct session_changes *changes)
{
    uint32_t hash = session_tool(tool);
    if (is_repeated(session, id))
        return;
    struct rules_ctx ctx = rules_begin(session, changes, NULL, now_ms);
    session->last_ms = (uint64_t)ctx.now_ms;
    reset_calls(&ctx, hash, ALL_EFFECTS);
    session->spent_full = false;
    chain_drop_tool(session, hash);
    lax_drop_tool(session, hash);
}

void session_boundary(struct session *session)
{
    struct session_call boundary = {
        .class = CALL_BOUNDARY, .turn = (uint8_t)session->turn, .step = (uint8_t)(session->step + 128)};
    if (session->call_count == 0 ||
        session_call_at(session, session->call_count - 1u)->class == CALL_BOUNDARY)
        return;
    window_add(session, &boundary);
}

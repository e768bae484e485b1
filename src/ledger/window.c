/*
 * What the window of a session says of one call: runs, cycles, what re-arms them, same failures. Calls are
 * read from the newest to the oldest. Nothing here decides; rules.c does.
 */
#include "ledger/rules_internal.h"

#include <limits.h>

#define SESSION_AGENT_CALLS 8u /* that it keeps */

#define PERIOD_MAX 5u                            /* calls of a cycle */
#define CYCLE_MAX  (PERIOD_MAX * PERIOD_MAX + 1) /* calls to look at for one */

#define OUTCOME_OF_CLASS ((uint64_t)1 << 48) /* no result has this bit */

/* ---- one call -------------------------------------------------------------------- */

/* How a call ended, for comparing two; 0: not known, which equals anything. */
static uint64_t outcome_of(const struct session_call *call)
{
    if (call_ran(call))
        return call->result;
    if (call->class >= CALL_INVALID && call->class <= CALL_REFUSED)
        return OUTCOME_OF_CLASS + call->class;
    return 0;
}

/* The same without what is masked; 0: not known. */
static uint64_t nearly_of(const struct session_call *call)
{
    return call_ran(call) && call->masked ? (uint64_t)call->masked << 1 | (call->class == CALL_TOOL_ERROR)
                                          : 0;
}

static bool is_same_call(const struct session_call *call, const struct window_query *query)
{
    return call->tool == query->call->tool && call->arguments == query->call->arguments;
}

static bool succeeded(const struct session_call *call)
{
    return call->class == CALL_OK || call->class == CALL_PARTIAL;
}

/* `always`: with any result. */
static bool takes_budget(const struct session_call *call, bool always)
{
    if (call->class == CALL_UNKNOWN) /* it may have run */
        return call->effects == LEDGER_EFFECTS_DESTRUCTIVE;
    bool is_excused = call->changed || (call_ran(call) && call->under_way);
    return call->class <= CALL_TOOL_ERROR && (always || !is_excused);
}

/* ---- what is a reason to make a call again ---------------------------------------- */

/* Whether this other call is one. After an error, any success that may have changed the world is. After a
 * success, what was read may have changed, also by a tool that may do anything (a shell) with other
 * arguments; a write is made again only after a declared write of another tool (the edit of a local file
 * after a shell's, too), and what destroys only in a new turn: `echo` would else be an excuse for deleting
 * twice. Where an annotation alone says that it destroys, it is judged as a write that its own success with
 * other arguments re-arms: a key pressed, another, and the first again. */
static bool re_arms(const struct session_spent *call, const struct session_call *other)
{
    if (!succeeded(other))
        return false;
    if (call->failed)
        return other->effects != LEDGER_EFFECTS_READ;
    bool another = other->tool != call->tool;
    switch (call->effects) {
    case LEDGER_EFFECTS_DESTRUCTIVE:
        return call->hinted && (!another || effects_change(other->effects));
    case LEDGER_EFFECTS_WRITE:
        return another && (effects_change(other->effects) ||
                           (call->edits_files && other->effects == LEDGER_EFFECTS_UNKNOWN));
    default:
        return another ? other->effects != LEDGER_EFFECTS_READ : other->effects == LEDGER_EFFECTS_UNKNOWN;
    }
}

/* ---- counts that outlast the window ----------------------------------------------- */

static struct session_spent *find_spent(struct session *session, uint32_t tool, uint64_t arguments)
{
    for (unsigned i = 0; i < session->spent_count; i++)
        if (session->spent[i].tool == tool && session->spent[i].arguments == arguments)
            return &session->spent[i];
    return NULL;
}

static void drop_spent(struct session *session, struct session_spent *spent)
{
    *spent = session->spent[--session->spent_count];
}

static bool spent_re_armed(const struct session_spent *spent, const struct session_call *other)
{
    bool same = other->tool == spent->tool && other->arguments == spent->arguments;
    return !same && !spent->hard && re_arms(spent, other);
}

void window_spent_drop(struct session *session, uint32_t tool, unsigned effects)
{
    for (unsigned i = session->spent_count; i-- > 0;) {
        struct session_spent *spent = &session->spent[i];
        bool as_write = spent->effects == LEDGER_EFFECTS_DESTRUCTIVE && spent->hinted;
        if ((!tool || spent->tool == tool) &&
            effects & 1u << (as_write ? LEDGER_EFFECTS_WRITE : spent->effects))
            drop_spent(session, spent);
    }
}

void window_spent_settle(struct session *session, const struct session_call *call)
{
    for (unsigned i = session->spent_count; i-- > 0;)
        if (spent_re_armed(&session->spent[i], call))
            drop_spent(session, &session->spent[i]);
}

/* A call of this turn whose budget must not be forgotten: "once a turn" holds however many calls follow.
 * Where turns are guessed, none gives back what destroys. */
static bool outlasts(const struct session *session, const struct session_call *call)
{
    bool destroys = call->effects == LEDGER_EFFECTS_DESTRUCTIVE && !call->hinted;
    return (call->turn == (uint8_t)session->turn || (destroys && !session->told_turn)) &&
           (effects_change(call->effects) || call->hard) && takes_budget(call, call->hard) &&
           !call_was_reset(call);
}

static bool is_plain_write(enum ledger_effects effects, bool hard, bool hinted)
{
    return !hard && (effects != LEDGER_EFFECTS_DESTRUCTIVE || hinted);
}

/* A place for the call's count, at worst that of a plain write, which may be made twice; NULL: none. */
static struct session_spent *new_spent(struct session *session, const struct session_call *call)
{
    if (session->spent_count < SESSION_SPENT_MAX)
        return &session->spent[session->spent_count++];
    if (is_plain_write(call->effects, call->hard, call->hinted))
        return NULL;
    for (unsigned i = 0; i < SESSION_SPENT_MAX; i++) {
        const struct session_spent *s = &session->spent[i];
        if (is_plain_write(s->effects, s->hard, s->hinted))
            return &session->spent[i];
    }
    session->spent_full = true;
    return NULL;
}

/* The call at this place leaves the window. Of a step's twins, the last one to leave counts. */
static void spend(struct session *session, unsigned place)
{
    const struct session_call *call = session_call_at(session, place);
    struct session_spent *spent = find_spent(session, call->tool, call->arguments);
    unsigned before = spent ? spent->count : 0;
    if (!outlasts(session, call))
        return;
    for (unsigned i = place + 1; i < session->call_count; i++) {
        const struct session_call *other = session_call_at(session, i);
        if (other->tool == call->tool && other->arguments == call->arguments && other->step == call->step &&
            outlasts(session, other))
            return;
    }
    if (!spent && !(spent = new_spent(session, call)))
        return;
    *spent = (struct session_spent){.arguments = call->arguments,
                                    .tool = call->tool,
                                    .count = (uint8_t)(before < SESSION_COUNT_MAX ? before + 1 : before),
                                    .effects = call->effects & 3,
                                    .hard = call->hard,
                                    .hinted = call->hinted,
                                    .edits_files = call->edits_files,
                                    .failed = call->class == CALL_TOOL_ERROR};
    for (unsigned i = place + 1; i < session->call_count; i++)
        if (spent_re_armed(spent, session_call_at(session, i))) {
            drop_spent(session, spent);
            return;
        }
}

/* ---- rows ------------------------------------------------------------------------ */

#define STEP_NONE  (-1)
#define STEP_MIXED (-2)

/* While the window is read backwards. A row of steps that hold the call goes on until another call stood
 * between two of them; a row of refusals outlasts calls that were not let run either. */
struct row {
    const struct window_query *query;
    struct window_past *past;
    struct session_spent call; /* what is known of it: what re-arms it depends on that */
    bool goes_on;
    bool armed;                        /* nothing re-armed the call since */
    bool same;                         /* all outcomes so far are alike */
    bool nearly;                       /* the last one is but for what is masked */
    bool failing;                      /* only transient failures so far */
    bool last_known;                   /* what came of it last, in this turn */
    uint64_t outcome, masked, failure; /* of the newest whose outcome is known */
    int step;                          /* last one that was counted in the row */
    uint32_t newer_s;                  /* when that was */
    bool lately;                       /* no pause of LEDGER_ACROSS_WITHIN_MS so far */
    bool alike;                        /* it failed with one error, and no write succeeded between */
    bool apart;                        /* another call of the step came since */
    int own_step;                      /* last one that holds the call */
    int spent_step;                    /* last one that was counted as spent */
    int other_step;                    /* of another call that was let run since; STEP_NONE */
    int refused_step;                  /* of another call that was not; STEP_NONE, STEP_MIXED: several */
};

/* Whether any other call is alike, wherever it stands: mostly none is. */
static bool has_alike(const struct window_query *query)
{
    const struct session_call *calls = query->session->calls, *self = query->self;
    uint64_t arguments = query->call->arguments;
    uint32_t tool = query->call->tool;
    unsigned count = query->session->call_count;
#pragma GCC unroll 32
    for (unsigned i = 0; i < SESSION_CALLS_MAX; i++)
        if (calls[i].arguments_low == (uint32_t)arguments && calls[i].arguments == arguments &&
            calls[i].tool == tool && i < count && &calls[i] != self)
            return true;
    return false;
}

bool window_has_tool(const struct session *session, uint32_t tool)
{
    for (unsigned i = session->call_count; i-- > 0;)
        if (session_call_at(session, i)->tool == tool)
            return true;
    return false;
}

static enum ledger_came_of came_of(const struct session_call *call)
{
    switch (call->class) {
    case CALL_OK:
    case CALL_PARTIAL:
    case CALL_GARBAGE:
        return LEDGER_CAME_RESULT;
    case CALL_MISMATCH:
    case CALL_TOOL_ERROR:
    case CALL_TRANSIENT:
        return LEDGER_CAME_ERROR;
    case CALL_INVALID:
    case CALL_FABRICATED:
        return LEDGER_CAME_INVALID;
    case CALL_REFUSED:
        return LEDGER_CAME_REFUSED;
    default:
        return LEDGER_CAME_UNKNOWN;
    }
}

/* The oldest call that is alike, and what came of the newest that ran. Returns its place, or `older` if there
 * is none. */
static unsigned find_alike(const struct window_query *query, struct window_past *past, bool *failed)
{
    unsigned oldest = query->older;
    bool has_run = false;
    for (unsigned i = query->older; i-- > 0;) {
        const struct session_call *call = session_call_at(query->session, i);
        if (!is_same_call(call, query))
            continue;
        oldest = i;
        if (past->came_of == LEDGER_CAME_UNKNOWN)
            past->came_of = came_of(call);
        if (!has_run && call_ran(call)) {
            has_run = true;
            *failed = call->class == CALL_TOOL_ERROR;
            past->under_way = call->under_way;
        }
    }
    return oldest;
}

static void see_other(struct row *row, const struct session_call *other)
{
    int step = other->step;
    bool own =
        other->agent == row->query->call->agent; /* another agent's call stands between none of this one's */
    if (other->class == CALL_RELEASED)
        return;
    row->apart |= own && step == row->query->call->step;
    if (other->class == CALL_BOUNDARY) {
        row->goes_on = row->alike = false;
        return;
    }
    if (effects_change(other->effects) && succeeded(other))
        row->alike = false;
    if (row->goes_on && own && step != row->own_step) {
        if (other->class <= CALL_TRANSIENT) {
            if (row->other_step != STEP_NONE && row->other_step != step)
                row->goes_on = false;
            row->other_step = step;
        } else {
            row->refused_step =
                row->refused_step == STEP_NONE || row->refused_step == step ? step : STEP_MIXED;
        }
    }
    if (re_arms(&row->call, other))
        row->goes_on = row->armed = false;
}

/* What goes by the turn alone, or by the same-call budget. */
static void see_budget(struct row *row, const struct session_call *call, bool this_turn)
{
    struct window_past *past = row->past;
    bool always = row->query->limits->same_call_hard;
    bool counts =
        (row->armed || always) && (this_turn || row->query->spent_forever) && takes_budget(call, always);
    if (counts && (call->step == row->query->call->step || call->class == CALL_PENDING)) {
        past->at_once++;
    } else if (counts && call->step != row->spent_step) {
        past->spent++;
        row->spent_step = call->step;
    }
    if (!this_turn)
        return;
    if (call->class != CALL_DENIED && !row->last_known) {
        row->last_known = true;
        past->invalid_last = call->class == CALL_INVALID;
    }
    past->held++;
    past->broken |= call->class == CALL_MISMATCH;
    past->invalid_before |= call->class == CALL_INVALID;
    past->twin |= call->step == row->query->call->step && !row->apart &&
                  (call->class <= CALL_TOOL_ERROR ||
                   (call->class == CALL_UNKNOWN && call->effects == LEDGER_EFFECTS_DESTRUCTIVE));
}

static void count_in_run(struct window_run *run, const struct row *row, bool known)
{
    run->steps++;
    run->nearly += row->nearly;
    run->alike += known && !row->nearly;
}

unsigned window_times(const struct window_run *run)
{
    if (!run->nearly)
        return run->steps + 1;
    return run->alike <= 1 ? (run->steps + 1) / 2 : run->steps + 1 - (run->nearly + 1) / 2;
}

static void count_step(struct row *row, const struct session_call *call, bool this_turn)
{
    struct window_past *past = row->past;
    if (call->step == row->step)
        return;
    row->step = call->step;
    bool paced = row->newer_s >= call->second + LEDGER_POLL_PACE_S; /* the call after this one */
    row->lately = row->lately && row->newer_s <= call->second + LEDGER_ACROSS_WITHIN_MS / 1000;
    row->newer_s = call->second;
    bool known = outcome_of(call) && !row->query->any_outcome;
    if (row->same && row->lately)
        count_in_run(&past->across, row, known);
    if (!this_turn)
        return;
    if (row->same)
        count_in_run(&past->run, row, known);
    past->polls += call->changed && call->class <= CALL_PARTIAL;
    if (!past->asked)
        past->paced = paced;
    else
        past->asked -= paced;
    past->asked++;
}

static void see_same(struct row *row, const struct session_call *call, bool this_turn)
{
    if (call->class == CALL_RELEASED)
        return;
    if (call->class == CALL_TRANSIENT) {
        row->past->transients += this_turn && row->failing;
        return;
    }
    row->alike = row->alike && this_turn;
    if (call_ran(call)) {
        row->failing = false;
        row->alike = row->alike && call->class == CALL_TOOL_ERROR && call->masked &&
                     (!row->failure || row->failure == call->masked);
        row->failure = call->masked;
        row->past->failed_alike += row->alike;
    }
    see_budget(row, call, this_turn);
    /* Whether the row goes on with this step of the call, an earlier one than those so far. */
    if (row->other_step != STEP_NONE && row->other_step != call->step)
        row->goes_on = false;
    if (row->refused_step != STEP_NONE && row->refused_step != call->step && call->class != CALL_DENIED)
        row->goes_on = false;
    if (!row->goes_on)
        return;
    row->own_step = call->step;
    row->other_step = row->refused_step = STEP_NONE;
    uint64_t outcome = row->query->any_outcome ? 0 : outcome_of(call);
    if (this_turn && !row->past->asked_ever)
        row->past->asked_ever = call_ran(call)               ? call->asked
                                : call->class == CALL_DENIED ? call->denied_asked
                                                             : 0; /* not known */
    bool alike = !outcome || !row->outcome || row->outcome == outcome;
    row->nearly = !alike && row->masked && nearly_of(call) == row->masked;
    row->same = row->same && (alike || row->nearly);
    if (!row->outcome) {
        row->outcome = outcome;
        row->masked = nearly_of(call);
    }
    if (call->class == CALL_DENIED && call->code == CODE_POLL_BUDGET && !row->query->any_outcome)
        row->same = false; /* what was under way then may have ended since */
    if (call->class != CALL_DENIED || call->code != CODE_TOO_SOON) /* that counts nowhere */
        count_step(row, call, this_turn);
}

struct window_query window_query(const struct rules_ctx *ctx, const struct session_call *call,
                                 const struct session_call *self)
{
    const struct session *session = ctx->session;
    const struct ledger_limits *limits = ctx->limits;
    unsigned place = self ? (unsigned)(self - session->calls) : 0;
    bool destroys = limits->effects == LEDGER_EFFECTS_DESTRUCTIVE && !limits->hinted;
    return (struct window_query){
        .session = session,
        .call = call,
        .self = self,
        .limits = limits,
        .older =
            self ? (place + SESSION_CALLS_MAX - session->oldest) % SESSION_CALLS_MAX : session->call_count,
        .now_s = ctx->now_s,
        /* where a new result is no reason to go on */
        .any_outcome = limits->compare_arguments || effects_change(limits->effects),
        .spent_forever = destroys && !session->told_turn,
    };
}

void window_look(const struct window_query *query, struct window_past *past)
{
    const struct session *session = query->session;
    const struct session_spent *before =
        find_spent((struct session *)session, query->call->tool, query->call->arguments);
    *past = (struct window_past){.spent = before ? before->count : 0};
    if (!has_alike(query))
        return;
    bool failed = false; /* the last time that it ran, with a tool_error */
    unsigned oldest = find_alike(query, past, &failed);
    struct row row = {.query = query,
                      .past = past,
                      .call = {.tool = query->call->tool,
                               .effects = query->limits->effects,
                               .hinted = query->limits->hinted,
                               .edits_files = query->limits->edits_files,
                               .failed = failed},
                      .goes_on = true,
                      .armed = true,
                      .same = true,
                      .failing = true,
                      .alike = true,
                      .outcome = outcome_of(query->call),
                      .masked = nearly_of(query->call),
                      .failure = query->call->class == CALL_TOOL_ERROR ? query->call->masked : 0,
                      .step = query->call->step,
                      .newer_s = query->now_s,
                      .lately = true,
                      .own_step = query->call->step,
                      .spent_step = query->call->step,
                      .other_step = STEP_NONE,
                      .refused_step = STEP_NONE};
    for (unsigned i = query->older; i-- > oldest;) {
        const struct session_call *call = session_call_at(session, i);
        bool this_turn = call->turn == query->call->turn;
        if (!this_turn && !row.goes_on &&
            !(query->spent_forever && (row.armed || query->limits->same_call_hard)))
            return;
        if (is_same_call(call, query))
            see_same(&row, call, this_turn);
        else
            see_other(&row, call);
    }
}

/* ---- cycles ---------------------------------------------------------------------- */

/* The calls of this turn, the one that is judged first, then the newest. */
struct lap {
    struct lap_call {
        uint32_t tool;
        uint64_t arguments, outcome, masked;
    } calls[CYCLE_MAX];
    unsigned last; /* index of the oldest */
};

/* Transient failures and released calls are left out, and of twins in a step all but one. What a write
 * returns is not compared. */
static void read_lap(const struct window_query *query, struct lap *lap)
{
    const struct session_call *newer = query->call;
    lap->last = 0;
    lap->calls[0] = (struct lap_call){.tool = newer->tool, .arguments = newer->arguments};
    for (unsigned i = query->older; i-- > 0 && lap->last < CYCLE_MAX - 1;) {
        const struct session_call *call = session_call_at(query->session, i);
        if (call->turn != query->call->turn || call->class == CALL_BOUNDARY)
            return;
        if (call->class == CALL_TRANSIENT || call->class == CALL_RELEASED ||
            call->agent != query->call->agent)
            continue;
        if (call->tool != newer->tool || call->arguments != newer->arguments || call->step != newer->step)
            lap->calls[++lap->last] =
                (struct lap_call){call->tool, call->arguments,
                                  effects_change(call->effects) ? 0 : outcome_of(call), nearly_of(call)};
        newer = call;
    }
}

enum likeness { DIFFERENT_CALLS, DIFFERENT, NEARLY_ALIKE, ALIKE };

static enum likeness compare(const struct lap_call *a, const struct lap_call *b)
{
    if (a->tool != b->tool || a->arguments != b->arguments)
        return DIFFERENT_CALLS;
    if (a->outcome == b->outcome || !a->outcome || !b->outcome)
        return ALIKE;
    return a->masked && a->masked == b->masked ? NEARLY_ALIKE : DIFFERENT;
}

unsigned window_rounds(const struct window_query *query)
{
    struct lap lap;
    unsigned most = 1;
    read_lap(query, &lap);
    for (unsigned period = 2; period <= PERIOD_MAX; period++) {
        bool is_mixed = false; /* else it is a run */
        unsigned alike = 0, i = 0;
        for (; i + period <= lap.last; i++) {
            enum likeness likeness = compare(&lap.calls[i], &lap.calls[i + period]);
            if (likeness < NEARLY_ALIKE)
                break;
            alike += likeness == ALIKE && alike == i;
            is_mixed |= compare(&lap.calls[i], &lap.calls[0]) == DIFFERENT_CALLS;
        }
        /* rounds that are only nearly alike count half */
        unsigned rounds = (alike + period) / period, nearly = (i + period) / period / 2;
        if (alike < i && nearly > rounds)
            rounds = nearly;
        if (is_mixed && rounds >= 3 && rounds > most)
            most = rounds;
    }
    return most;
}

bool session_find_loop(const struct session *session, struct session_loop *loop)
{
    if (!session->call_count)
        return false;
    const struct session_call *last = session_call_at(session, session->call_count - 1u);
    if (last->turn != (uint8_t)session->turn)
        return false;
    struct ledger_limits limits = {.effects = last->effects};
    struct rules_ctx ctx = {.session = (struct session *)session, .limits = &limits};
    struct window_query query = window_query(&ctx, last, last);
    query.any_outcome = false;
    struct window_past past;
    window_look(&query, &past);
    enum session_code code = last->code;
    bool denied =
        last->class == CALL_DENIED && (code == CODE_LOOP || code == CODE_CYCLE || code == CODE_SAME_CALL ||
                                       code == CODE_SAME_FAILURE || code == CODE_POLL_BUDGET);
    *loop = (struct session_loop){last->tool, past.run.steps + 1, denied ? last->code : CODE_NONE,
                                  denied && last->says == LEDGER_HALT};
    if (loop->code == CODE_CYCLE)
        loop->times = window_rounds(&query);
    bool excused = last->changed || (call_ran(last) && last->under_way);
    return denied || (loop->times >= SESSION_LOOP_CALLS && !excused);
}

/* ---- results --------------------------------------------------------------------- */

const struct session_call *window_last_result(const struct window_query *query)
{
    for (unsigned i = query->older; i-- > 0;) {
        const struct session_call *call = session_call_at(query->session, i);
        if (call->turn != query->call->turn)
            return NULL;
        if (call_ran(call) && call->step != query->call->step && is_same_call(call, query))
            return call;
    }
    return NULL;
}

unsigned window_same_failure(const struct window_query *query, uint64_t masked)
{
    unsigned count = 0;
    for (unsigned i = query->older; i-- > 0;) {
        const struct session_call *call = session_call_at(query->session, i);
        if (call->turn != query->call->turn || call->class == CALL_BOUNDARY)
            break;
        if (succeeded(call)) /* of any tool: the model has looked, or changed something */
            break;
        if (call_was_reset(call) || call->tool != query->call->tool || call->agent != query->call->agent ||
            !call_ran(call))
            continue;
        if (call->class != CALL_TOOL_ERROR || !call->masked || (masked && masked != call->masked))
            break;
        masked = call->masked;
        count++;
    }
    return count;
}

const struct session_call *session_last_failure(const struct session *session, const struct session_call *of)
{
    for (unsigned i = session->call_count; i-- > 0;) {
        const struct session_call *call = session_call_at(session, i);
        if (call->tool == of->tool && call->class == CALL_TOOL_ERROR)
            return call;
    }
    return NULL;
}

/* ---- changing it ----------------------------------------------------------------- */

/* Bits of the calls that are among the last ones of the agents that called last; 0 where one agent called. */
static uint32_t find_last_calls(const struct session *session)
{
    uint16_t agents[SESSION_AGENTS_MAX], first = session->calls[0].agent;
    unsigned calls[SESSION_AGENTS_MAX] = {0}, known = 0;
    uint32_t last = 0;
    bool several = false;
#pragma GCC unroll 32
    for (unsigned i = 1; i < SESSION_CALLS_MAX; i++)
        several |= session->calls[i].agent != first;
    for (unsigned i = several ? session->call_count : 0; i-- > 0;) {
        uint16_t agent = session_call_at(session, i)->agent;
        unsigned at = 0;
        while (at < known && agents[at] != agent)
            at++;
        if (at == known && known < SESSION_AGENTS_MAX)
            agents[known++] = agent;
        if (at < SESSION_AGENTS_MAX && ++calls[at] <= SESSION_AGENT_CALLS)
            last |= 1u << i;
    }
    return last;
}

/* Which call of the full window leaves: the oldest, but agents at work beside each other do not push each
 * other's last calls out; what may have changed the world leaves after all that it re-arms; and a call whose
 * result is still to come stays longest, as long as its step is told from the others. */
static unsigned find_leaving(const struct session *session)
{
    uint32_t last = find_last_calls(session);
    unsigned leaving = 0, least = UINT_MAX;
    for (unsigned i = 0; i < session->call_count && least > 0; i++) {
        const struct session_call *call = session_call_at(session, i);
        bool open = call->class == CALL_PENDING || (call->class == CALL_UNKNOWN && call->may_settle);
        bool comes = open && (uint8_t)(session->step - call->step) < STEPS_APART;
        bool changed = i > 0 && succeeded(call) && call->effects != LEDGER_EFFECTS_READ;
        unsigned against = (comes ? 4u : 0u) + (changed ? 2u : 0u) + (last >> i & 1);
        if (against < least) {
            least = against;
            leaving = i;
        }
    }
    return leaving;
}

struct session_call *window_add(struct session *session, const struct session_call *call)
{
    struct session_call *to = session_call_at(session, session->call_count);
    uint32_t taken = 0;
    uint8_t slot;
    if (session->call_count < SESSION_CALLS_MAX) {
        for (unsigned i = 0; i < session->call_count; i++)
            taken |= 1u << session->calls[i].slot;
        slot = (uint8_t)__builtin_ctz(~taken);
        session->call_count++;
    } else {
        unsigned gone = find_leaving(session);
        slot = session_call_at(session, gone)->slot;
        spend(session, gone);
        for (; gone > 0; gone--) /* those before it move up by one, which leaves the oldest place free */
            *session_call_at(session, gone) = *session_call_at(session, gone - 1);
        session->oldest = (session->oldest + 1) % SESSION_CALLS_MAX;
    }
    *to = *call;
    to->slot = slot;
    return to;
}

void window_forget_turn(struct session *session, uint8_t turn)
{
    struct session_call kept[SESSION_CALLS_MAX];
    unsigned from = session->call_count;
    while (from > 0 && session_call_at(session, from - 1)->turn != turn)
        from--;
    if (from == 0)
        return;
    unsigned count = session->call_count - from;
    for (unsigned i = 0; i < count; i++)
        kept[i] = *session_call_at(session, from + i);
    memset(session->calls, 0, sizeof(session->calls));
    memcpy(session->calls, kept, count * sizeof(*kept));
    session->call_count = (uint8_t)count;
    session->oldest = 0;
}

/*
 * What a tool and a session may use up (calls, cost, seconds of a turn), and the pace at which a call may be
 * repeated. A call's declared cost is taken when it is let run, so that parallel calls cannot overspend
 * together; when it is settled, what it really cost takes its place.
 */
#include "ledger/rules_internal.h"

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

struct used {
    uint64_t calls_turn, calls, seconds, cost_turn, cost;
};

static struct limit_use check_allowance(const struct ledger_allowance *a, const struct used *used,
                                        const struct ledger_limits *limits)
{
    uint64_t price = limits->cost;
    if (a->calls_per_turn && used->calls_turn >= a->calls_per_turn)
        return (struct limit_use){CODE_CALLS_PER_TURN, false, used->calls_turn};
    if (a->calls_per_session && used->calls >= a->calls_per_session)
        return (struct limit_use){CODE_CALLS_PER_SESSION, false, used->calls};
    if (a->seconds_per_turn && used->seconds >= a->seconds_per_turn)
        return (struct limit_use){CODE_SECONDS_PER_TURN, false, used->seconds};
    if (!limits->costs)
        return (struct limit_use){0};
    if (a->cost_per_turn &&
        (used->cost_turn >= a->cost_per_turn || used->cost_turn + price > a->cost_per_turn))
        return (struct limit_use){CODE_COST_PER_TURN, false, used->cost_turn};
    if (a->cost_per_session &&
        (used->cost >= a->cost_per_session || used->cost + price > a->cost_per_session))
        return (struct limit_use){CODE_COST_PER_SESSION, false, used->cost};
    return (struct limit_use){0};
}

struct limit_use limits_check(const struct rules_ctx *ctx, uint32_t tool)
{
    const struct session *session = ctx->session;
    const struct ledger_limits *limits = ctx->limits;
    struct limit_use use = {0};
    if (is_limited(&limits->tool)) {
        struct session_counter c = read_counter(ctx, tool);
        struct used used = {c.calls_turn, c.calls, ctx->now_s - c.began_s, c.cost_turn, c.cost};
        use = check_allowance(&limits->tool, &used, limits);
    }
    if (!use.code && is_limited(&limits->session)) {
        struct used used = {session->calls_in_turn, session->calls_made, ctx->now_s - session->turn_began_s,
                            session->cost_in_turn, session->cost};
        use = check_allowance(&limits->session, &used, limits);
        use.of_session = use.code != CODE_NONE;
    }
    return use;
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

uint32_t limits_wait_ms(const struct rules_ctx *ctx, uint32_t tool, uint64_t arguments)
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

static void drop_paced(struct session *session, unsigned i)
{
    DROP_AT(session->paced, session->paced_count, i);
    session->paced[session->paced_count] = (struct session_paced){0};
}

void limits_pace(struct rules_ctx *ctx, uint32_t tool, uint64_t arguments, bool runs)
{
    struct session *session = ctx->session;
    if (!ctx->limits->poll_every_ms)
        return;
    unsigned i = find_paced(session, tool, arguments);
    if (i < session->paced_count)
        drop_paced(session, i);
    if (!runs)
        return;
    if (session->paced_count == SESSION_PACED_MAX)
        drop_paced(session, 0); /* the one let run longest ago */
    session->paced[session->paced_count++] =
        (struct session_paced){.tool = tool, .arguments = arguments, .at_ms = (uint64_t)ctx->now_ms};
}

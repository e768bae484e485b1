/* Two tables: budgets that one sentence says, and limits, whose numbers are said with them. */
#include "gate/feedback_budget.h"

#include "base/arena.h"
#include "json/decimal.h"

#define LATER                                                                                                \
    "Answer with what you have, or use another tool; it can be called again after the user's next message."
#define NO_MORE                                                                                              \
    "It cannot be called again in this conversation. Answer with what you have, or use another tool."
#define TURN_OVER "Call no more tools this turn: answer with what you have, and say what is missing."
#define ALL_OVER                                                                                             \
    "No more tools can be called in this conversation: answer with what you have, and say what is missing."

static const struct plain {
    const char *code;
    struct budget words;
} plain[] = {
    {"same_call",
     {"this exact call has already been made as often this turn as it may be",
      "Use the results you have. Change the arguments if you need something else."}},
    {"duplicate_in_step",
     {"the same call was already made in this very step",
      "One is enough: wait for its result and use that."}},
    {"already_broken",
     {"this exact call returned a broken result earlier this turn, and would again",
      "Do not repeat it. Use another tool, or tell the user that this one is broken."}},
    {"transient_budget",
     {"it has failed for passing reasons too often this turn",
      "Stop waiting for it. Use another tool, or tell the user that it is out of order just now."}},
    {"poll_budget",
     {"it has been asked again as often as it may be",
      "Stop asking. Tell the user how far it got, and that it is still going on."}},
};

/* What is counted, and what is left to do: of the tool's own limit, and of the whole session's. */
enum unit { CALLS, SECONDS, COST };

#define LIMIT(which, unit, when, own, all)                                                                   \
    {                                                                                                        \
#which, unit, offsetof(struct ledger_allowance, which), when, own, all                               \
    }
static const struct limit {
    const char *code;
    enum unit unit;
    size_t offset;
    const char *when, *next_own, *next_all;
} limits[] = {
    LIMIT(calls_per_turn, CALLS, "this turn", LATER, TURN_OVER),
    LIMIT(calls_per_session, CALLS, "in this conversation", NO_MORE, ALL_OVER),
    LIMIT(seconds_per_turn, SECONDS, "this turn", LATER, TURN_OVER),
    LIMIT(cost_per_turn, COST, "this turn", LATER, TURN_OVER),
    LIMIT(cost_per_session, COST, "in this conversation", NO_MORE, ALL_OVER),
};

static const char *amount(struct arena *arena, uint64_t millionths)
{
    char text[DECIMAL_DOUBLE_BYTES + 1];
    text[decimal_from_double(text, (double)millionths / LEDGER_COST_UNIT)] = '\0';
    return arena_dup(arena, str_of(text)).at;
}

static struct str calls_said(struct arena *arena, const struct limit *l, uint32_t most,
                             const struct verdict *v)
{
    const char *who = v->session_limit ? "all tools together" : "it";
    return arena_printf(arena, "%s may be called %u time%s %s, and %llu were made", who, most,
                        most == 1 ? "" : "s", l->when, (unsigned long long)v->limit_used);
}

static struct str seconds_said(struct arena *arena, uint32_t most, const struct verdict *v)
{
    return arena_printf(
        arena, "%s may be called for %u s of a turn, and %s %llu s ago", v->session_limit ? "tools" : "it",
        most, v->session_limit ? "this one began" : "its first call was", (unsigned long long)v->limit_used);
}

static struct str cost_said(struct arena *arena, const struct limit *l, uint64_t most,
                            const struct verdict *v, const struct tool *tool)
{
    struct str spent = arena_printf(arena, "%s may cost %s %s, of which %s is spent",
                                    v->session_limit ? "all calls together" : "its calls",
                                    amount(arena, most), l->when, amount(arena, v->limit_used));
    if (!tool->limits.cost)
        return spent;
    return arena_printf(arena, STR_FMT ", and this one would cost %s", STR_ARG(spent),
                        amount(arena, tool->limits.cost));
}

static struct budget limit_said(struct arena *arena, const struct limit *l, const struct verdict *v,
                                const struct tool *tool)
{
    const struct ledger_allowance *of = v->session_limit ? &tool->limits.session : &tool->limits.tool;
    const void *at = (const char *)of + l->offset;
    struct str what;
    if (l->unit == CALLS)
        what = calls_said(arena, l, *(const uint32_t *)at, v);
    else if (l->unit == SECONDS)
        what = seconds_said(arena, *(const uint32_t *)at, v);
    else
        what = cost_said(arena, l, *(const uint64_t *)at, v, tool);
    return (struct budget){what.at, v->session_limit ? l->next_all : l->next_own};
}

static struct budget pace_said(struct arena *arena, const struct verdict *v, const struct tool *tool)
{
    struct str what = arena_printf(arena, "this call may be made every %s s, and it is not yet time",
                                   amount(arena, (uint64_t)tool->limits.poll_every_ms * 1000));
    struct str next = arena_printf(arena, "Ask again in %llu s: the same call is fine then.",
                                   (unsigned long long)(v->limit_used + 999) / 1000);
    return (struct budget){what.at, next.at};
}

struct budget feedback_budget_of(struct arena *arena, struct str code, const struct verdict *v,
                                 const struct tool *tool)
{
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (str_is(code, plain[i].code))
            return plain[i].words;
    for (size_t i = 0; tool && i < sizeof(limits) / sizeof(limits[0]); i++)
        if (str_is(code, limits[i].code))
            return limit_said(arena, &limits[i], v, tool);
    if (tool && str_is(code, "too_soon"))
        return pace_said(arena, v, tool);
    return (struct budget){"its budget for this turn is used up", "Use what you have, or another tool."};
}

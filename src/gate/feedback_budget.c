/* Two tables: budgets with a fixed text, and limits, whose numbers the text states. */
#include "gate/feedback.h"

#include "base/arena.h"
#include "json/decimal.h"

#define LATER                                                                                                \
    "Answer with what you have, or use another tool; it can be called again after the user's next message."
#define NO_MORE                                                                                              \
    "It cannot be called again in this conversation. Answer with what you have, or use another tool."
#define TURN_OVER "Call no more tools this turn: answer with what you have, and say what is missing."
#define ALL_OVER                                                                                             \
    "No more tools can be called in this conversation: answer with what you have, and say what is missing."

static const struct fixed_budget {
    const char *code;
    struct feedback_budget text;
} fixed_budgets[] = {
    {"same_call",
     {"this exact call has reached its limit for this turn",
      "Use the results you have. Change the arguments if you need something else."}},
    {"duplicate_in_step",
     {"the same call was already made in this step", "Wait for its result and use that."}},
    {"already_broken",
     {"this exact call returned a broken result earlier this turn",
      "Do not repeat it. Use another tool, or tell the user that this one is broken."}},
    {"transient_budget",
     {"it has failed temporarily too often this turn",
      "Do not wait for it. Use another tool, or tell the user that it is unavailable."}},
    {"writes_per_turn",
     {"so many destructive calls were made this turn that this one may be a repetition",
      "Tell the user what is left to do; the tool can be called again after their next message."}},
    {"poll_budget",
     {"it has been polled as often as allowed",
      "Stop polling. Tell the user how far it got, and that it is still running."}},
};

enum unit { CALLS, SECONDS, COST };

#define LIMIT(member, unit, period, next_own, next_all)                                                      \
    {                                                                                                        \
#member, unit, offsetof(struct ledger_allowance, member), period, next_own, next_all                 \
    }
static const struct limit {
    const char *code;
    enum unit unit;
    size_t offset; /* in struct ledger_allowance */
    const char *period;
    const char *next_own, *next_all; /* for a limit of the tool, of the session */
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

static const char *limit_text(struct arena *arena, const struct limit *limit, const struct verdict *v,
                              const struct tool *tool)
{
    const struct ledger_allowance *all = v->session_limit ? &tool->limits.session : &tool->limits.tool;
    const void *max = (const char *)all + limit->offset;
    unsigned long long used = v->limit_used;
    struct str text;
    switch (limit->unit) {
    case CALLS:
        text = arena_printf(arena, "%s may be called %u time%s %s, and %llu were made",
                            v->session_limit ? "all tools together" : "it", *(const uint32_t *)max,
                            *(const uint32_t *)max == 1 ? "" : "s", limit->period, used);
        break;
    case SECONDS:
        text = arena_printf(arena, "%s may be used for %u s per turn, and %s %llu s ago",
                            v->session_limit ? "tools" : "it", *(const uint32_t *)max,
                            v->session_limit ? "this one began" : "its first call was", used);
        break;
    default:
        text = arena_printf(arena, "%s may cost %s %s, of which %s is spent",
                            v->session_limit ? "all calls together" : "its calls",
                            amount(arena, *(const uint64_t *)max), limit->period, amount(arena, used));
        if (tool->limits.cost)
            text = arena_printf(arena, STR_FMT ", and this one would cost %s", STR_ARG(text),
                                amount(arena, tool->limits.cost));
    }
    return text.at;
}

struct feedback_budget feedback_budget_of(struct arena *arena, struct str code, const struct verdict *v,
                                          const struct tool *tool)
{
    for (size_t i = 0; i < sizeof(fixed_budgets) / sizeof(fixed_budgets[0]); i++)
        if (str_is(code, fixed_budgets[i].code))
            return fixed_budgets[i].text;
    for (size_t i = 0; tool && i < sizeof(limits) / sizeof(limits[0]); i++)
        if (str_is(code, limits[i].code))
            return (struct feedback_budget){limit_text(arena, &limits[i], v, tool),
                                            v->session_limit ? limits[i].next_all : limits[i].next_own};
    if (tool && str_is(code, "too_soon")) {
        struct str what = arena_printf(arena, "this call may be made every %s s, and it is not yet time",
                                       amount(arena, (uint64_t)tool->limits.poll_every_ms * 1000));
        struct str next = arena_printf(arena, "Repeat the call in %llu s.",
                                       (unsigned long long)(v->limit_used + 999) / 1000);
        return (struct feedback_budget){what.at, next.at};
    }
    if (str_is(code, "rate_limit")) {
        unsigned long long s = (unsigned long long)(v->limit_used + 999) / 1000;
        struct str next = arena_printf(arena, "Wait %llu s, then repeat the call, or use another tool.", s);
        return (struct feedback_budget){"it is called too often for now", next.at};
    }
    if (str_is(code, "same_failure")) {
        struct str what = arena_printf(arena, "it has failed %llu times with the same error",
                                       (unsigned long long)v->limit_used);
        return (struct feedback_budget){what.at, "Trying again does not help. Remove the cause of the error, "
                                                 "use another tool, or tell the user about it."};
    }
    return (struct feedback_budget){"its budget for this turn is used up",
                                    "Use what you have, or another tool."};
}

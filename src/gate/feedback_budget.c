/* The words for a budget or limit that refuses a call: some are fixed, the others state its numbers. */
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
    struct budget text;
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
} limit_rows[] = {
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

unsigned feedback_poll_wait_s(const struct tool *tool)
{
    unsigned every_s = tool ? (tool->limits->poll_every_ms + 999) / 1000 : 0;
    return every_s > LEDGER_POLL_PACE_S ? every_s : LEDGER_POLL_PACE_S;
}

struct budget feedback_budget(const struct feedback *f, struct str code)
{
    const struct verdict *v = f->verdict;
    const struct tool *tool = f->tool;
    struct arena *arena = f->arena;
    unsigned long long used = v->limit_used, used_s = (used + 999) / 1000;
    bool all = v->session_limit;
    for (size_t i = 0; i < sizeof(fixed_budgets) / sizeof(fixed_budgets[0]); i++)
        if (str_is(code, fixed_budgets[i].code))
            return fixed_budgets[i].text;
    for (size_t i = 0; tool && i < sizeof(limit_rows) / sizeof(limit_rows[0]); i++) {
        const struct limit *limit = &limit_rows[i];
        if (!str_is(code, limit->code))
            continue;
        const void *max = (const char *)(all ? &tool->limits->session : &tool->limits->tool) + limit->offset;
        struct str text;
        if (limit->unit == CALLS)
            text = arena_printf(arena, "%s may be called %u time%s %s, and %llu call%s made",
                                all ? "all tools together" : "it", *(const uint32_t *)max,
                                *(const uint32_t *)max == 1 ? "" : "s", limit->period, used,
                                used == 1 ? " was" : "s were");
        else if (limit->unit == SECONDS)
            text = arena_printf(arena, "%s may be used for %u s per turn, and %s %llu s ago",
                                all ? "tools" : "it", *(const uint32_t *)max,
                                all ? "this one began" : "its first call was", used);
        else
            text = arena_printf(arena, "%s may cost %s %s, of which %s is spent%s%s",
                                all ? "all calls together" : "its calls",
                                amount(arena, *(const uint64_t *)max), limit->period, amount(arena, used),
                                tool->limits->cost ? ", and this one would cost " : "",
                                tool->limits->cost ? amount(arena, tool->limits->cost) : "");
        return (struct budget){text.at, all ? limit->next_all : limit->next_own};
    }
    if (tool && str_is(code, "too_soon"))
        return (struct budget){
            arena_printf(arena, "this call may be made once in %s s, and the last one is not that long ago",
                         amount(arena, (uint64_t)tool->limits->poll_every_ms * 1000))
                .at,
            arena_printf(arena, "Repeat the call in %llu s.", used_s).at};
    if (str_is(code, "rate_limit"))
        return (struct budget){
            "it is called too often for now",
            arena_printf(arena, "Wait %llu s, then repeat the call, or use another tool.", used_s).at};
    if (str_is(code, "poll_budget")) {
        const char *next = "Wait at least %u s before you ask again, or tell the user how far it got.";
        if (used >= LEDGER_POLLS_MAX)
            next = "Ask no more this turn: tell the user how far it got.";
        return (struct budget){arena_printf(arena, "it has been asked %llu times in a row", used).at,
                               arena_printf(arena, next, feedback_poll_wait_s(tool)).at};
    }
    if (str_is(code, "same_failure"))
        return (struct budget){arena_printf(arena, "it has failed %llu times with the same error", used).at,
                               "Trying again does not help. Use another tool, or look at the state that the "
                               "error speaks of: once any call succeeds, this tool runs again."};
    return (struct budget){"its budget for this turn is used up", "Use what you have, or another tool."};
}

/* How often, how much and how long: retry, loop, limits, cost. */
#include "policy/declare/declare_internal.h"
#include "policy/vocabulary/vocabulary.h"

#include <math.h>
#include <stdlib.h>

/* ---- retry ---------------------------------------------------------------------------- */

static void read_backoff(struct declaration *d, const struct field *field, int at)
{
    d->policy->retry.backoff_ms =
        declare_ms(d, "retry.again", field, at, POLICY_RETRY_WITHIN_MAX_S,
                   "a pause as \"200ms\", \"1s\" or in seconds, from a millisecond to a minute");
}

static void read_within(struct declaration *d, const struct field *field, int at)
{
    d->policy->retry.within_ms = declare_ms(d, "retry.again", field, at, POLICY_RETRY_WITHIN_MAX_S,
                                            "a time as \"5s\" or in seconds, from a millisecond to a minute");
}

static void read_times(struct declaration *d, const struct field *field, int at)
{
    double n = lua_type(d->L, at) == LUA_TNUMBER ? lua_tonumber(d->L, at) : -1;
    if (!(n >= 1 && n == floor(n) && n <= POLICY_RETRY_TIMES_MAX))
        fields_wrong(d, "retry.again", field->name, at, "a whole number from 1 to 5");
    d->policy->retry.times = (uint32_t)n;
}

static const struct field again_fields[] = {
    {.name = "times",
     .kind = FIELD_OWN,
     .read = read_times,
     .form = "2",
     .type = "integer",
     .sentence = "How often after the first try, at most 5; 2 where nothing is said."},
    {.name = "backoff",
     .kind = FIELD_OWN,
     .read = read_backoff,
     .form = "\"200ms\"",
     .type = "string|number",
     .sentence =
         "The pause before the second try, doubled with each, a quarter more or less by chance; 200 ms "
         "where nothing is said."},
    {.name = "within",
     .kind = FIELD_OWN,
     .read = read_within,
     .form = "\"5s\"",
     .type = "string|number",
     .sentence = "How long it may take, all tries together, at most a minute; 5 s where nothing is said. The "
                 "first has its own time."},
};

const struct field_table declare_again_table = {
    .of = "retry.again",
    .type = "toolgate.Again",
    .sentence =
        "How often toolgate itself tries again what failed for a moment only, before the model hears of it.",
    FIELD_TABLE(again_fields)};

/* again = true, or again = { times = 2, backoff = "200ms", within = "5s" } */
static void read_again(struct declaration *d, const struct field *field, int at)
{
    d->policy->retry =
        (struct policy_retry){POLICY_RETRY_TIMES, POLICY_RETRY_BACKOFF_MS, POLICY_RETRY_WITHIN_MS};
    d->policy->retry_given = true;
    if (lua_isboolean(d->L, at)) {
        if (!lua_toboolean(d->L, at))
            d->policy->retry.times = 0;
        return;
    }
    declare_must_be_table(d, "retry", field->name, at,
                          "true or { times = 2, backoff = \"200ms\", within = \"5s\" }");
    fields_read(d, at, "retry.again", again_fields, declare_again_table.count, d->policy);
}

static const struct field retry_fields[] = {
    {.name = "repair",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, repair),
     .form = "2",
     .sentence = "How often the model may mend its arguments, in a row; 2 where nothing is said."},
    {.name = "same_call",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, same_call),
     .form = "3",
     .sentence = "How often the very same call may run in a turn; where nothing is said, by its effects: 3, "
                 "read 5, write 2, destructive 1."},
    {.name = "transient",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, transient),
     .form = "3",
     .sentence =
         "How often a call that failed for a moment only may be tried again; 3 where nothing is said."},
    {.name = "again",
     .kind = FIELD_OWN,
     .read = read_again,
     .form = "true  or  { times = 2, backoff = \"200ms\", within = \"5s\" }",
     .type = "boolean|toolgate.Again",
     .sentence =
         "toolgate tries it again itself: only where that does no harm (idempotent), or where it surely "
         "was not reached."},
};

const struct field_table declare_retry_table = {.of = "retry",
                                                .type = "toolgate.Retry",
                                                .sentence = "How often the model may try again.",
                                                FIELD_TABLE(retry_fields)};

void declare_retry(struct declaration *d, const struct field *field, int at)
{
    declare_must_be_table(d, NULL, field->name, at, "{ repair = 2, same_call = 3 }");
    fields_read(d, at, field->name, retry_fields, declare_retry_table.count, d->policy);
}

/* ---- loop ----------------------------------------------------------------------------- */

/* Milliseconds are no unit of the word duration, which is for what policies compute with. */
static double milliseconds(struct declaration *d, int at)
{
    const char *text = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && strcmp(end, "ms") == 0 ? (double)n : -1;
}

uint32_t declare_ms(struct declaration *d, const char *parent, const struct field *field, int at,
                    uint32_t most_s, const char *expected)
{
    double ms = milliseconds(d, at);
    bool fits = lua_type(d->L, at) == LUA_TNUMBER || lua_type(d->L, at) == LUA_TSTRING;
    if (fits && ms < 0) {
        lua_pushcfunction(d->L, word_duration);
        lua_pushvalue(d->L, at);
        ms = lua_pcall(d->L, 1, 1, 0) == 0 ? lua_tonumber(d->L, -1) * 1000 : 0;
    }
    if (!(ms >= 1 && ms <= 1000.0 * most_s))
        fields_wrong(d, parent, field->name, at, expected);
    lua_settop(d->L, at);
    return (uint32_t)(ms + 0.5);
}

static void read_every(struct declaration *d, const struct field *field, int at)
{
    d->policy->poll_every_ms =
        declare_ms(d, "loop.poll", field, at, POLICY_PACE_MAX_S, "\"5s\", \"PT5S\" or seconds, up to a day");
}

static const struct field poll_fields[] = {
    {.name = "max",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, poll_max),
     .least = 1,
     .sentence = "How often it may be asked; 20 where nothing is said."},
    {.name = "every",
     .kind = FIELD_OWN,
     .read = read_every,
     .form = "\"5s\"",
     .type = "string|number",
     .sentence = "The pause between two of the same call; one that comes sooner is told how long to wait."},
};

const struct field_table declare_poll_table = {.of = "loop.poll",
                                               .type = "toolgate.Poll",
                                               .sentence = "A tool that is meant to be asked again.",
                                               FIELD_TABLE(poll_fields)};

/* poll = true, or poll = { every = "5s", max = 20 } */
static void read_poll(struct declaration *d, const struct field *field, int at)
{
    d->policy->polls = true;
    if (lua_isboolean(d->L, at)) {
        d->policy->polls = lua_toboolean(d->L, at);
        return;
    }
    declare_must_be_table(d, "loop", field->name, at, "true or { every = \"5s\", max = 20 }");
    fields_read(d, at, "loop.poll", poll_fields, declare_poll_table.count, d->policy);
}

static const struct field loop_fields[] = {
    {.name = "repeats",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, repeats),
     .least = 2, /* the first is no repetition */
     .form = "3",
     .sentence =
         "The identical call in a row, with an identical result, that is refused; 3 where nothing is said."},
    {.name = "halt",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, halt),
     .least = 2,
     .form = "5",
     .sentence = "And the one that ends the run; 5 where nothing is said."},
    {.name = "across_turns",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, across_turns),
     .least = 2,
     .form = "5",
     .sentence = "What goes on turn after turn ends here; 5 where nothing is said."},
    {.name = "volatile",
     .kind = FIELD_TEXTS,
     .offset = offsetof(struct policy, volatiles),
     .sentence = "Arguments that don't make a call a different one."},
    {.name = "poll",
     .kind = FIELD_OWN,
     .read = read_poll,
     .form = "true  or  { every = \"5s\", max = 20 }",
     .type = "boolean|toolgate.Poll",
     .sentence = "The tool is meant to be asked again until something has changed."},
};

const struct field_table declare_loop_table = {.of = "loop",
                                               .type = "toolgate.Loop",
                                               .sentence = "What counts as going round in circles.",
                                               FIELD_TABLE(loop_fields)};

void declare_loop(struct declaration *d, const struct field *field, int at)
{
    declare_must_be_table(d, NULL, field->name, at, "{ repeats = 3 }");
    fields_read(d, at, field->name, loop_fields, declare_loop_table.count, d->policy);
}

/* ---- limits ------------------------------------------------------------------------- */

const struct policy_limits policy_limits_unset = {
    .calls_per_turn = POLICY_UNSET,
    .calls_per_session = POLICY_UNSET,
    .seconds_per_turn = POLICY_UNSET,
    .cost_per_turn = POLICY_COST_UNSET,
    .cost_per_session = POLICY_COST_UNSET,
};

/* false lifts what the configuration says of every tool. */
static bool is_lifted(struct declaration *d, int at)
{
    return lua_isboolean(d->L, at) && !lua_toboolean(d->L, at);
}

static void read_calls(struct declaration *d, const struct field *field, int at)
{
    double n = lua_type(d->L, at) == LUA_TNUMBER ? lua_tonumber(d->L, at) : 0;
    if (is_lifted(d, at))
        n = 0;
    else if (!(n >= 1 && n == floor(n) && n <= 1e9))
        fields_wrong(d, "limits", field->name, at, "a whole number from 1, or false for no limit");
    *(uint32_t *)((char *)d->policy + field->offset) = (uint32_t)n;
}

static uint64_t read_money(struct declaration *d, const char *parent, const struct field *field, int at,
                           double least, const char *expected)
{
    double n = lua_type(d->L, at) == LUA_TNUMBER ? lua_tonumber(d->L, at) : -1;
    if (!(n >= least && n <= POLICY_COST_MAX))
        fields_wrong(d, parent, field->name, at, expected);
    return (uint64_t)llround(n * POLICY_COST_UNIT);
}

static void read_cost_limit(struct declaration *d, const struct field *field, int at)
{
    uint64_t *into = (uint64_t *)((char *)d->policy + field->offset);
    *into = 0;
    if (!is_lifted(d, at))
        *into = read_money(d, "limits", field, at, 1.0 / POLICY_COST_UNIT,
                           "a number from 0.000001 to 100000000, or false for no limit");
}

#define LIMIT(member, reader, what)                                                                          \
    {                                                                                                        \
        .name = #member, .kind = FIELD_OWN, .read = (reader),                                                \
        .offset = offsetof(struct policy, limits.member), .form = "10", .type = "number|false",              \
        .sentence = (what)                                                                                   \
    }
static const struct field limits_fields[] = {
    LIMIT(calls_per_turn, read_calls, "Calls of this tool in one turn."),
    LIMIT(calls_per_session, read_calls, "Calls of this tool in one session."),
    LIMIT(seconds_per_turn, read_calls,
          "Seconds from its first call of a turn on, after which it is refused."),
    LIMIT(cost_per_turn, read_cost_limit, "What its calls of one turn may cost together."),
    LIMIT(cost_per_session, read_cost_limit, "What its calls of one session may cost together."),
};
#undef LIMIT

const struct field_table declare_limits_table = {
    .of = "limits",
    .type = "toolgate.Limits",
    .sentence = "How much of this tool may be used up; false lifts a limit of the configuration's defaults.",
    FIELD_TABLE(limits_fields)};

void declare_limits(struct declaration *d, const struct field *field, int at)
{
    declare_must_be_table(d, NULL, field->name, at, "{ calls_per_turn = 10 }");
    fields_read(d, at, field->name, limits_fields, declare_limits_table.count, d->policy);
}

void declare_cost(struct declaration *d, const struct field *field, int at)
{
    d->policy->cost = read_money(d, NULL, field, at, 0, "a number from 0 to 100000000");
}

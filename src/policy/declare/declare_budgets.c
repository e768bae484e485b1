/* How often, how much and how long a tool may be called: retry, loop, limits, rate, cost. */
#include "policy/declare/declare_internal.h"

#include <math.h>
#include <stdlib.h>

#define AT(member) .offset = offsetof(struct policy, member)

#define SHORT "a duration as \"200ms\", \"5s\" or in seconds, from a millisecond to a minute"

static const struct field again_fields[] = {
    {"times", FIELD_WHOLE, "2", "integer", "How many more tries after the first, at most 5. Default 2.",
     AT(retry.times), RANGE(1, POLICY_RETRY_TIMES_MAX, "a whole number from 1 to 5")},
    {"backoff", FIELD_DURATION, "\"200ms\"", "string|number",
     "The pause before the second try; it doubles with each try and varies at random by a quarter. Default "
     "200 ms.",
     AT(retry.backoff_ms), RANGE(0, POLICY_RETRY_WITHIN_MAX_S, SHORT)},
    {"within", FIELD_DURATION, "\"5s\"", "string|number",
     "No further try begins later than this after the first one began; at most a minute. Default 5 s.",
     AT(retry.within_ms), RANGE(0, POLICY_RETRY_WITHIN_MAX_S, SHORT)},
};

const struct field_table declare_again_table = FIELD_TABLE(
    "retry.again", "toolgate.Again",
    "How often toolgate itself repeats a call after a transient failure, before the model sees it.",
    again_fields);

/* again = true, or again = { times = 2, backoff = "200ms", within = "5s" } */
static void read_again(struct declaration *d, const struct field *field, int at)
{
    d->policy->retry =
        (struct policy_retry){POLICY_RETRY_TIMES, POLICY_RETRY_BACKOFF_MS, POLICY_RETRY_WITHIN_MS};
    d->policy->retry_given = true;
    if (field_is_false(d, at))
        d->policy->retry.times = 0;
    if (lua_isboolean(d->L, at))
        return;
    field_require_table(d, field->name, at, "true or { times = 2, backoff = \"200ms\", within = \"5s\" }");
    field_read_table(d, at, "retry.again", &declare_again_table, d->policy);
}

static const struct field retry_fields[] = {
    {"repair", FIELD_COUNT, "2", NULL, "How often in a row the model may correct its arguments. Default 2.",
     AT(repair)},
    {"same_call", FIELD_COUNT, "3", NULL,
     "How often the same call may run in a turn. Default by effects: 3, read 5, write 2, destructive 1.",
     AT(same_call)},
    {"transient", FIELD_COUNT, "3", NULL,
     "How often the model may repeat a call that failed with a transient error. Default 3.", AT(transient)},
    {"again", FIELD_CUSTOM, "true  or  { times = 2, backoff = \"200ms\", within = \"5s\" }",
     "boolean|toolgate.Again",
     "toolgate repeats a failed call itself, if the tool is idempotent or the call surely did not reach it.",
     READ(read_again)},
};

const struct field_table declare_retry_table =
    FIELD_TABLE("retry", "toolgate.Retry", "How often a call may be tried again.", retry_fields);

static const struct field poll_fields[] = {
    {"max", FIELD_COUNT, NULL, NULL, "How often the same call may be made. Default 20.", AT(poll_max),
     LEAST(1)},
    {"every", FIELD_DURATION, "\"5s\"", "string|number",
     "The pause between two of the same call; a call that comes sooner is answered with the time to wait.",
     AT(poll_every_ms), RANGE(0, POLICY_PACE_MAX_S, "\"5s\", \"PT5S\" or seconds, up to a day")},
};

const struct field_table declare_poll_table =
    FIELD_TABLE("loop.poll", "toolgate.Poll", "For a tool that agents poll.", poll_fields);

/* poll = true, or poll = { every = "5s", max = 20 } */
static void read_poll(struct declaration *d, const struct field *field, int at)
{
    d->policy->polls = !field_is_false(d, at);
    if (lua_isboolean(d->L, at))
        return;
    field_require_table(d, field->name, at, "true or { every = \"5s\", max = 20 }");
    field_read_table(d, at, "loop.poll", &declare_poll_table, d->policy);
}

static const struct field loop_fields[] = {
    {"repeats", FIELD_COUNT, "3", NULL,
     "toolgate refuses the n-th identical call in a row with an identical result. Default 3.", AT(repeats),
     LEAST(2)},
    {"halt", FIELD_COUNT, "5", NULL, "The n-th such call ends the run. Default 5.", AT(halt), LEAST(2)},
    {"across_turns", FIELD_COUNT, "5", NULL,
     "The run ends when the same call is repeated in this many turns. Default 5.", AT(across_turns),
     LEAST(2)},
    {"volatile", FIELD_STRINGS, NULL, NULL, "Arguments that do not make a call a different one.",
     AT(volatiles)},
    {"volatile_result", FIELD_STRINGS, "{ \"elapsed_ms\", \"meta.request_id\" }", NULL,
     "Fields of results that do not make a result a different one: a path as in gives_ids, or the name of a "
     "field anywhere.",
     AT(volatile_results)},
    {"compare", FIELD_CHOICE, NULL, NULL,
     "What makes calls identical: arguments and result, or the arguments alone. Default result; for a tool "
     "that writes always arguments.",
     AT(compare), CHOICES("result arguments", COMPARE_RESULT)},
    {"same_failure", FIELD_CHOICE, NULL, NULL,
     "From the third failure in a row with the same error, whatever the arguments, a note; or the sixth is "
     "refused. Default note.",
     AT(same_failure), CHOICES("note refuse", SAME_FAILURE_NOTE)},
    {"poll", FIELD_CUSTOM, "true  or  { every = \"5s\", max = 20 }", "boolean|toolgate.Poll",
     "Agents poll the tool until something has changed.", READ(read_poll)},
};

const struct field_table declare_loop_table =
    FIELD_TABLE("loop", "toolgate.Loop", "What counts as a loop.", loop_fields);

const struct policy_limits policy_limits_unset = {
    .calls_per_turn = POLICY_UNSET,
    .calls_per_session = POLICY_UNSET,
    .seconds_per_turn = POLICY_UNSET,
    .cost_per_turn = POLICY_COST_UNSET,
    .cost_per_session = POLICY_COST_UNSET,
};

static uint64_t read_cost(struct declaration *d, const struct field *field, int at, double least,
                          const char *expected)
{
    return (uint64_t)llround(field_number(d, field, at, least, POLICY_COST_MAX, expected) * POLICY_COST_UNIT);
}

static void read_cost_limit(struct declaration *d, const struct field *field, int at)
{
    static const char expected[] = "a number from 0.000001 to 100000000, or false for no limit";
    *FIELD_INTO(d, field, uint64_t) =
        field_is_false(d, at) ? 0 : read_cost(d, field, at, 1.0 / POLICY_COST_UNIT, expected);
}

#define COUNT_LIMIT(member, sentence)                                                                        \
    {                                                                                                        \
#member, FIELD_LIMIT, "10", "number|false", sentence, AT(limits.member),                             \
            RANGE(1, 1000000000u, "a whole number from 1, or false for no limit")                            \
    }
#define COST_LIMIT(member, sentence)                                                                         \
    {                                                                                                        \
#member, FIELD_CUSTOM, "10", "number|false", sentence, AT(limits.member), READ(read_cost_limit)      \
    }
static const struct field limits_fields[] = {
    COUNT_LIMIT(calls_per_turn, "Calls of this tool in one turn."),
    COUNT_LIMIT(calls_per_session, "Calls of this tool in one session."),
    COUNT_LIMIT(seconds_per_turn, "Seconds after its first call of a turn; later calls are refused."),
    COST_LIMIT(cost_per_turn, "Total cost of its calls in one turn."),
    COST_LIMIT(cost_per_session, "Total cost of its calls in one session."),
};

const struct field_table declare_limits_table = FIELD_TABLE(
    "limits", "toolgate.Limits",
    "How much of this tool may be used; false lifts a limit of the configuration's defaults.", limits_fields);

static const struct field rate_fields[] = {
    {"by", FIELD_CHOICE, NULL, NULL,
     "Whose calls count together: of one session, of one user, of all. Default user.", AT(rate_by),
     CHOICES("session user tool", RATE_BY_SESSION)},
};

const struct field_table declare_rate_table =
    FIELD_TABLE("rate", "toolgate.Rate", "How many calls of this tool may be made in a span of time.",
                rate_fields, ITEMS("string"));

/* "10/minute" */
static struct policy_rate read_one_rate(struct declaration *d, const struct field *field, int at)
{
    static const struct {
        const char *name;
        uint32_t seconds;
    } units[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}};
    const char *text = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    char *end;
    unsigned long count = strtoul(text, &end, 10);
    bool counts = *text >= '1' && *text <= '9' && *end == '/' && count <= POLICY_RATE_COUNT_MAX;
    for (size_t i = 0; counts && i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end + 1, units[i].name) == 0)
            return (struct policy_rate){(uint32_t)count, units[i].seconds};
    field_mismatch(d, field->name, at,
                   "\"COUNT/UNIT\", a count from 1 to 1000000 and one of second, minute, hour, day");
}

/* rate = "10/minute", or rate = { "10/minute", "100/hour", by = "user" } */
void declare_rate(struct declaration *d, const struct field *field, int at)
{
    struct policy *p = d->policy;
    p->rate_by = RATE_BY_USER;
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 1;
    if (!lua_istable(d->L, at)) {
        p->rates[p->rate_count++] = read_one_rate(d, field, at);
        return;
    }
    field_require_table(d, field->name, at, "\"10/minute\" or { \"10/minute\", by = \"user\" }");
    field_read_named(d, at, field->name, &declare_rate_table, count, d->out);
    if (!count || count > POLICY_RATES_MAX)
        field_error(d, field->name, "'rate': expected 1 to %u rates, got %zu", POLICY_RATES_MAX, count);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(d->L, at, (int)i + 1);
        p->rates[p->rate_count++] = read_one_rate(d, field, lua_gettop(d->L));
        lua_pop(d->L, 1);
    }
}

void declare_cost(struct declaration *d, const struct field *field, int at)
{
    d->policy->cost = read_cost(d, field, at, 0, "a number from 0 to 100000000");
}

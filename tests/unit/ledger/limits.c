/* Limits of a tool and of a session, by calls, cost and time; and polling intervals. */
#include <stdio.h>

#include "ledger/ledger_case.h"

#include "json/write.h"

#define UNIT ((uint64_t)LEDGER_COST_UNIT)

static void settle_at(struct ledger_case *t, const char *tool, const char *args, enum ledger_class class,
                      const uint64_t *cost)
{
    struct ledger_settle settle = {.place = t->place,
                                   .admission = t->admissions,
                                   .tool = str_of(tool),
                                   .arguments = case_hash(args),
                                   .class = class,
                                   .label = STR_LIT("ok"),
                                   .result = case_hash(args),
                                   .limits = &t->limits,
                                   .cost_told = cost != NULL,
                                   .cost = cost ? *cost : 0};
    ledger_settle(t->ledger, &settle, t->arena, &t->settled, NULL, NULL);
    assert_int_equal(t->settled.error, OK);
}

static const char *view_text(struct ledger_case *t)
{
    struct ledger_view view;
    struct buf text = buf_in(t->arena);
    ledger_view(t->ledger, t->place.session, t->arena, &view, NULL, NULL);
    assert_int_equal(view.error, OK);
    json_write(&text, json_get_text(&view.session, "budgets"));
    buf_byte(&text, '\0');
    return text.at;
}

/* ---- scope of a limit ---- */

static void a_tools_limit_counts_its_own_calls(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.calls_per_turn = 2;
    case_runs(t, "search", "{1}", "1");
    case_runs(t, "search", "{2}", "2");
    assert_string_equal(case_asks(t, "search", "{3}"), "refuse calls_per_turn");
    assert_int_equal(t->answer.used, 2);
    assert_false(t->answer.of_session);
    case_runs(t, "fetch", "{3}", "3"); /* another tool with such a limit has its own count */
    case_turn(t, 2);
    case_runs(t, "search", "{3}", "3");
}

static void a_tools_session_limit_spans_turns(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.calls_per_session = 2;
    case_runs(t, "search", "{1}", "1");
    case_turn(t, 2);
    case_runs(t, "search", "{1}", "1");
    case_turn(t, 3);
    assert_string_equal(case_asks(t, "search", "{1}"), "refuse calls_per_session");
    assert_int_equal(t->answer.used, 2);
}

static void a_sessions_limit_counts_all_tools_together(void **state)
{
    struct ledger_case *t = *state;
    t->limits.session.calls_per_turn = 2;
    case_runs(t, "search", "{1}", "1");
    case_runs(t, "fetch", "{2}", "2");
    assert_string_equal(case_asks(t, "list", "{3}"), "refuse calls_per_turn");
    assert_true(t->answer.of_session);
    assert_int_equal(t->answer.used, 2);
}

static void the_tools_limit_has_precedence_over_the_sessions(void **state)
{
    struct ledger_case *t = *state;
    t->limits.session.calls_per_turn = 1;
    t->limits.tool.calls_per_turn = 1;
    case_runs(t, "search", "{1}", "1");
    assert_string_equal(case_asks(t, "search", "{2}"), "refuse calls_per_turn");
    assert_false(t->answer.of_session);
    assert_string_equal(case_asks(t, "fetch", "{2}"), "refuse calls_per_turn");
    assert_true(t->answer.of_session);
}

static void refused_and_released_calls_do_not_count(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.calls_per_turn = 1;
    t->limits.tool.cost_per_turn = 3 * UNIT;
    t->limits.costs = true;
    t->limits.cost = 3 * UNIT;
    case_invalid(t, "search", "{0}");
    assert_string_equal(case_asks(t, "search", "{1}"), "run");
    settle_at(t, "search", "{1}", LEDGER_CLASS_RELEASED, NULL);
    assert_string_equal(case_asks(t, "search", "{2}"), "run");
    settle_at(t, "search", "{2}", LEDGER_CLASS_REFUSED, NULL);
    case_runs(t, "search", "{3}", "3");
    assert_string_equal(case_asks(t, "search", "{4}"), "refuse calls_per_turn");
}

static void time_of_a_tool_begins_with_its_first_call(void **state)
{
    struct ledger_case *t = *state;
    struct ledger_limits plain = t->limits;
    case_runs(t, "other", "{0}", "0");
    case_now += 60000;
    t->limits.tool.seconds_per_turn = 30;
    case_runs(t, "search", "{1}", "1");
    case_now += 29000;
    case_runs(t, "search", "{2}", "2");
    case_now += 1000;
    assert_string_equal(case_asks(t, "search", "{3}"), "refuse seconds_per_turn");
    assert_int_equal(t->answer.used, 30);
    case_turn(t, 2);
    case_runs(t, "search", "{3}", "3");
    t->limits = plain;
}

static void without_a_session_a_limit_only_advises(void **state)
{
    struct ledger_case *t = *state;
    t->place.anonymous = true;
    t->limits.tool.calls_per_turn = 1;
    case_runs(t, "search", "{1}", "1");
    assert_string_equal(case_asks(t, "search", "{2}"), "run");
    assert_true(str_is(t->answer.would, "calls_per_turn"));
    assert_int_equal(t->answer.used, 1);
}

/* ---- cost ---- */

static void parallel_calls_cannot_overspend_together(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.cost_per_session = UNIT;
    t->limits.costs = true;
    t->limits.cost = 300000; /* 0.3: three fit into 1, before any of them has answered */
    assert_string_equal(case_asks(t, "search", "{1}"), "run");
    assert_string_equal(case_asks(t, "search", "{2}"), "run");
    assert_string_equal(case_asks(t, "search", "{3}"), "run");
    assert_string_equal(case_asks(t, "search", "{4}"), "refuse cost_per_session");
    assert_int_equal(t->answer.used, 900000);
}

static void the_actual_cost_replaces_the_declared_one(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.cost_per_turn = UNIT;
    t->limits.costs = true;
    t->limits.cost = UNIT;
    assert_string_equal(case_asks(t, "search", "{1}"), "run");
    settle_at(t, "search", "{1}", LEDGER_CLASS_OK, &(uint64_t){0});
    assert_string_equal(case_asks(t, "search", "{2}"), "run");
    settle_at(t, "search", "{2}", LEDGER_CLASS_OK, &(uint64_t){1});
    settle_at(t, "search", "{2}", LEDGER_CLASS_OK, &(uint64_t){1}); /* counts once */
    assert_string_equal(case_asks(t, "search", "{3}"), "refuse cost_per_turn");
    assert_int_equal(t->answer.used, 1);
}

static void a_tool_without_cost_passes_when_the_cost_limit_is_spent(void **state)
{
    struct ledger_case *t = *state;
    t->limits.session.cost_per_session = UNIT;
    struct ledger_limits free = t->limits;
    t->limits.costs = true;
    t->limits.cost = UNIT;
    case_runs(t, "search", "{1}", "1");
    assert_string_equal(case_asks(t, "search", "{2}"), "refuse cost_per_session");
    assert_true(t->answer.of_session);
    t->limits = free;
    case_runs(t, "list", "{1}", "1");
}

/* The declared cost may be unknown or wrong. */
static void a_cost_limit_may_be_spent_exactly(void **state)
{
    struct ledger_case *t = *state;
    t->limits.costs = true;
    t->limits.tool.cost_per_session = UNIT;
    assert_string_equal(case_asks(t, "search", "{1}"), "run");
    settle_at(t, "search", "{1}", LEDGER_CLASS_OK, &(uint64_t){UNIT - 1});
    assert_string_equal(case_asks(t, "search", "{2}"), "run");
    settle_at(t, "search", "{2}", LEDGER_CLASS_OK, &(uint64_t){1});
    assert_string_equal(case_asks(t, "search", "{3}"), "refuse cost_per_session");
    case_turn(t, 2);
    assert_string_equal(case_asks(t, "search", "{3}"), "refuse cost_per_session");
}

static void a_call_that_did_not_run_counts_in_no_limit(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.calls_per_session = 1;
    for (int i = 0; i < 3; i++) { /* the upstream is down and gives a retry time */
        assert_string_equal(case_asks(t, "search", "{1}"), "run");
        struct ledger_settle settle = {.place = t->place,
                                       .admission = t->admissions,
                                       .tool = STR_LIT("search"),
                                       .arguments = case_hash("{1}"),
                                       .class = LEDGER_CLASS_TRANSIENT,
                                       .label = STR_LIT("unavailable"),
                                       .limits = &t->limits,
                                       .not_begun = true};
        ledger_settle(t->ledger, &settle, t->arena, &t->settled, NULL, NULL);
    }
    case_runs(t, "search", "{2}", "2");
    assert_string_equal(case_asks(t, "search", "{3}"), "refuse calls_per_session");
}

static void costs_beyond_32_bits_are_counted(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.cost_per_session = 100000000 * UNIT;
    t->limits.costs = true;
    t->limits.cost = 60000000 * UNIT;
    case_runs(t, "search", "{1}", "1");
    assert_string_equal(case_asks(t, "search", "{2}"), "refuse cost_per_session");
    assert_int_equal(t->answer.used, 60000000 * UNIT);
}

static void a_view_has_what_is_used_up(void **state)
{
    struct ledger_case *t = *state;
    t->limits.tool.calls_per_turn = 5;
    t->limits.cost = 250000;
    t->limits.costs = true;
    case_runs(t, "search", "{1}", "1");
    case_turn(t, 2);
    case_runs(t, "search", "{1}", "1");
    const char *seen = view_text(t);
    assert_non_null(strstr(seen, "\"cost_in_turn\":0.25,\"cost\":0.5,"));
    assert_non_null(strstr(seen, "\"tools\":[{\"tool\":\"search\",\"calls_in_turn\":1,\"calls\":2,"
                                 "\"cost_in_turn\":0.25,\"cost\":0.5}]"));
}

/* ---- polling interval ---- */

static void an_early_poll_must_wait(void **state)
{
    struct ledger_case *t = *state;
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    case_runs(t, "job_status", "{1}", "running");
    case_now += 2000;
    assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
    assert_int_equal(t->answer.used, 3000);
    assert_int_equal(t->answer.no_progress, 0);   /* an early poll costs nothing */
    case_runs(t, "job_status", "{2}", "running"); /* another job has its own interval */
    case_now += 3000;
    case_runs(t, "job_status", "{1}", "running");
}

/* Found from outside: the pause lasted until the clock had come back to where it was. */
static void a_pause_ends_also_if_the_clock_was_set_back(void **state)
{
    struct ledger_case *t = *state;
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    case_runs(t, "job_status", "{1}", "running");
    case_now += 1000 - 3600000;
    assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
    case_now += 5000;
    case_runs(t, "job_status", "{1}", "running");
}

static void early_polls_do_not_count(void **state)
{
    struct ledger_case *t = *state;
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    t->limits.poll_max = 4;
    case_runs(t, "job_status", "{1}", "running");
    for (int i = 1; i < 4; i++) {
        assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
        assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
        case_now += 5000;
        case_runs(t, "job_status", "{1}", "running");
    }
    assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse poll_budget");
}

static void repeated_early_polls_halt_and_a_later_poll_passes(void **state)
{
    struct ledger_case *t = *state;
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    case_runs(t, "job_status", "{1}", "running");
    for (int i = 1; i < 5; i++)
        assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
    assert_string_equal(case_asks(t, "job_status", "{1}"), "halt too_soon");
    case_now += 5000;
    case_runs(t, "job_status", "{1}", "done");
    assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
}

static void a_poll_in_time_resets_the_count_of_early_polls(void **state)
{
    struct ledger_case *t = *state;
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    t->place.step = STR_LIT("m1");
    case_runs(t, "job_status", "{1}", "running");
    for (int i = 1; i < 5; i++) {
        char step[16];
        snprintf(step, sizeof(step), "m%d", 1 + i);
        t->place.step = str_of(step);
        assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
    }
    case_now += 5000;
    t->place.step = STR_LIT("m9");
    case_runs(t, "job_status", "{1}", "running");
    assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon"); /* in the same step */
}

static void a_sibling_of_an_early_poll_interrupts_no_row(void **state)
{
    struct ledger_case *t = *state;
    t->limits.effects = LEDGER_EFFECTS_READ;
    t->limits.poll_every_ms = 5000;
    t->place.step = STR_LIT("m1");
    case_runs(t, "get", "{1}", "r");
    t->place.step = STR_LIT("m2");
    for (int i = 0; i < 2; i++) { /* before and after it */
        case_runs(t, "other", i ? "{2}" : "{1}", "r");
        if (i == 0)
            assert_string_equal(case_asks(t, "get", "{1}"), "refuse too_soon");
    }
    t->place.step = STR_LIT("m3");
    assert_string_equal(case_asks(t, "get", "{1}"), "refuse too_soon");
    assert_int_equal(t->answer.repeats, 1);
}

static void a_released_poll_starts_no_interval(void **state)
{
    struct ledger_case *t = *state;
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    assert_string_equal(case_asks(t, "job_status", "{1}"), "run");
    settle_at(t, "job_status", "{1}", LEDGER_CLASS_RELEASED, NULL);
    assert_string_equal(case_asks(t, "job_status", "{1}"), "run");
}

/* ---- peek ---- */

static void a_peek_returns_goal_and_progress(void **state)
{
    struct ledger_case *t = *state;
    struct ledger_peek peek;
    struct ledger_turned turned;
    ledger_peek(t->ledger, &(struct ledger_look){.place = t->place}, t->arena, &peek, NULL, NULL);
    assert_int_equal(peek.error, OK);
    assert_int_equal(peek.no_progress, 0);
    assert_int_equal(peek.goal.len, 0);
    ledger_turn(
        t->ledger,
        &(struct ledger_turn){.session = t->place.session, .turn = 1, .goal = STR_LIT("close my tickets")},
        t->arena, &turned, NULL, NULL);
    case_invalid(t, "search", "{1}");
    case_invalid(t, "fetch", "{2}");
    ledger_peek(t->ledger, &(struct ledger_look){.place = t->place}, t->arena, &peek, NULL, NULL);
    assert_int_equal(peek.turn, 1);
    assert_int_equal(peek.no_progress, 2);
    assert_true(str_is(peek.goal, "close my tickets"));
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_tools_limit_counts_its_own_calls),
        STORY(a_tools_session_limit_spans_turns),
        STORY(a_sessions_limit_counts_all_tools_together),
        STORY(the_tools_limit_has_precedence_over_the_sessions),
        STORY(refused_and_released_calls_do_not_count),
        STORY(time_of_a_tool_begins_with_its_first_call),
        STORY(without_a_session_a_limit_only_advises),
        STORY(parallel_calls_cannot_overspend_together),
        STORY(the_actual_cost_replaces_the_declared_one),
        STORY(a_tool_without_cost_passes_when_the_cost_limit_is_spent),
        STORY(a_cost_limit_may_be_spent_exactly),
        STORY(a_call_that_did_not_run_counts_in_no_limit),
        STORY(costs_beyond_32_bits_are_counted),
        STORY(a_view_has_what_is_used_up),
        STORY(an_early_poll_must_wait),
        STORY(a_pause_ends_also_if_the_clock_was_set_back),
        STORY(early_polls_do_not_count),
        STORY(repeated_early_polls_halt_and_a_later_poll_passes),
        STORY(a_poll_in_time_resets_the_count_of_early_polls),
        STORY(a_sibling_of_an_early_poll_interrupts_no_row),
        STORY(a_released_poll_starts_no_interval),
        STORY(a_peek_returns_goal_and_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

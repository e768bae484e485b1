/* Repair chains: each ends with one outcome, and the journal has one entry for it. */
#include <stdio.h>

#include "ledger/ledger_case.h"

#include "base/log.h"

static void assert_chain(struct str chain, uint32_t retries, const char *expected, uint32_t expected_retries)
{
    if (!str_is(chain, expected) || retries != expected_retries)
        fail_msg("expected %s after %u retries, got " STR_FMT " after %u", expected, expected_retries,
                 STR_ARG(chain), retries);
}

static void assert_attempt(const struct ledger_case *t, uint32_t attempt, uint32_t left)
{
    assert_int_equal(t->answer.attempt, attempt);
    assert_int_equal(t->answer.attempts_left, left);
}

static void a_valid_first_call_is_no_retry(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "create", "{1}", "made");
    assert_attempt(t, 1, 2);
    assert_chain(t->settled.chain, t->settled.chain_retries, "no_retry", 0);
}

static void two_repairs_and_a_success(void **state)
{
    struct ledger_case *t = *state;
    assert_string_equal(case_invalid(t, "create", "{1}"), "repair");
    assert_attempt(t, 1, 2);
    assert_int_equal(t->answer.chain.len, 0);
    assert_string_equal(case_invalid(t, "create", "{2}"), "repair");
    assert_attempt(t, 2, 1);
    case_runs(t, "create", "{3}", "made");
    assert_attempt(t, 3, 0);
    assert_chain(t->settled.chain, t->settled.chain_retries, "success", 2);
    assert_string_equal(case_invalid(t, "create", "{4}"), "repair");
    assert_attempt(t, 1, 2);
}

static void the_first_call_of_a_new_turn_gives_up_an_open_chain(void **state)
{
    struct ledger_case *t = *state;
    case_invalid(t, "create", "{1}");
    case_turn(t, 2);
    case_runs(t, "create", "{2}", "made");
    assert_int_equal(t->answer.gave_up, 1);
    assert_chain(t->settled.chain, t->settled.chain_retries, "no_retry", 0);
}

static void errors_and_failures_leave_the_chain_open(void **state)
{
    struct ledger_case *t = *state;
    case_invalid(t, "create", "{1}");
    assert_string_equal(case_asks(t, "create", "{2}"), "run");
    case_settle_as(t, "create", "{2}", t->admissions, LEDGER_CLASS_TOOL_ERROR, "no such project");
    assert_int_equal(t->settled.chain.len, 0);
    assert_string_equal(case_asks(t, "create", "{3}"), "run");
    case_settle_as(t, "create", "{3}", t->admissions, LEDGER_CLASS_TRANSIENT, NULL);
    case_runs(t, "create", "{3}", "made");
    assert_chain(t->settled.chain, t->settled.chain_retries, "success", 1);
}

static void each_tool_has_its_own_chain(void **state)
{
    struct ledger_case *t = *state;
    case_invalid(t, "create", "{1}");
    case_invalid(t, "update", "{1}");
    assert_attempt(t, 1, 2);
    case_runs(t, "update", "{2}", "done");
    assert_chain(t->settled.chain, t->settled.chain_retries, "success", 1);
    case_invalid(t, "create", "{2}");
    assert_attempt(t, 2, 1);
}

static void each_agent_repairs_its_own(void **state)
{
    struct ledger_case *t = *state;
    case_invalid(t, "create", "{1}");
    case_invalid(t, "create", "{2}");
    t->place.agent = 77;
    assert_string_equal(case_invalid(t, "create", "{3}"), "repair");
    assert_attempt(t, 1, 2);
    case_runs(t, "create", "{4}", "made");
    assert_chain(t->settled.chain, t->settled.chain_retries, "success", 1);
    t->place.agent = 0;
    assert_string_equal(case_invalid(t, "create", "{5}"), "refuse retry_budget_exceeded");
    t->place.agent = 77;
    case_runs(t, "create", "{6}", "made"); /* the main agent's chain is still used up */
    t->place.agent = 0;
    assert_string_equal(case_invalid(t, "create", "{7}"), "refuse retry_budget_exceeded");
}

static void siblings_of_a_step_are_no_retries(void **state)
{
    struct ledger_case *t = *state;
    t->place.step = STR_LIT("m1");
    case_invalid(t, "create", "{1}");
    case_invalid(t, "create", "{2}");
    assert_attempt(t, 1, 2);
    case_runs(t, "create", "{3}", "made"); /* admitted before that feedback: it ends no chain */
    assert_chain(t->settled.chain, t->settled.chain_retries, "no_retry", 0);
    t->place.step = STR_LIT("m2");
    case_runs(t, "create", "{4}", "made");
    assert_chain(t->settled.chain, t->settled.chain_retries, "success", 1);
}

static void a_thousand_open_chains_stay_bounded(void **state)
{
    struct ledger_case *t = *state;
    uint32_t gave_up = 0;
    for (int i = 0; i < 300; i++) {
        char tool[96];
        snprintf(tool, sizeof(tool), "create_something_with_a_name_that_goes_on_for_quite_a_while_%d", i);
        assert_string_equal(case_invalid(t, tool, "{1}"), "repair");
        gave_up += t->answer.gave_up;
    }
    assert_true(gave_up > 250);
}

/* ---- turns that begin after an idle time ---- */

static void an_idle_time_begins_a_turn_if_configured(void **state)
{
    struct ledger_case *t = *state;
    case_turn(t, 0);
    t->place.turn_idle_s = 300;
    assert_string_equal(case_invalid(t, "create_task", "{1}"), "repair");
    case_now += 299 * 1000;
    assert_string_equal(case_invalid(t, "create_task", "{2}"), "repair");
    assert_int_equal(t->answer.turn, 0);
    case_now += 300 * 1000;
    assert_string_equal(case_invalid(t, "create_task", "{3}"), "repair");
    assert_int_equal(t->answer.turn, 1);
    assert_int_equal(t->answer.attempt, 1);
    assert_int_equal(t->answer.gave_up, 1);
}

static void a_running_tool_resets_the_idle_time_and_turn_numbers_disable_it(void **state)
{
    struct ledger_case *t = *state;
    case_turn(t, 0);
    t->place.turn_idle_s = 300;
    assert_string_equal(case_asks(t, "find", "{1}"), "run");
    case_now += 1000 * 1000;
    case_settle_as(t, "find", "{1}", t->admissions, LEDGER_CLASS_OK, "found");
    case_now += 10 * 1000;
    assert_string_equal(case_asks(t, "find", "{2}"), "run");
    assert_int_equal(t->answer.turn, 0);
    case_turn(t, 7);
    case_now += 1000 * 1000;
    assert_string_equal(case_asks(t, "find", "{3}"), "run");
    assert_int_equal(t->answer.turn, 7);
}

static void an_idle_time_before_a_numbered_turn_begins_no_further_turn(void **state)
{
    struct ledger_case *t = *state;
    struct ledger_turned turned;
    case_turn(t, 0);
    t->place.turn_idle_s = 300;
    case_runs(t, "find", "{1}", "found");
    case_now += 1000 * 1000;
    ledger_turn(
        t->ledger,
        &(struct ledger_turn){.session = t->place.session, .turn = 0, .goal = STR_LIT("find the other one")},
        t->arena, &turned, NULL, NULL);
    case_now += 1000;
    assert_string_equal(case_asks(t, "find", "{2}"), "run");
    assert_int_equal(t->answer.turn, turned.turn);
    assert_true(str_is(t->answer.goal, "find the other one"));
}

static void no_idle_time_begins_a_turn_by_default(void **state)
{
    struct ledger_case *t = *state;
    case_turn(t, 0);
    assert_string_equal(case_invalid(t, "create_task", "{1}"), "repair");
    case_now += 10000 * 1000;
    assert_string_equal(case_invalid(t, "create_task", "{2}"), "repair");
    assert_int_equal(t->answer.turn, 0);
    assert_int_equal(t->answer.attempt, 2);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_valid_first_call_is_no_retry),
        STORY(two_repairs_and_a_success),
        STORY(the_first_call_of_a_new_turn_gives_up_an_open_chain),
        STORY(errors_and_failures_leave_the_chain_open),
        STORY(each_tool_has_its_own_chain),
        STORY(each_agent_repairs_its_own),
        STORY(siblings_of_a_step_are_no_retries),
        STORY(a_thousand_open_chains_stay_bounded),
        STORY(an_idle_time_begins_a_turn_if_configured),
        STORY(a_running_tool_resets_the_idle_time_and_turn_numbers_disable_it),
        STORY(an_idle_time_before_a_numbered_turn_begins_no_further_turn),
        STORY(no_idle_time_begins_a_turn_by_default),
    };
    log_quiet();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

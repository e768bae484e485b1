/* Loops and cycles: a sequence of calls, and the verdict on each. */
#include <stdio.h>

#include "ledger/ledger_case.h"

static void the_third_identical_call_is_refused_and_the_fifth_halts(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get_order", "{1}", "r");
    assert_false(t->settled.unchanged);
    assert_int_equal(t->settled.repeats, 1);
    case_runs(t, "get_order", "{1}", "r");
    assert_int_equal(t->answer.repeats, 1);
    assert_true(t->settled.unchanged);
    assert_int_equal(t->settled.repeats, 2);
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    assert_int_equal(t->answer.repeats, 2);
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "halt loop");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "halt loop");
}

static void another_admitted_call_ends_the_refusals(void **state)
{
    struct ledger_case *t = *state;
    t->limits.effects = LEDGER_EFFECTS_READ;
    t->limits.same_call = 5;
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{1}", "r");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    case_runs(t, "get_user", "{}", "u");
    case_runs(t, "get_order", "{1}", "r");
    assert_int_equal(t->settled.repeats, 1);
}

static void a_refused_call_does_not_end_the_refusals(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{1}", "r");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    case_admit_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    assert_int_equal(t->answer.says, LEDGER_REFUSE);
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    assert_string_equal(case_invalid(t, "set_order", "{}"), "repair");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "halt loop");
}

static void other_arguments_are_another_call(void **state)
{
    struct ledger_case *t = *state;
    t->limits.effects = LEDGER_EFFECTS_READ;
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{2}", "r");
    case_runs(t, "get_order", "{1}", "r");
}

static void unsettled_calls_are_compared_by_arguments(void **state)
{
    struct ledger_case *t = *state;
    case_admit_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    assert_int_equal(t->answer.code.len, 0);
    case_admit_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    case_admit_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    assert_true(str_is(t->answer.code, "loop"));
    case_admit_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    case_admit_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    assert_int_equal(t->answer.says, LEDGER_HALT);
}

static void an_error_that_repeats_is_a_loop(void **state)
{
    struct ledger_case *t = *state;
    for (int i = 0; i < 2; i++) {
        assert_string_equal(case_asks(t, "pay", "{1}"), "run");
        case_settle_as(t, "pay", "{1}", t->admissions, LEDGER_CLASS_TOOL_ERROR, "no funds");
    }
    assert_int_equal(t->settled.no_progress, 2);
    assert_string_equal(case_asks(t, "pay", "{1}"), "refuse loop");
}

static void a_new_result_resets_the_run(void **state)
{
    struct ledger_case *t = *state;
    static const char *const results[] = {"1%", "2%", "3%", "4%", "5%", "6%", "7%", "8%", "9%", "10%", "11%"};
    for (size_t i = 0; i < 11; i++)
        case_runs(t, "job_status", "{7}", results[i]);
    assert_int_equal(t->settled.repeats, 1);
    assert_int_equal(t->settled.no_progress, 0);
    assert_int_equal(t->answer.spent, 2); /* the first, and this one until its result is known to be new */
}

static void a_run_of_new_results_ends_with_the_poll_budget(void **state)
{
    struct ledger_case *t = *state;
    char result[16];
    t->limits.poll_max = 4;
    for (int i = 0; i < 5; i++) {
        snprintf(result, sizeof(result), "%d%%", i);
        case_runs(t, "job_status", "{7}", result);
    }
    assert_string_equal(case_asks(t, "job_status", "{7}"), "refuse poll_budget");
}

static void a_declared_poll_may_repeat_its_result(void **state)
{
    struct ledger_case *t = *state;
    t->limits.polls = true;
    t->limits.poll_max = 6;
    for (int i = 0; i < 6; i++)
        case_runs(t, "job_status", "{7}", "running");
    assert_string_equal(case_asks(t, "job_status", "{7}"), "refuse poll_budget");
    assert_string_equal(case_asks(t, "job_status", "{7}"), "refuse poll_budget");
    assert_string_equal(case_asks(t, "job_status", "{7}"), "halt poll_budget");
}

static void a_cycle_of_two_is_refused_when_it_would_close_its_third_round(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "a", "{}", "ra");
    case_runs(t, "b", "{}", "rb");
    case_runs(t, "a", "{}", "ra");
    case_runs(t, "b", "{}", "rb");
    case_runs(t, "a", "{}", "ra");
    assert_string_equal(case_asks(t, "b", "{}"), "refuse cycle");
    assert_string_equal(case_asks(t, "a", "{}"), "refuse cycle");
    assert_string_equal(case_asks(t, "b", "{}"), "refuse cycle");
    assert_string_equal(case_asks(t, "a", "{}"), "refuse cycle");
    assert_string_equal(case_asks(t, "b", "{}"), "halt cycle");
    case_runs(t, "c", "{}", "rc");
}

static void a_cycle_with_a_new_result_is_no_cycle(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "toggle_data", "{}", "on");
    case_runs(t, "check_data", "{}", "on");
    case_runs(t, "toggle_data", "{}", "off");
    case_runs(t, "check_data", "{}", "off");
    case_runs(t, "toggle_data", "{}", "on");
    case_runs(t, "check_data", "{}", "on");
    case_runs(t, "toggle_data", "{}", "off");
}

static void a_cycle_of_five_is_detected(void **state)
{
    struct ledger_case *t = *state;
    static const char *const tools[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 14; i++)
        case_runs(t, tools[i % 5], "{}", tools[i % 5]);
    assert_string_equal(case_asks(t, "e", "{}"), "refuse cycle");
}

static void a_new_turn_resets_the_run(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{1}", "r");
    case_turn(t, 2);
    case_runs(t, "get_order", "{1}", "r");
    assert_int_equal(t->settled.repeats, 1);
}

static void a_run_over_many_turns_is_refused(void **state)
{
    struct ledger_case *t = *state;
    for (uint32_t turn = 1; turn <= 4; turn++) {
        case_turn(t, turn);
        case_runs(t, "transfer", "{1}", "done");
    }
    case_turn(t, 5);
    assert_string_equal(case_asks(t, "transfer", "{1}"), "refuse loop");
    case_runs(t, "get_user", "{}", "u");
    case_runs(t, "transfer", "{1}", "done");
}

static void a_success_of_another_tool_re_arms(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "set_order", "{1}", "done");
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{1}", "r");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
}

static void transient_failures_do_not_count_in_a_run(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get_order", "{1}", "r");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(case_asks(t, "get_order", "{1}"), "run");
        case_settle_as(t, "get_order", "{1}", t->admissions, LEDGER_CLASS_TRANSIENT, NULL);
    }
    case_runs(t, "get_order", "{1}", "r");
    assert_int_equal(t->settled.repeats, 2);
}

static void a_reset_ends_a_run(void **state)
{
    struct ledger_case *t = *state;
    enum err err = OK;
    case_runs(t, "get_order", "{1}", "r");
    case_runs(t, "get_order", "{1}", "r");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    ledger_reset(t->ledger, t->place.session, STR_LIT("get_order"), t->arena, &err, NULL, NULL);
    assert_int_equal(err, OK);
    case_runs(t, "get_order", "{1}", "r");
    ledger_reset(t->ledger, STR_LIT("nobody"), STR_LIT("get_order"), t->arena, &err, NULL, NULL);
    assert_int_equal(err, ERR_NOT_FOUND);
}

static void a_reset_leaves_the_calls_of_other_tools(void **state)
{
    struct ledger_case *t = *state;
    enum err error;
    for (int i = 0; i < 2; i++) {
        case_runs(t, "get", "{1}", "r");
        case_runs(t, "list", i ? "{2}" : "{1}", "x");
    }
    ledger_reset(t->ledger, t->place.session, STR_LIT("list"), t->arena, &error, NULL, NULL);
    assert_int_equal(error, OK);
    assert_string_equal(case_asks(t, "get", "{1}"), "run"); /* never two in a row */
    assert_int_equal(t->answer.repeats, 0);
}

static void unreported_calls_are_compared_by_arguments(void **state)
{
    struct ledger_case *t = *state;
    for (int i = 0; i < 2; i++) {
        assert_string_equal(case_asks(t, "get", "{1}"), "run");
        case_now += LEDGER_RESERVATION_MS + 1000;
    }
    assert_string_equal(case_asks(t, "get", "{1}"), "refuse loop");
}

static void an_anonymous_session_is_advised_and_refused_at_eight(void **state)
{
    struct ledger_case *t = *state;
    t->place.anonymous = true;
    t->place.turn = 0;
    for (int i = 1; i <= 7; i++) {
        case_runs(t, "get_order", "{1}", "r");
        assert_int_equal(t->answer.would.len > 0, i >= 3);
        if (i >= 3)
            assert_true(str_is(t->answer.would, "loop"));
    }
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    case_runs(t, "get_user", "{}", "u");
    case_runs(t, "get_order", "{1}", "r");
}

static void an_anonymous_session_is_not_refused_for_a_budget(void **state)
{
    struct ledger_case *t = *state;
    t->place.anonymous = true;
    t->place.turn = 0;
    t->limits.effects = LEDGER_EFFECTS_DESTRUCTIVE;
    t->limits.same_call = 1;
    case_runs(t, "delete", "{1}", "gone");
    case_runs(t, "delete", "{1}", "gone");
    assert_true(str_is(t->answer.would, "same_call"));
    for (int i = 0; i < 4; i++)
        assert_string_equal(case_invalid(t, "create", "{}"), "repair");
    assert_true(t->answer.would.len > 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(the_third_identical_call_is_refused_and_the_fifth_halts),
        STORY(another_admitted_call_ends_the_refusals),
        STORY(a_refused_call_does_not_end_the_refusals),
        STORY(other_arguments_are_another_call),
        STORY(unsettled_calls_are_compared_by_arguments),
        STORY(an_error_that_repeats_is_a_loop),
        STORY(a_new_result_resets_the_run),
        STORY(a_run_of_new_results_ends_with_the_poll_budget),
        STORY(a_declared_poll_may_repeat_its_result),
        STORY(a_cycle_of_two_is_refused_when_it_would_close_its_third_round),
        STORY(a_cycle_with_a_new_result_is_no_cycle),
        STORY(a_cycle_of_five_is_detected),
        STORY(a_new_turn_resets_the_run),
        STORY(a_run_over_many_turns_is_refused),
        STORY(a_success_of_another_tool_re_arms),
        STORY(transient_failures_do_not_count_in_a_run),
        STORY(a_reset_ends_a_run),
        STORY(a_reset_leaves_the_calls_of_other_tools),
        STORY(unreported_calls_are_compared_by_arguments),
        STORY(an_anonymous_session_is_advised_and_refused_at_eight),
        STORY(an_anonymous_session_is_not_refused_for_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

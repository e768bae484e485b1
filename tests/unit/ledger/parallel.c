/*
 * Concurrent calls and late results: the cases in which the model of the rules
 * (ledger_model.lua) and the ledger once differed.
 */
#include <stdio.h>

#include "ledger/ledger_case.h"

static void in_step(struct ledger_case *t, const char *step)
{
    t->place.step = str_of(step);
}

/* Admits a call that must be admitted, and leaves it unsettled. */
static uint64_t begins(struct ledger_case *t, const char *tool, const char *args)
{
    assert_string_equal(case_asks(t, tool, args), "run");
    return t->admissions;
}

static void ends(struct ledger_case *t, const char *tool, const char *args, uint64_t admission,
                 enum ledger_class class, const char *result)
{
    case_settle_as(t, tool, args, admission, class, result);
}

static void comes_to(struct ledger_case *t, const char *tool, const char *args, enum ledger_class class)
{
    ends(t, tool, args, begins(t, tool, args), class, "r");
}

static bool is_stuck(struct ledger_case *t)
{
    struct ledger_peek peek;
    ledger_peek(t->ledger, &(struct ledger_look){.place = t->place}, t->arena, &peek, NULL, NULL);
    assert_int_equal(peek.error, OK);
    return peek.stuck;
}

static void a_success_admitted_before_the_feedback_ends_no_chain(void **state)
{
    struct ledger_case *t = *state;
    in_step(t, "m1");
    uint64_t slow = begins(t, "create", "{1}");
    in_step(t, "m2");
    assert_string_equal(case_invalid(t, "create", "{2}"), "repair");
    ends(t, "create", "{1}", slow, LEDGER_CLASS_OK, "made");
    assert_true(str_is(t->settled.chain, "no_retry"));
    in_step(t, "m3");
    case_runs(t, "create", "{3}", "made");
    assert_true(str_is(t->settled.chain, "success"));
    assert_int_equal(t->settled.chain_retries, 1);
}

static void a_fabricated_id_admitted_before_the_feedback_is_no_retry(void **state)
{
    struct ledger_case *t = *state;
    in_step(t, "m1");
    uint64_t slow = begins(t, "create", "{1}");
    in_step(t, "m2");
    case_invalid(t, "create", "{2}");
    ends(t, "create", "{1}", slow, LEDGER_CLASS_FABRICATED, NULL);
    assert_int_equal(t->settled.chain.len, 0);
}

static void the_order_within_a_step_does_not_matter(void **state)
{
    struct ledger_case *t = *state;
    t->limits.effects = LEDGER_EFFECTS_READ;
    for (int i = 1; i <= 2; i++) {
        in_step(t, i == 1 ? "m1" : "m2");
        case_runs(t, "look", "{other}", i == 1 ? "a" : "b");
        case_runs(t, "look", "{same}", "r");
    }
    in_step(t, "m3");
    assert_string_equal(case_asks(t, "look", "{same}"), "refuse loop");
}

static void a_call_between_two_steps_ends_a_row_despite_siblings(void **state)
{
    struct ledger_case *t = *state;
    in_step(t, "m1");
    begins(t, "look", "{same}");
    begins(t, "look", "{other}");
    in_step(t, "m2");
    case_admit_as(t, "nowhere", "{}", LEDGER_SO_FAR_REFUSED);
    in_step(t, "m3");
    begins(t, "look", "{same}");
    assert_int_equal(t->answer.repeats, 0);
}

static void a_failed_write_is_not_repeated_by_its_duplicate(void **state)
{
    struct ledger_case *t = *state;
    t->limits.effects = LEDGER_EFFECTS_WRITE;
    in_step(t, "m1");
    comes_to(t, "write", "{1}", LEDGER_CLASS_TOOL_ERROR);
    assert_string_equal(case_asks(t, "write", "{1}"), "refuse duplicate_in_step");
    in_step(t, "m2");
    assert_string_equal(case_asks(t, "write", "{1}"), "run");
}

static void an_unsettled_destructive_call_is_not_repeated_by_its_duplicate(void **state)
{
    struct ledger_case *t = *state;
    t->limits.effects = LEDGER_EFFECTS_DESTRUCTIVE;
    t->limits.same_call = 1;
    in_step(t, "m1");
    begins(t, "erase", "{1}");
    case_now += LEDGER_RESERVATION_MS + 1000;
    assert_string_equal(case_asks(t, "erase", "{1}"), "refuse duplicate_in_step");
}

static void only_a_result_resets_the_count_of_failures(void **state)
{
    struct ledger_case *t = *state;
    comes_to(t, "fetch", "{1}", LEDGER_CLASS_TRANSIENT);
    comes_to(t, "fetch", "{1}", LEDGER_CLASS_TRANSIENT);
    comes_to(t, "fetch", "{1}", LEDGER_CLASS_REFUSED); /* did not run: the breaker is open */
    begins(t, "fetch", "{1}");                         /* never settled */
    case_now += LEDGER_RESERVATION_MS + 1000;
    case_runs(t, "look", "{}", "r");
    comes_to(t, "fetch", "{1}", LEDGER_CLASS_TRANSIENT);
    assert_int_equal(t->settled.transient_count, 3);
    assert_string_equal(case_asks(t, "fetch", "{1}"), "refuse transient_budget");
}

static void a_late_result_is_compared_with_its_own_turn(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "look", "{1}", "r");
    uint64_t slow = begins(t, "look", "{1}");
    case_turn(t, 2);
    begins(t, "look", "{2}");
    ends(t, "look", "{1}", slow, LEDGER_CLASS_OK, "r");
    assert_true(t->settled.unchanged);
    assert_int_equal(t->settled.repeats, 2);
    assert_int_equal(t->settled.no_progress, 1);
}

static void a_stuck_session_is_stuck_again_after_one_more_failure(void **state)
{
    struct ledger_case *t = *state;
    char args[16];
    for (int i = 0; i < 8; i++) {
        snprintf(args, sizeof(args), "{%d}", i);
        comes_to(t, "look", args, LEDGER_CLASS_TOOL_ERROR);
    }
    assert_true(is_stuck(t));
    case_turn(t, 2);
    uint64_t call = begins(t, "look", "{new}");
    assert_false(is_stuck(t)); /* a new turn resets it */
    ends(t, "look", "{new}", call, LEDGER_CLASS_TOOL_ERROR, "r");
    assert_true(is_stuck(t));
}

static void a_repeated_invalid_call_is_redundant_with_any_refusal(void **state)
{
    struct ledger_case *t = *state;
    t->limits.repair = 3;
    comes_to(t, "create", "{1}", LEDGER_CLASS_INVALID);
    comes_to(t, "create", "{1}", LEDGER_CLASS_INVALID);
    assert_string_equal(case_asks(t, "create", "{1}"), "refuse loop");
    assert_int_equal(t->answer.attempt, 3);
    assert_string_equal(case_asks(t, "create", "{1}"), "refuse loop");
    assert_int_equal(t->answer.attempt, 4);
    assert_true(str_is(t->answer.chain, "redundant"));
    assert_int_equal(t->answer.chain_retries, 3);
}

static void a_late_settle_does_not_settle_another_call_in_its_slot(void **state)
{
    struct ledger_case *t = *state;
    char args[16];
    uint64_t slow = begins(t, "export", "{}");
    for (int i = 1; i <= 32; i++) { /* the size of the window */
        snprintf(args, sizeof(args), "{%d}", i);
        case_runs(t, "search", args, args);
    }
    ends(t, "export", "{}", slow, LEDGER_CLASS_SCHEMA_MISMATCH, "garbage");
    assert_string_equal(case_asks(t, "search", args), "run");
    assert_string_equal(case_asks(t, "export", "{}"), "run");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_success_admitted_before_the_feedback_ends_no_chain),
        STORY(a_fabricated_id_admitted_before_the_feedback_is_no_retry),
        STORY(the_order_within_a_step_does_not_matter),
        STORY(a_call_between_two_steps_ends_a_row_despite_siblings),
        STORY(a_failed_write_is_not_repeated_by_its_duplicate),
        STORY(an_unsettled_destructive_call_is_not_repeated_by_its_duplicate),
        STORY(only_a_result_resets_the_count_of_failures),
        STORY(a_late_result_is_compared_with_its_own_turn),
        STORY(a_stuck_session_is_stuck_again_after_one_more_failure),
        STORY(a_repeated_invalid_call_is_redundant_with_any_refusal),
        STORY(a_late_settle_does_not_settle_another_call_in_its_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Loops as a story: who asks what, and what the ledger says to it. */
#include <stdio.h>

#include "ledger_case.h"

static void the_third_identical_call_is_refused_and_the_fifth_halts(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get_order", "{1}", "r");
    assert_false(t->settled.unchanged);
    case_runs(t, "get_order", "{1}", "r");
    assert_true(t->settled.unchanged);
    assert_int_equal(t->settled.repeats, 2);
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "refuse loop");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "halt loop");
    assert_string_equal(case_asks(t, "get_order", "{1}"), "halt loop");
    assert_string_equal(case_asks(t, "get_order", "{2}"), "run");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_third_identical_call_is_refused_and_the_fifth_halts, case_begin,
                                        case_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

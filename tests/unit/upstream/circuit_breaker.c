/* The breaker as stories; the clock is the test's. */
#include "upstream/circuit_breaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void fail_times(struct breaker *b, unsigned times, int64_t now)
{
    for (unsigned i = 0; i < times; i++)
        breaker_failure(b, false, now);
}

/* Open at 1000, for BREAKER_OPEN_MS. */
static struct breaker opened(void)
{
    struct breaker b = {0};
    fail_times(&b, BREAKER_OPENS_AFTER, 1000);
    assert_int_equal(b.state, BREAKER_OPEN);
    return b;
}

static void it_opens_after_so_many_in_a_row(void **state)
{
    struct breaker b = {0};
    (void)state;
    fail_times(&b, BREAKER_OPENS_AFTER - 1, 0);
    assert_int_equal(breaker_admit(&b, 0), BREAKER_ALLOW);
    assert_false(breaker_success(&b));
    fail_times(&b, BREAKER_OPENS_AFTER - 1, 0);
    assert_int_equal(breaker_admit(&b, 0), BREAKER_ALLOW);
    assert_true(breaker_failure(&b, false, 0));
    assert_int_equal(breaker_admit(&b, 0), BREAKER_REJECT);
}

static void one_probes_and_the_others_wait(void **state)
{
    struct breaker b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    (void)state;
    assert_int_equal(breaker_admit(&b, over - 1), BREAKER_REJECT);
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
    assert_int_equal(breaker_admit(&b, over), BREAKER_REJECT);
    assert_int_equal(breaker_admit(&b, over + 100000), BREAKER_REJECT);
    assert_true(breaker_success(&b));
    assert_int_equal(breaker_admit(&b, over), BREAKER_ALLOW);
    assert_int_equal(b.failures, 0);
}

static void a_probe_that_fails_doubles_the_time(void **state)
{
    struct breaker b = opened();
    int64_t now = 1000;
    (void)state;
    for (uint32_t ms = BREAKER_OPEN_MS; ms < BREAKER_OPEN_MAX_MS;) {
        now += ms;
        assert_int_equal(breaker_admit(&b, now - 1), BREAKER_REJECT);
        assert_int_equal(breaker_admit(&b, now), BREAKER_PROBE);
        assert_true(breaker_failure(&b, true, now));
        ms = 2 * ms < BREAKER_OPEN_MAX_MS ? 2 * ms : BREAKER_OPEN_MAX_MS;
        assert_int_equal(b.open_ms, ms);
    }
    now += BREAKER_OPEN_MAX_MS;
    assert_int_equal(breaker_admit(&b, now), BREAKER_PROBE);
    breaker_failure(&b, true, now);
    assert_int_equal(b.open_ms, BREAKER_OPEN_MAX_MS);
}

static void those_that_began_before_do_not_make_it_longer(void **state)
{
    struct breaker b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    (void)state;
    assert_false(breaker_failure(&b, false, over - 1));
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
    assert_false(breaker_failure(&b, false, over));
    assert_int_equal(b.state, BREAKER_PROBING);
}

/* Whoever answers is there. */
static void one_that_began_before_and_succeeds_closes_it(void **state)
{
    struct breaker b = opened();
    (void)state;
    assert_true(breaker_success(&b));
    assert_int_equal(breaker_admit(&b, 1001), BREAKER_ALLOW);
}

static void a_probe_that_nobody_waited_for_lets_the_next_one_probe(void **state)
{
    struct breaker b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    (void)state;
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
    assert_false(breaker_cancelled(&b, false, over));
    assert_int_equal(breaker_admit(&b, over), BREAKER_REJECT);
    assert_true(breaker_cancelled(&b, true, over));
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
}

static void it_says_in_whole_seconds_when_to_ask_again(void **state)
{
    struct breaker closed = {0}, b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    (void)state;
    assert_int_equal(breaker_after_s(&closed, 0), 0);
    assert_int_equal(breaker_after_s(&b, 1000), (BREAKER_OPEN_MS + 999) / 1000);
    assert_int_equal(breaker_after_s(&b, over - 1), 1);
    assert_int_equal(breaker_after_s(&b, over), 0);
    breaker_admit(&b, over);
    assert_int_equal(breaker_after_s(&b, over), 1); /* somebody is finding out */
}

static void its_states_have_names(void **state)
{
    (void)state;
    assert_string_equal(breaker_state_name(BREAKER_CLOSED), "closed");
    assert_string_equal(breaker_state_name(BREAKER_OPEN), "open");
    assert_string_equal(breaker_state_name(BREAKER_PROBING), "probing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_after_so_many_in_a_row),
        cmocka_unit_test(one_probes_and_the_others_wait),
        cmocka_unit_test(a_probe_that_fails_doubles_the_time),
        cmocka_unit_test(those_that_began_before_do_not_make_it_longer),
        cmocka_unit_test(one_that_began_before_and_succeeds_closes_it),
        cmocka_unit_test(a_probe_that_nobody_waited_for_lets_the_next_one_probe),
        cmocka_unit_test(it_says_in_whole_seconds_when_to_ask_again),
        cmocka_unit_test(its_states_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

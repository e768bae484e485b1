/* The states of the breaker, with the test's own clock. */
#include "unit.h"
#include "upstream/upstream_internal.h"

static void fail_times(struct breaker *b, unsigned times, int64_t now)
{
    for (unsigned i = 0; i < times; i++)
        breaker_failure(b, false, false, now);
}

/* Open at 1000, for BREAKER_OPEN_MS. */
static struct breaker opened(void)
{
    struct breaker b = {0};
    fail_times(&b, BREAKER_OPENS_AFTER, 1000);
    assert_int_equal(b.state, BREAKER_OPEN);
    return b;
}

TEST(opens_after_failures_in_a_row)
{
    struct breaker b = {0};
    fail_times(&b, BREAKER_OPENS_AFTER - 1, 0);
    assert_int_equal(breaker_admit(&b, 0), BREAKER_ALLOW);
    assert_false(breaker_success(&b));
    fail_times(&b, BREAKER_OPENS_AFTER - 1, 0);
    assert_int_equal(breaker_admit(&b, 0), BREAKER_ALLOW);
    assert_true(breaker_failure(&b, false, false, 0));
    assert_int_equal(breaker_admit(&b, 0), BREAKER_REJECT);
}

TEST(admits_one_probe_and_rejects_the_others)
{
    struct breaker b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    assert_int_equal(breaker_admit(&b, over - 1), BREAKER_REJECT);
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
    assert_int_equal(breaker_admit(&b, over), BREAKER_REJECT);
    assert_int_equal(breaker_admit(&b, over + 100000), BREAKER_REJECT);
    assert_true(breaker_success(&b));
    assert_int_equal(breaker_admit(&b, over), BREAKER_ALLOW);
    assert_int_equal(b.failures, 0);
}

TEST(failed_probe_doubles_the_time)
{
    struct breaker b = opened();
    int64_t now = 1000;
    for (uint32_t ms = BREAKER_OPEN_MS; ms < BREAKER_OPEN_MAX_MS;) {
        now += ms;
        assert_int_equal(breaker_admit(&b, now - 1), BREAKER_REJECT);
        assert_int_equal(breaker_admit(&b, now), BREAKER_PROBE);
        assert_true(breaker_failure(&b, true, false, now));
        ms = 2 * ms < BREAKER_OPEN_MAX_MS ? 2 * ms : BREAKER_OPEN_MAX_MS;
        assert_int_equal(b.open_ms, ms);
    }
    now += BREAKER_OPEN_MAX_MS;
    assert_int_equal(breaker_admit(&b, now), BREAKER_PROBE);
    breaker_failure(&b, true, false, now);
    assert_int_equal(b.open_ms, BREAKER_OPEN_MAX_MS);
}

TEST(trips_at_the_first_failure_and_closes_as_ever)
{
    struct breaker b = {0};
    assert_true(breaker_failure(&b, false, true, 1000));
    assert_int_equal(b.failures, 1);
    assert_int_equal(breaker_admit(&b, 1000), BREAKER_REJECT);
    assert_int_equal(breaker_admit(&b, 1000 + BREAKER_OPEN_MS), BREAKER_PROBE);
    assert_true(breaker_failure(&b, true, true, 1000 + BREAKER_OPEN_MS));
    assert_int_equal(b.open_ms, 2 * BREAKER_OPEN_MS);
    assert_int_equal(breaker_admit(&b, 1000 + 3 * BREAKER_OPEN_MS), BREAKER_PROBE);
    assert_true(breaker_success(&b));
}

TEST(earlier_calls_do_not_prolong_the_opening)
{
    struct breaker b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    assert_false(breaker_failure(&b, false, false, over - 1));
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
    assert_false(breaker_failure(&b, false, false, over));
    assert_int_equal(b.state, BREAKER_PROBING);
}

/* An answer proves that the upstream works. */
TEST(earlier_call_that_succeeds_closes_it)
{
    struct breaker b = opened();
    assert_true(breaker_success(&b));
    assert_int_equal(breaker_admit(&b, 1001), BREAKER_ALLOW);
}

TEST(cancelled_probe_lets_the_next_call_probe)
{
    struct breaker b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
    assert_false(breaker_cancelled(&b, false, over));
    assert_int_equal(breaker_admit(&b, over), BREAKER_REJECT);
    assert_true(breaker_cancelled(&b, true, over));
    assert_int_equal(breaker_admit(&b, over), BREAKER_PROBE);
}

TEST(rounds_the_retry_time_up_to_seconds)
{
    struct breaker closed = {0}, b = opened();
    int64_t over = 1000 + BREAKER_OPEN_MS;
    assert_int_equal(breaker_after_s(&closed, 0), 0);
    assert_int_equal(breaker_after_s(&b, 1000), (BREAKER_OPEN_MS + 999) / 1000);
    assert_int_equal(breaker_after_s(&b, over - 1), 1);
    assert_int_equal(breaker_after_s(&b, over), 0);
    breaker_admit(&b, over);
    assert_int_equal(breaker_after_s(&b, over), 1); /* a probe is in flight */
}

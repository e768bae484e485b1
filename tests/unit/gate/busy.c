/* When a tool becomes busy to a user, for how long, and that the list stays short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate/busy.h"

#define ALICE 1000
#define BOB   1001

static bool is_late(struct busy *busy, uid_t uid, const char *tool, int64_t now_ms)
{
    return busy_count(busy, uid, str_of(tool), true, now_ms);
}

static void after_five_late_calls_in_a_row(void **state)
{
    (void)state;
    struct busy busy = {.count = 0};
    for (int i = 0; i < 4; i++)
        assert_false(is_late(&busy, ALICE, "slow", i));
    assert_false(busy_count(&busy, ALICE, STR_LIT("slow"), false, 4));
    assert_int_equal(0, busy.count);
    for (int i = 5; i < 9; i++)
        assert_false(is_late(&busy, ALICE, "slow", i));
    assert_int_equal(0, busy_left_ms(&busy, ALICE, STR_LIT("slow"), 9));
    assert_true(is_late(&busy, ALICE, "slow", 10));
    assert_int_equal(BUSY_MS, busy_left_ms(&busy, ALICE, STR_LIT("slow"), 10));
    assert_int_equal(0, busy_left_ms(&busy, BOB, STR_LIT("slow"), 10));
    assert_int_equal(0, busy_left_ms(&busy, ALICE, STR_LIT("other"), 10));
}

static void one_call_tries_when_the_pause_is_over(void **state)
{
    (void)state;
    struct busy busy = {.count = 0};
    for (unsigned i = 0; i < BUSY_LATE_IN_A_ROW; i++)
        is_late(&busy, ALICE, "slow", 0);
    assert_int_equal(1, busy_left_ms(&busy, ALICE, STR_LIT("slow"), BUSY_MS - 1));
    assert_int_equal(0, busy_left_ms(&busy, ALICE, STR_LIT("slow"), BUSY_MS));
    assert_true(is_late(&busy, ALICE, "slow", BUSY_MS));
    assert_int_equal(BUSY_MS, busy_left_ms(&busy, ALICE, STR_LIT("slow"), BUSY_MS));
    assert_int_equal(2, busy.times);
    busy_count(&busy, ALICE, STR_LIT("slow"), false, 2 * BUSY_MS - 1);
    assert_int_equal(1, busy_left_ms(&busy, ALICE, STR_LIT("slow"), 2 * BUSY_MS - 1));
    busy_count(&busy, ALICE, STR_LIT("slow"), false, 2 * BUSY_MS);
    assert_false(is_late(&busy, ALICE, "slow", 2 * BUSY_MS));
}

static void the_oldest_makes_place(void **state)
{
    (void)state;
    struct busy busy = {.count = 0};
    for (unsigned i = 0; i < BUSY_LATE_IN_A_ROW; i++)
        is_late(&busy, BOB, "slow", 1000);
    for (uid_t uid = 2000; uid < 2000 + 3 * BUSY_MAX; uid++)
        is_late(&busy, uid, "slow", uid < 2000 + BUSY_MAX ? 1 : 500);
    assert_int_equal(BUSY_MAX, busy.count);
    assert_true(busy_left_ms(&busy, BOB, STR_LIT("slow"), 1000) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_five_late_calls_in_a_row),
        cmocka_unit_test(one_call_tries_when_the_pause_is_over),
        cmocka_unit_test(the_oldest_makes_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A timer fires once, in a turn of the loop, and not after it was cleared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/conn.h"
#include "io/timer.h"

struct ring {
    struct loop *loop;
    struct timer timer, other;
    int fired;
    bool again;
};

static void on_fire(void *owner)
{
    struct ring *ring = owner;
    assert_false(timer_is_set(&ring->timer));
    ring->fired++;
    timer_clear(&ring->other);
    if (ring->again)
        timer_set(&ring->timer, ring->loop, 1, on_fire, ring);
}

static struct ring begin(void)
{
    return (struct ring){.loop = loop_new()};
}

static void end(struct ring *ring)
{
    timer_clear(&ring->timer);
    timer_clear(&ring->other);
    loop_free(ring->loop);
}

static void turn_until(struct ring *ring, int fired)
{
    while (ring->fired < fired)
        loop_turn(ring->loop, true);
}

static void fires_once_and_never_inside(void **state)
{
    struct ring ring = begin();
    (void)state;
    timer_set(&ring.timer, ring.loop, 0, on_fire, &ring);
    assert_int_equal(ring.fired, 0);
    assert_true(timer_is_set(&ring.timer));
    turn_until(&ring, 1);
    loop_turn(ring.loop, false);
    assert_int_equal(ring.fired, 1);
    end(&ring);
}

static void may_be_set_again_when_it_fires(void **state)
{
    struct ring ring = begin();
    (void)state;
    ring.again = true;
    timer_set(&ring.timer, ring.loop, 1, on_fire, &ring);
    turn_until(&ring, 3);
    end(&ring);
}

static void setting_it_again_moves_it(void **state)
{
    struct ring ring = begin();
    int64_t began = clock_mono_us();
    (void)state;
    timer_set(&ring.timer, ring.loop, 3600000, on_fire, &ring);
    timer_set(&ring.timer, ring.loop, 20, on_fire, &ring);
    turn_until(&ring, 1);
    assert_true(clock_mono_us() - began >= 20000);
    end(&ring);
}

static void is_silent_after_it_was_cleared(void **state)
{
    struct ring ring = begin();
    (void)state;
    timer_clear(&ring.timer);
    timer_set(&ring.other, ring.loop, 1, on_fire, &ring); /* cleared by the first, in the same turn */
    timer_set(&ring.timer, ring.loop, 0, on_fire, &ring);
    turn_until(&ring, 1);
    assert_false(timer_is_set(&ring.other));
    timer_set(&ring.timer, ring.loop, 5, on_fire, &ring);
    turn_until(&ring, 2);
    assert_int_equal(ring.fired, 2);
    end(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fires_once_and_never_inside),
        cmocka_unit_test(may_be_set_again_when_it_fires),
        cmocka_unit_test(setting_it_again_moves_it),
        cmocka_unit_test(is_silent_after_it_was_cleared),
    };
    return cmocka_run_group_tests_name("io_timer", tests, NULL, NULL);
}

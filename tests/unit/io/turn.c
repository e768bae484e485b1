/* Turns: users before connections, the prompt ones first, and nobody waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/turn.h"

#define WORKERS 4u

struct worker {
    struct turn turn;
    size_t runs, left; /* turns that it still asks for */
    bool is_slow, leaves;
};

struct workers {
    struct turn_queue queue;
    struct worker at[WORKERS];
};

static void work(void *owner)
{
    struct worker *w = owner;
    w->runs++;
    if (w->leaves) {
        turn_leave(&w->turn);
        return;
    }
    while (w->is_slow && !turn_is_over(w->turn.queue))
        continue;
    if (w->left && w->left--)
        turn_ask(&w->turn);
}

static void begin(struct workers *all, const uid_t uids[WORKERS])
{
    *all = (struct workers){.at[0].runs = 0};
    turn_queue_init(&all->queue);
    for (size_t i = 0; i < WORKERS; i++)
        turn_join(&all->at[i].turn, &all->queue, uids[i], TURN_LONG, work, &all->at[i]);
}

static void end(struct workers *all)
{
    for (size_t i = 0; i < WORKERS; i++)
        if (!all->at[i].leaves || !all->at[i].runs)
            turn_leave(&all->at[i].turn);
    assert_true(turn_queue_is_empty(&all->queue));
    assert_true(LIST_EMPTY(&all->queue.users));
}

/* A slow turn uses up the time of a run: one run serves one. */
static void serves_users_before_connections(void **state)
{
    struct workers all;
    (void)state;
    begin(&all, (uid_t[]){1, 1, 1, 2});
    for (size_t i = 0; i < WORKERS; i++) {
        all.at[i].is_slow = true;
        all.at[i].left = 100;
        turn_ask(&all.at[i].turn);
    }
    for (int i = 0; i < 12; i++)
        turn_queue_run(&all.queue);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(all.at[i].runs, 2);
    assert_int_equal(all.at[3].runs, 6);
    end(&all);
}

/* Who was short before is next, however many long ones wait. */
static void serves_the_prompt_first(void **state)
{
    struct workers all;
    (void)state;
    begin(&all, (uid_t[]){1, 1, 1, 1});
    turn_ask(&all.at[3].turn);
    turn_queue_run(&all.queue);
    assert_int_equal(all.at[3].runs, 1);
    all.at[3].turn.class = TURN_PROMPT; /* also if this machine stalled it */
    for (size_t i = 0; i < 3; i++) {
        all.at[i].is_slow = true;
        all.at[i].left = 100;
        turn_ask(&all.at[i].turn);
    }
    turn_queue_run(&all.queue);
    turn_ask(&all.at[3].turn);
    turn_queue_run(&all.queue);
    assert_int_equal(all.at[3].runs, 2);
    end(&all);
}

static void serves_the_long_ones_although_prompt_ones_wait(void **state)
{
    struct workers all;
    (void)state;
    begin(&all, (uid_t[]){1, 2, 1, 1});
    all.at[0].left = SIZE_MAX; /* never without a wish */
    turn_ask(&all.at[0].turn);
    turn_queue_run(&all.queue);
    all.at[1].is_slow = true;
    all.at[1].left = 3;
    turn_ask(&all.at[1].turn);
    for (int64_t until_us = clock_mono_us() + 10000000; all.at[1].runs < 4 && clock_mono_us() < until_us;)
        turn_queue_run(&all.queue);
    assert_int_equal(all.at[1].runs, 4);
    end(&all);
}

static void may_leave_in_its_own_turn_and_while_it_waits(void **state)
{
    struct workers all;
    (void)state;
    begin(&all, (uid_t[]){1, 2, 2, 3});
    all.at[0].leaves = true;
    turn_ask(&all.at[0].turn);
    turn_ask(&all.at[1].turn);
    turn_ask(&all.at[1].turn); /* once */
    turn_leave(&all.at[2].turn);
    turn_join(&all.at[2].turn, &all.queue, 2, TURN_LONG, work, &all.at[2]);
    turn_ask(&all.at[3].turn);
    turn_leave(&all.at[3].turn);
    turn_join(&all.at[3].turn, &all.queue, 3, TURN_LONG, work, &all.at[3]);
    while (!turn_queue_is_empty(&all.queue))
        turn_queue_run(&all.queue);
    assert_int_equal(all.at[0].runs, 1);
    assert_int_equal(all.at[1].runs, 1);
    assert_int_equal(all.at[3].runs, 0);
    end(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_users_before_connections),
        cmocka_unit_test(serves_the_prompt_first),
        cmocka_unit_test(serves_the_long_ones_although_prompt_ones_wait),
        cmocka_unit_test(may_leave_in_its_own_turn_and_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

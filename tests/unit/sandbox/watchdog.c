/* The watchdog ends the process if the deadline cannot stop a hook, and writes down which file it was. */
#include "policy/policy_support.h"

#include "sandbox/deadline.h"

#include <sys/wait.h>
#include <unistd.h>

static void never_late(void *owner)
{
    (void)owner;
}

static void a_stall_ends_the_process_and_names_the_file(void **state)
{
    (void)state;
    int told[2], status;
    char name[64] = "";
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        struct deadline_run run = {.budget = 1,
                                   .watchdog = 20,
                                   .on_late = never_late,
                                   .file = "policies/stuck.lua",
                                   .source_hash = 0xbeef};
        deadline_set_stall_fd(told[1]);
        deadline_enter(&run);
        for (;;)
            continue;
    }
    close(told[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DEADLINE_STALL_EXIT);
    assert_true(read(told[0], name, sizeof(name) - 1) > 0);
    assert_string_equal(name, "000000000000beef policies/stuck.lua\n");
    close(told[0]);
}

/* Timers are not inherited: a child that runs policies makes its own. */
static void the_deadline_holds_after_a_fork(void **state)
{
    (void)state;
    int status;
    assert_int_equal(check_body("while true do end", "{}"), OUTCOME_POLICY_ERROR);
    pid_t child = fork();
    if (child == 0) {
        policy_check(policy_set_at(loaded, 0), &a_call, value_of("{}"), arena, &said);
        _exit(said.kind == OUTCOME_POLICY_ERROR ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stall_ends_the_process_and_names_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_deadline_holds_after_a_fork, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy_watchdog", tests, NULL, NULL);
}

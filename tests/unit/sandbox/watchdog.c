/* The watchdog ends the process if the deadline cannot stop a hook, and writes down which file it was. */
#include "policy/policy_support.h"

#include "policy/policy_internal.h"
#include "sandbox/deadline.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct fault {
    void (*end)(void);
};

static void run_fault(lua_State *L, void *fault)
{
    (void)L;
    ((struct fault *)fault)->end();
}

/* What a child that runs `end` in a policy writes down; *status is how it ended. */
static void record_of(void (*end)(void), int *status, char *line, size_t size)
{
    int told[2];
    memset(line, 0, size);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        struct sandbox_context now = {.file = "policies/stuck.lua", .source_hash = 0xbeef};
        struct fault fault = {end};
        struct why why;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        for (int signo = 1; signo < NSIG; signo++) /* the test's framework catches crashes, too */
            signal(signo, SIG_DFL);
        fault_record_open(told[1]);
        sandbox_run(sandbox_new(16384, vocabulary_open), 1, &now, run_fault, &fault, &why);
        _exit(0);
    }
    close(told[1]);
    assert_int_equal(waitpid(child, status, 0), child);
    assert_true(read(told[0], line, size - 1) > 0);
    close(told[0]);
}

/* "<text> <kind> <file>\n" */
static void assert_line(const char *line, const char *kind)
{
    unsigned long long text;
    char what[8], file[64];
    assert_int_equal(sscanf(line, "%16llx %7s %63s", &text, what, file), 3);
    assert_int_equal(text, 0xbeef);
    assert_string_equal(what, kind);
    assert_string_equal(file, "policies/stuck.lua");
    assert_int_equal(line[strlen(line) - 1], '\n');
}

static void never_end(void)
{
    for (;;)
        continue;
}

TEST(a_stall_ends_the_process_and_names_the_file)
{
    int status;
    char line[128];
    record_of(never_end, &status, line, sizeof(line));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DEADLINE_STALL_EXIT);
    assert_line(line, "stall");
}

static void overflow_stack(void)
{
    volatile char frame[65536];
    frame[0] = 1;
    static void (*volatile again)(void) = overflow_stack;
    again();
    frame[1] = frame[0];
}

static void segfault(void)
{
    raise(SIGSEGV);
}

static void bus_error(void)
{
    raise(SIGBUS);
}

TEST(a_crash_names_the_file_and_ends_the_process_as_before)
{
    static const struct {
        void (*end)(void);
        int signo;
    } crashes[] = {{segfault, SIGSEGV}, {bus_error, SIGBUS}, {abort, SIGABRT}, {overflow_stack, SIGSEGV}};
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
        int status;
        char line[128];
        record_of(crashes[i].end, &status, line, sizeof(line));
        assert_line(line, "crash");
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == crashes[i].signo);
    }
}

/* Timers are not inherited: a child that runs policies makes its own. */
TEST(the_deadline_holds_after_a_fork)
{
    options.deadline_ms = POLICY_DEADLINE_MS;
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

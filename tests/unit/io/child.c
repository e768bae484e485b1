/* Child processes: real ones, mostly sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "io/child.h"
#include "io/conn.h"

struct process {
    struct loop *loop;
    struct child *child;
    int in, out, errors, status;
    bool ended;
    struct buf said;
    struct why why;
};

static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "GREETING=hello", NULL};

static void on_ended(void *owner, int status)
{
    struct process *p = owner;
    assert_false(p->ended);
    p->ended = true;
    p->status = status;
}

static const struct child_callbacks hooks = {on_ended};

static enum err start_spec(struct process *p, const struct child_spec *spec)
{
    *p = (struct process){.loop = loop_new()};
    return child_start(p->loop, spec, &hooks, p, &p->child, &p->in, &p->out, &p->errors, &p->why);
}

static enum err start(struct process *p, const char *const *argv)
{
    return start_spec(p, &(struct child_spec){.argv = argv, .env = environment, .pipes = true});
}

static void shell(struct process *p, const char *script)
{
    assert_int_equal(start(p, (const char *const[]){"sh", "-c", script, NULL}), OK);
}

/* Reads its stdout to the end. */
static struct str hear(struct process *p)
{
    char bytes[4096];
    struct pollfd readable = {.fd = p->out, .events = POLLIN};
    ssize_t n;
    while (poll(&readable, 1, -1) == 1 && (n = read(p->out, bytes, sizeof(bytes))) > 0)
        buf_add(&p->said, bytes, (size_t)n);
    return buf_view(&p->said);
}

static bool hear_line(struct process *p, char line[256])
{
    struct pollfd readable = {.fd = p->out, .events = POLLIN};
    size_t n = 0;
    while (n < 255 && poll(&readable, 1, -1) == 1 && read(p->out, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    return n > 0;
}

static int wait_for(struct process *p)
{
    while (!p->ended)
        loop_turn(p->loop, true);
    return p->status;
}

static void end(struct process *p)
{
    close(p->in), close(p->out), close(p->errors);
    child_terminate_all(p->loop, 0);
    loop_free(p->loop);
    buf_clear(&p->said);
}

static bool is_alive(pid_t pid)
{
    char path[64], state = 'X';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d %*s %c", &state) != 1)
        state = 'X';
    if (file)
        fclose(file);
    return state != 'X' && state != 'Z';
}

static void wait_until_gone(pid_t pid)
{
    while (is_alive(pid))
        poll(NULL, 0, 1);
}

#define assert_says(p, text) assert_string_equal(arena_dup(arena_now, hear(p)).at, text)
static struct arena *arena_now;

static int with_arena(void **state)
{
    (void)state;
    arena_now = arena_new();
    return 0;
}

static int without_arena(void **state)
{
    (void)state;
    arena_free(arena_now);
    return 0;
}

/* ---- environment and descriptors ------------------------------------------------------------------------
 */

static void gets_its_arguments_as_they_are(void **state)
{
    struct process p;
    (void)state;
    assert_int_equal(start(&p, (const char *const[]){"printf", "%s|", "a b", "$(id)", "", "'", NULL}), OK);
    assert_says(&p, "a b|$(id)||'|");
    assert_int_equal(wait_for(&p), 0);
    end(&p);
}

static void gets_only_the_environment_it_is_given(void **state)
{
    struct process p;
    (void)state;
    setenv("TOOLGATE_TEST_SECRET", "x", 1);
    assert_int_equal(start(&p, (const char *const[]){"env", NULL}), OK);
    assert_says(&p, "PATH=/usr/local/bin:/usr/bin:/bin\nGREETING=hello\n");
    wait_for(&p);
    end(&p);
}

static void gets_no_other_descriptor(void **state)
{
    struct process p;
    int open_here = dup(1); /* not close-on-exec, as from a careless library */
    (void)state;
    shell(&p, "for fd in /proc/self/fd/*; do [ -e $fd ] && echo ${fd##*/}; done");
    assert_says(&p, "0\n1\n2\n");
    close(open_here);
    wait_for(&p);
    end(&p);
}

/* Including signals that libc reserves, as a shell with another libc leaves them. */
static void ignore(int number, bool on)
{
    const unsigned long action[8] = {on ? (unsigned long)SIG_IGN : 0};
    syscall(SYS_rt_sigaction, number, action, NULL, 8);
}

static void starts_with_normal_signals(void **state)
{
    struct process p;
    sigset_t blocked, before;
    (void)state;
    ignore(SIGPIPE, true), ignore(32, true), ignore(33, true), ignore(64, true);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    assert_int_equal(
        start(&p, (const char *const[]){"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status", NULL}), OK);
    assert_says(&p, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    sigprocmask(SIG_SETMASK, &before, NULL);
    ignore(SIGPIPE, false), ignore(32, false), ignore(33, false), ignore(64, false);
    wait_for(&p);
    end(&p);
}

static void leads_a_session_of_its_own(void **state)
{
    struct process p;
    char expected[64];
    (void)state;
    shell(&p, "ps -o pid=,pgid=,sid= -p $$ | tr -s ' ' | sed 's/^ //'");
    snprintf(expected, sizeof(expected), "%d %d %d\n", (int)child_pid(p.child), (int)child_pid(p.child),
             (int)child_pid(p.child));
    assert_says(&p, expected);
    wait_for(&p);
    end(&p);
}

static void runs_in_its_folder_under_its_limits(void **state)
{
    struct process p;
    struct child_spec spec = {
        .argv = (const char *const[]){"sh", "-c",
                                      "pwd; ulimit -d; ulimit -f; ulimit -t; ulimit -n; ulimit -c", NULL},
        .env = environment,
        .cwd = "/usr",
        .limits = {.memory_bytes = 1 << 28, .file_bytes = 1 << 20, .cpu_s = 7, .files = 50},
    };
    (void)state;
    assert_int_equal(start_spec(&p, &spec), OK);
    assert_says(&p, "/usr\n262144\n2048\n7\n50\n0\n");
    wait_for(&p);
    end(&p);
}

static void talks_both_ways_by_pipes_and_by_sockets(void **state)
{
    (void)state;
    for (int pipes = 0; pipes < 2; pipes++) {
        struct process p;
        struct child_spec spec = {
            .argv = (const char *const[]){"cat", NULL}, .env = environment, .pipes = pipes};
        struct stat info;
        assert_int_equal(start_spec(&p, &spec), OK);
        assert_int_equal(fstat(p.in, &info), 0);
        assert_int_equal(pipes, S_ISFIFO(info.st_mode));
        assert_int_equal(write(p.in, "ping", 4), 4);
        close(p.in);
        assert_says(&p, "ping");
        wait_for(&p);
        p.in = -1;
        end(&p);
    }
}

static void may_open_its_pipes_by_name(void **state)
{
    struct process p;
    (void)state;
    shell(&p, "/bin/cat /dev/stdin > /dev/stdout; echo oops > /dev/stderr");
    assert_int_equal(write(p.in, "ping", 4), 4);
    close(p.in);
    p.in = -1;
    assert_says(&p, "ping");
    assert_int_equal(wait_for(&p), 0);
    end(&p);
}

/* ---- errors ------------------------------------------------------------------------- */

static char *temporary(const char *name, const char *text, mode_t mode)
{
    static char path[256];
    char folder[] = "/tmp/toolgate-child-XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
    return path;
}

static void remove_temporary(char *path)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

static void assert_refused(const struct child_spec *spec, enum err err, const char *words)
{
    struct process p;
    assert_int_equal(start_spec(&p, spec), err);
    if (!strstr(p.why.text, words))
        fail_msg("'%s' does not hold '%s'", p.why.text, words);
    assert_int_equal(p.in, -1);
    assert_null(p.child);
    loop_free(p.loop);
}

static void reports_an_unknown_command(void **state)
{
    struct child_spec spec = {.argv = (const char *const[]){"no-such-command", NULL}, .env = environment};
    (void)state;
    assert_refused(&spec, ERR_NOT_FOUND,
                   "no command 'no-such-command' in PATH (/usr/local/bin:/usr/bin:/bin): install it");
    spec.argv = (const char *const[]){"/no/such/command", NULL};
    assert_refused(&spec, ERR_NOT_FOUND, "no command '/no/such/command'");
}

static void reports_a_file_that_is_no_program(void **state)
{
    (void)state;
    char *path = temporary("tool", "echo hi\n", 0644);
    struct child_spec spec = {.argv = (const char *const[]){path, NULL}, .env = environment};
    assert_refused(&spec, ERR_NOT_FOUND, "is not executable: make it so (chmod +x)");
    chmod(path, 0755);
    assert_refused(&spec, ERR_NOT_FOUND, "a script's first line must name its interpreter");
    remove_temporary(path);
}

static void reports_a_missing_interpreter(void **state)
{
    (void)state;
    char *path = temporary("tool", "#!/no/such/interpreter\n", 0755);
    struct child_spec spec = {.argv = (const char *const[]){path, NULL}, .env = environment};
    assert_refused(&spec, ERR_NOT_FOUND, "the interpreter in its first line does not exist");
    remove_temporary(path);
}

static void reports_a_missing_folder(void **state)
{
    struct child_spec spec = {
        .argv = (const char *const[]){"true", NULL}, .env = environment, .cwd = "/no/such/folder"};
    (void)state;
    for (unsigned bits = 0; bits <= 28; bits += 28) { /* also with little memory for the error */
        spec.limits.memory_bytes = bits ? 1u << bits : 0;
        assert_refused(&spec, ERR_NOT_FOUND,
                       "cannot run 'true' in the folder '/no/such/folder': No such file or directory");
    }
}

static void leaves_no_descriptor_behind(void **state)
{
    struct child_spec spec = {.argv = (const char *const[]){"no-such-command", NULL}, .env = environment};
    (void)state;
    int before = dup(1);
    close(before);
    assert_refused(&spec, ERR_NOT_FOUND, "no command");
    struct process p;
    shell(&p, "exit 3");
    assert_int_equal(WEXITSTATUS(wait_for(&p)), 3);
    end(&p);
    int after = dup(1);
    close(after);
    assert_int_equal(before, after);
}

/* ---- termination --------------------------------------------------------------------------------- */

static void tells_how_it_ended(void **state)
{
    struct process p;
    (void)state;
    shell(&p, "exit 3");
    assert_string_equal(child_status(arena_now, wait_for(&p)).at, "exit code 3");
    end(&p);
    shell(&p, "kill -SEGV $$");
    assert_string_equal(child_status(arena_now, wait_for(&p)).at, "killed by SIGSEGV");
    end(&p);
}

/* A parent may have ignored SIGCHLD: then the kernel reaps children and discards their status. */
static void reports_the_exit_with_sigchld_ignored(void **state)
{
    struct process p;
    (void)state;
    ignore(SIGCHLD, true);
    shell(&p, "exit 3");
    assert_int_equal(WEXITSTATUS(wait_for(&p)), 3);
    end(&p);
}

static void reports_a_lost_status(void **state)
{
    struct process p;
    (void)state;
    shell(&p, "exit 0");
    assert_int_equal(waitpid(child_pid(p.child), NULL, 0), child_pid(p.child));
    assert_int_equal(wait_for(&p), CHILD_STATUS_LOST);
    assert_non_null(strstr(child_status(arena_now, p.status).at, "exit status unknown"));
    end(&p);
}

/* Starts a background process; returns its pid. */
static pid_t grandchild(struct process *p, const char *script)
{
    char line[256];
    shell(p, script);
    assert_true(hear_line(p, line));
    return (pid_t)strtol(line, NULL, 10);
}

/* On a busy machine the other's 30 ms may exceed CHILD_LINGER_MS: then try again. */
static void waits_for_others_of_its_group(void **state)
{
    bool heard = false;
    (void)state;
    for (int tries = 0; tries < 50 && !heard; tries++) {
        struct process p;
        shell(&p, "(sleep 0.03; echo later) & echo now");
        wait_for(&p);
        heard = str_is(hear(&p), "now\nlater\n");
        end(&p);
    }
    assert_true(heard);
}

static void kills_the_rest_of_its_group(void **state)
{
    struct process p;
    (void)state;
    pid_t other = grandchild(&p, "sleep 1000 & echo $!");
    assert_int_equal(wait_for(&p), 0);
    wait_until_gone(other);
    end(&p);
}

static void ends_in_order_when_its_stdin_is_closed(void **state)
{
    struct process p;
    (void)state;
    shell(&p, "cat; exit 4");
    close(p.in);
    child_terminate(p.child);
    assert_int_equal(WEXITSTATUS(wait_for(&p)), 4);
    p.in = -1;
    end(&p);
}

/* A child that ignores the end of stdin gets SIGTERM first, and may clean up. */
static void is_asked_to_end_before_it_is_killed(void **state)
{
    struct process p;
    (void)state;
    shell(&p, "trap 'echo bye; exit 5' TERM; while :; do sleep 0.1; done");
    close(p.in);
    child_terminate(p.child);
    assert_int_equal(WEXITSTATUS(wait_for(&p)), 5);
    p.in = -1;
    end(&p);
}

static void kill_ends_the_whole_group(void **state)
{
    struct process p;
    (void)state;
    pid_t other = grandchild(&p, "trap '' TERM; (trap '' TERM; sleep 1000) & echo $!; wait");
    child_kill(p.child, false);
    assert_false(p.ended);
    assert_int_equal(WTERMSIG(wait_for(&p)), SIGKILL);
    wait_until_gone(other);
    end(&p);
}

static void a_forgotten_one_is_silent(void **state)
{
    struct process p;
    (void)state;
    shell(&p, "sleep 1000");
    pid_t pid = child_pid(p.child);
    child_kill(p.child, true);
    while (waitpid(pid, NULL, WNOHANG | WNOWAIT) == 0 && kill(pid, 0) == 0)
        loop_turn(p.loop, true);
    assert_false(p.ended);
    end(&p);
}

static void all_end_with_the_loop(void **state)
{
    struct process p;
    (void)state;
    pid_t other = grandchild(&p, "trap '' TERM; (trap '' TERM; sleep 1000) & echo $!; wait");
    pid_t pid = child_pid(p.child);
    child_terminate_all(p.loop, 10);
    assert_false(is_alive(pid));
    wait_until_gone(other);
    assert_false(p.ended);
    end(&p);
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* Both ignore SIGTERM and their closed stdin. */
#define STUBBORN                                                                                             \
    "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! $$; while :; do sleep 1; done"

/* A daemon with one child and grandchild. It writes their pids to `told`. */
static _Noreturn void be_daemon(const char *script, int told)
{
    struct process p;
    char line[256];
    shell(&p, script);
    if (!hear_line(&p, line) || write(told, line, sizeof(line)) < 0)
        _exit(1);
    for (;;)
        loop_turn(p.loop, true);
}

static pid_t start_daemon(const char *script, pid_t *child, pid_t *grandchild_pid)
{
    int told[2];
    char line[256];
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0)
        be_daemon(script, told[1]);
    close(told[1]);
    assert_true(read(told[0], line, sizeof(line)) > 0);
    close(told[0]);
    char *rest;
    *grandchild_pid = (pid_t)strtol(line, &rest, 10);
    *child = (pid_t)strtol(rest, NULL, 10);
    return pid;
}

static bool is_guard(pid_t pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "r");
    if (file && !fgets(name, sizeof(name), file))
        name[0] = '\0';
    if (file)
        fclose(file);
    return strcmp(name, "toolgate-guard\n") == 0;
}

/* The guard among its children, of which an exec'ed process may have others. 0: none. */
static pid_t guard_now(pid_t daemon)
{
    char path[64];
    int child;
    pid_t found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)daemon, (int)daemon);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (!found && fscanf(file, "%d", &child) == 1)
        found = is_guard(child) ? child : 0;
    fclose(file);
    return found;
}

/* Waits until it has its name. */
static pid_t guard_of(pid_t daemon)
{
    pid_t guard;
    while (!(guard = guard_now(daemon)))
        poll(NULL, 0, 1);
    return guard;
}

static void no_child_survives_a_killed_daemon(void **state)
{
    pid_t child, other;
    (void)state;
    pid_t daemon = start_daemon(STUBBORN, &child, &other);
    pid_t guard = guard_of(daemon);
    assert_true(is_alive(child) && is_alive(other) && is_alive(guard));
    kill(guard, SIGTERM); /* a service manager signals all processes */
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    wait_until_gone(child);
    wait_until_gone(other);
    wait_until_gone(guard);
}

/* The kernel sends it SIGTERM then, unless it ignores that. */
static void dies_with_the_daemon_even_without_the_guard(void **state)
{
    pid_t child, other;
    (void)state;
    pid_t daemon = start_daemon("sleep 1000 & echo $! $$; wait", &child, &other);
    kill(guard_of(daemon), SIGKILL);
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    wait_until_gone(child);
    kill(other, SIGKILL);
}

static void the_guard_holds_one_descriptor(void **state)
{
    pid_t child, other;
    char command[128], line[64] = "";
    (void)state;
    pid_t daemon = start_daemon(STUBBORN, &child, &other);
    pid_t guard = guard_of(daemon);
    snprintf(command, sizeof(command), "readlink /proc/%d/fd/* | tr -d '0-9\n' ", (int)guard);
    do { /* it may still be closing */
        FILE *pipe_in = popen(command, "r");
        assert_non_null(fgets(line, sizeof(line), pipe_in));
        pclose(pipe_in);
    } while (strcmp(line, "/dev/null/dev/null/dev/nullsocket:[]") != 0 && is_alive(guard));
    assert_string_equal(line, "/dev/null/dev/null/dev/nullsocket:[]");
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    wait_until_gone(guard);
}

static void a_new_guard_takes_over(void **state)
{
    struct process p, second;
    (void)state;
    shell(&p, "sleep 1000");
    pid_t guard = guard_of(getpid());
    kill(guard, SIGKILL);
    wait_until_gone(guard);
    shell(&second, "exit 0");
    assert_int_not_equal(guard_of(getpid()), guard);
    assert_int_equal(wait_for(&second), 0);
    end(&second);
    child_kill(p.child, false);
    wait_for(&p);
    end(&p);
    assert_int_equal(guard_now(getpid()), 0); /* no guard is left, no zombie */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gets_its_arguments_as_they_are),
        cmocka_unit_test(gets_only_the_environment_it_is_given),
        cmocka_unit_test(gets_no_other_descriptor),
        cmocka_unit_test(starts_with_normal_signals),
        cmocka_unit_test(leads_a_session_of_its_own),
        cmocka_unit_test(runs_in_its_folder_under_its_limits),
        cmocka_unit_test(talks_both_ways_by_pipes_and_by_sockets),
        cmocka_unit_test(may_open_its_pipes_by_name),
        cmocka_unit_test(reports_an_unknown_command),
        cmocka_unit_test(reports_a_file_that_is_no_program),
        cmocka_unit_test(reports_a_missing_interpreter),
        cmocka_unit_test(reports_a_missing_folder),
        cmocka_unit_test(leaves_no_descriptor_behind),
        cmocka_unit_test(tells_how_it_ended),
        cmocka_unit_test(reports_the_exit_with_sigchld_ignored),
        cmocka_unit_test(reports_a_lost_status),
        cmocka_unit_test(waits_for_others_of_its_group),
        cmocka_unit_test(kills_the_rest_of_its_group),
        cmocka_unit_test(ends_in_order_when_its_stdin_is_closed),
        cmocka_unit_test(is_asked_to_end_before_it_is_killed),
        cmocka_unit_test(kill_ends_the_whole_group),
        cmocka_unit_test(a_forgotten_one_is_silent),
        cmocka_unit_test(all_end_with_the_loop),
        cmocka_unit_test(no_child_survives_a_killed_daemon),
        cmocka_unit_test(dies_with_the_daemon_even_without_the_guard),
        cmocka_unit_test(the_guard_holds_one_descriptor),
        cmocka_unit_test(a_new_guard_takes_over),
    };
    return cmocka_run_group_tests_name("io_child", tests, with_arena, without_arena);
}

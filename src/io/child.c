/*
 * A pidfd reports that the process has ended. It is reaped then; after that
 * its number is used only for the group, while the group has members, as the
 * kernel does not reuse the number that long.
 *
 *   running ─▶ (child_terminate: stdin closed ─▶ SIGTERM ─▶ SIGKILL) ─▶ reaped ─▶ group is empty ─▶ ended
 */
#include "io/child.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "io/conn.h"
#include "io/timer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum child_state { CHILD_RUNNING, CHILD_STDIN_CLOSED, CHILD_SENT_TERM, CHILD_KILLED, CHILD_REAPED };

struct child {
    LIST_ENTRY(child) all;
    struct loop *loop;
    pid_t pid; /* also its group */
    int pidfd;
    struct event *exit_event;
    struct timer timer;
    child_ended *ended;
    void *owner;
    enum child_state state;
    bool forgotten;
    int held[2]; /* its output after child_dismiss; 0 or -1: none */
    int status;
    int64_t linger_until_us;
};

/* Of all loops. */
static LIST_HEAD(, child) children = LIST_HEAD_INITIALIZER(children);
static size_t child_count;

/* ---- the guard: a tiny process that knows the process groups we started and ends them when the daemon is
 * gone, even after kill -9. The kernel's PR_SET_PDEATHSIG reaches a child, but not the child's children. It
 * is forked with the first child, not executed: it shares the daemon's memory pages until they are written
 * and needs no file of its own. It keeps one descriptor open and ignores the signals that end other processes
 * (a terminal's Ctrl-C, a service manager's SIGTERM to the whole group).
 *
 *   daemon ──socket──▶ guard         +group  sent by the new process itself, before it executes its program
 *                                    -group  sent by the daemon when the group is empty
 *                                    end of file: SIGTERM, CHILD_TERM_MS, SIGKILL */

#define CHILD_MAX     4096u /* children at once */
#define GUARD_POLL_MS 5

static struct {
    pid_t pid; /* 0: none */
    int socket;
    pid_t groups[CHILD_MAX]; /* in the guard's own process */
    size_t count;
} guard;

static void guard_drop(pid_t group)
{
    for (size_t i = 0; i < guard.count; i++)
        if (guard.groups[i] == group) {
            guard.groups[i] = guard.groups[--guard.count];
            return;
        }
}

/* Drops the groups that are empty, as the kernel may reuse their numbers. */
static void guard_signal(int number)
{
    for (size_t i = guard.count; i-- > 0;)
        if (kill(-guard.groups[i], number) != 0 && errno == ESRCH)
            guard_drop(guard.groups[i]);
}

static _Noreturn void run_guard(int socket)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM};
    struct child *c;
    pid_t group; /* a message; negative: the group is empty */
    ssize_t n;
    sigset_t none;
    setsid();
    LIST_FOREACH (c, &children, all) /* one that is started again takes over the daemon's children */
        guard.groups[guard.count++] = c->pid;
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "toolgate-guard");
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    dup2(socket, 3);
    close_range(4, ~0u, 0);
    if (chdir("/") == 0) /* so that it keeps no file system mounted; a failure does not matter */
        errno = 0;
    /* Until the daemon's end of the socket is closed. */
    while ((n = recv(3, &group, sizeof(group), 0)) > 0 || (n < 0 && errno == EINTR)) {
        if (n != (ssize_t)sizeof(group))
            continue;
        guard_drop(group > 0 ? group : -group);
        if (group > 0 && guard.count < CHILD_MAX)
            guard.groups[guard.count++] = group;
    }
    int64_t until = clock_mono_us() + (int64_t)CHILD_TERM_MS * 1000;
    guard_signal(SIGTERM);
    while (guard.count && clock_mono_us() < until) {
        poll(NULL, 0, GUARD_POLL_MS);
        guard_signal(0);
    }
    guard_signal(SIGKILL);
    _exit(0);
}

static bool guard_is_running(void)
{
    if (!guard.pid || waitpid(guard.pid, NULL, WNOHANG) == 0)
        return guard.pid != 0;
    close(guard.socket);
    guard.pid = 0;
    return false;
}

/* Starts the guard, also again if somebody ended it. ERR_LIMIT: there are CHILD_MAX children. */
static enum err guard_ensure(struct why *why)
{
    int ends[2];
    if (child_count >= CHILD_MAX)
        return err_set(why, ERR_LIMIT, "%u processes are running, the most that toolgate starts at once",
                       CHILD_MAX);
    if (guard_is_running())
        return OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(why, ERR_IO, "cannot create the socket of the process guard: %s", strerror(errno));
    sigset_t all, before; /* blocked, as the daemon's handlers must not run in the guard */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        run_guard(ends[1]);
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_set(why, ERR_IO, "cannot start the process guard: %s", strerror(error));
    }
    guard.pid = pid;
    guard.socket = ends[0];
    return OK;
}

static void guard_remove(pid_t group)
{
    pid_t message = -group;
    if (guard.pid)
        send(guard.socket, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Only if no group is left. Returns when the guard has ended. */
static void guard_stop(void)
{
    if (!guard_is_running())
        return;
    close(guard.socket);
    waitpid(guard.pid, NULL, 0);
    guard.pid = 0;
}

/* ---- one process, from clone to exec: clone(CLONE_VM | CLONE_VFORK) copies nothing, so its cost does not
 * depend on the daemon's size. The daemon sleeps until the new process has executed its program, and reads
 * from shared memory which step failed. Until then the process runs on its own stack with all signals
 * blocked, and only makes system calls. ---- */

#define CHILD_OPEN_FILES 1024u /* soft limit, which select() can handle; the child may raise it */
#define STACK_BYTES      65536u
#define SIGNAL_SET_BYTES 8u /* of the kernel's sigset_t */

enum spawn_step { STEP_SETUP, STEP_LIMIT, STEP_USER, STEP_SANDBOX, STEP_FOLDER, STEP_PROGRAM };

/* Shared with the new process. */
struct spawn_state {
    const struct child_spec *spec;
    const int *stdio; /* become descriptors 0, 1, 2 */
    const char *program;
    pid_t parent;
    enum spawn_step step; /* the one that failed, with errno; an error of 0: none failed */
    int error;
};

/* A sanitizer would take its stack for ours and needs more memory than the limits may allow. */
#define IN_NEW_PROCESS __attribute__((no_sanitize("address", "undefined")))

/* The hard limit is `value` + `more`. */
IN_NEW_PROCESS static int set_limit(int which, uint64_t value, uint64_t more)
{
    struct rlimit limit;
    if (!value)
        return 0;
    if (getrlimit((__rlimit_resource_t)which, &limit) != 0)
        return -1;
    if (limit.rlim_max > value + more)
        limit.rlim_max = value + more;
    limit.rlim_cur = limit.rlim_max < value ? limit.rlim_max : value;
    return setrlimit((__rlimit_resource_t)which, &limit);
}

IN_NEW_PROCESS static int set_limits(const struct child_limits *limits)
{
    struct rlimit files, core;
    if (set_limit(RLIMIT_DATA, limits->memory_bytes, 0) || set_limit(RLIMIT_FSIZE, limits->file_bytes, 0) ||
        set_limit(RLIMIT_CPU, limits->cpu_s, 1) /* SIGXCPU, and SIGKILL a second later */ ||
        set_limit(RLIMIT_NPROC, limits->processes, 0) || set_limit(RLIMIT_NOFILE, limits->files, 0))
        return -1;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > CHILD_OPEN_FILES && !limits->files) {
        files.rlim_cur = CHILD_OPEN_FILES; /* the daemon raised its own */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
    return 0;
}

/* A session without a terminal, so that no program can ask there for a password; ends with the daemon. */
IN_NEW_PROCESS static void bind_to_daemon(const struct spawn_state *state)
{
    pid_t message = getpid();
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != state->parent)
        _exit(127);
    send(guard.socket, &message, sizeof(message), MSG_NOSIGNAL);
}

#define PROGRAM_FD 3 /* until it is executed */

IN_NEW_PROCESS static int keep_only_stdio(const int stdio[3], int program)
{
    for (int fd = 0; fd < 3; fd++)
        if (dup2(stdio[fd], fd) < 0)
            return -1;
    if (program && program != PROGRAM_FD && dup3(program, PROGRAM_FD, O_CLOEXEC) < 0)
        return -1;
    return close_range(program ? PROGRAM_FD + 1 : 3, ~0u, 0);
}

/* Handlers first: one that ran now would run in the daemon's memory. Uses the system call, as libc refuses to
 * change signals 32 and 33, which our parent may have ignored like the others. */
IN_NEW_PROCESS static void reset_signals(void)
{
    static const unsigned long normal[8]; /* the kernel's sigaction: SIG_DFL, no flags, no mask */
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        syscall(SYS_rt_sigaction, number, normal, NULL, SIGNAL_SET_BYTES);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Root without capabilities: it may not look into other processes, and only the owner's rights are left. */
IN_NEW_PROCESS static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (prctl(PR_SET_SECUREBITS, SECURE_ALL_BITS | SECURE_ALL_LOCKS, 0, 0, 0) != 0 && geteuid() == 0)
        return -1; /* an exec would return them */
    return (int)syscall(SYS_capset, &header, none);
}

/* By system calls, as libc would change all threads, and these are the daemon's. */
IN_NEW_PROCESS static int become(const struct child_identity *identity)
{
    if (!identity)
        return 0;
    bool changes = identity->uid != getuid() || identity->gid != getgid();
    if (changes && (syscall(SYS_setgroups, 1, &identity->gid) != 0 ||
                    syscall(SYS_setresgid, identity->gid, identity->gid, identity->gid) != 0 ||
                    syscall(SYS_setresuid, identity->uid, identity->uid, identity->uid) != 0))
        return -1;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a change of the user clears it */
    if (identity->uid != 0 && drop_capabilities() != 0)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

IN_NEW_PROCESS static int run_child(void *arg)
{
    struct spawn_state *state = arg;
    const struct child_spec *spec = state->spec;
    const struct child_confinement *confinement = spec->confinement;
    bind_to_daemon(state);
    if (become(spec->identity) != 0) {
        state->step = STEP_USER;
    } else if (confinement && (drop_capabilities() != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)) {
        state->step = STEP_SANDBOX;
    } else if (confinement && confinement->landlock >= 0 && /* a descriptor: before these are closed */
               syscall(SYS_landlock_restrict_self, confinement->landlock, 0) != 0) {
        state->step = STEP_SANDBOX;
    } else if (keep_only_stdio(state->stdio, spec->program) != 0) {
        state->step = STEP_SETUP;
    } else if (set_limits(&spec->limits) != 0) {
        state->step = STEP_LIMIT;
    } else if (spec->cwd && chdir(spec->cwd) != 0) {
        state->step = STEP_FOLDER;
    } else if (confinement && confinement->filter && /* last: it need not allow what precedes it */
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, confinement->filter) != 0) {
        state->step = STEP_SANDBOX;
    } else {
        reset_signals();
        if (spec->program) /* what its caller has checked, whatever lies at that path by now */
            syscall(SYS_execveat, PROGRAM_FD, "", spec->argv, spec->env, AT_EMPTY_PATH);
        else
            execve(state->program, (char *const *)spec->argv, (char *const *)spec->env);
        state->step = STEP_PROGRAM;
    }
    state->error = errno;
    _exit(127);
}

/* As a shell does: a name with a slash is a path, any other is looked up in PATH, in which an empty folder
 * means the current one. */
enum err child_find_program(const struct child_spec *spec, char *found, struct why *why)
{
    const char *name = spec->argv[0], *path = "/usr/local/bin:/usr/bin:/bin";
    char not_executable[PATH_MAX] = "";
    if (strchr(name, '/')) {
        if (snprintf(found, PATH_MAX, "%s", name) < PATH_MAX)
            return OK;
        return err_set(why, ERR_NOT_FOUND, "the name of the command is longer than %d bytes", PATH_MAX);
    }
    for (const char *const *env = spec->env; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0) {
            path = *env + 5;
            break;
        }
    const char *at = path;
    for (int len; at; at = at[len] ? at + len + 1 : NULL) {
        len = (int)strcspn(at, ":");
        if (snprintf(found, PATH_MAX, "%.*s/%s", len ? len : 1, len ? at : ".", name) >= PATH_MAX)
            continue;
        struct stat info;
        if (stat(found, &info) == 0 && S_ISREG(info.st_mode) && access(found, X_OK) == 0)
            return OK;
        if (!not_executable[0] && access(found, F_OK) == 0)
            memcpy(not_executable, found, sizeof(not_executable));
    }
    if (not_executable[0])
        return err_set(why, ERR_NOT_FOUND, "'%s' is not executable: make it so (chmod +x)", not_executable);
    return err_set(why, ERR_NOT_FOUND, "no command '%s' in PATH (%s): install it, or give its full path",
                   name, path);
}

static enum err explain_exec(const struct spawn_state *state, struct why *why)
{
    const char *program = state->program;
    switch (state->error) {
    case ENOENT:
    case ENOTDIR:
        if (access(program, F_OK) == 0 && !state->spec->cwd)
            return err_set(why, ERR_NOT_FOUND,
                           "cannot run '%s': the interpreter in its first line does not exist", program);
        return err_set(why, ERR_NOT_FOUND,
                       "no command '%s', or the interpreter in its first line does not exist", program);
    case ENOEXEC:
        return err_set(why, ERR_NOT_FOUND,
                       "'%s' is not a program: a script's first line must name its interpreter (#!/bin/sh)",
                       program);
    case EACCES:
        return err_set(why, ERR_NOT_FOUND, "'%s' is not executable: make it so (chmod +x)", program);
    case E2BIG:
        return err_set(why, ERR_LIMIT,
                       "the arguments and environment of '%s' are longer than the system allows", program);
    }
    return err_set(why, ERR_IO, "cannot run '%s': %s", program, strerror(state->error));
}

/* The process leads a session and a group of its own. `pidfd` becomes readable when it has ended. */
static enum err spawn(const struct child_spec *spec, const int stdio[3], pid_t *pid, int *pidfd,
                      struct why *why)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    const char *name = spec->argv[0];
    char program[PATH_MAX];
    struct spawn_state state = {.spec = spec, .stdio = stdio, .program = program, .parent = getpid()};
    sigset_t all, before;
    enum err err = guard_ensure(why);
    if (!err)
        err = child_find_program(spec, program, why);
    if (err)
        return err;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    *pid = clone(run_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &state,
                 pidfd);
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (*pid < 0)
        return err_set(why, ERR_IO, "cannot start '%s': %s", name, strerror(error));
    if (!state.error)
        return OK;
    waitpid(*pid, NULL, 0);
    close(*pidfd);
    guard_remove(*pid);
    if (state.step == STEP_PROGRAM)
        return explain_exec(&state, why);
    if (state.step == STEP_FOLDER)
        return err_set(why, ERR_NOT_FOUND, "cannot run '%s' in the folder '%s': %s", name, spec->cwd,
                       strerror(state.error));
    return err_set(why, ERR_IO, "cannot prepare '%s': setting its %s failed: %s", name,
                   state.step == STEP_LIMIT     ? "limits"
                   : state.step == STEP_SANDBOX ? "sandbox"
                   : state.step == STEP_USER    ? "user"
                                                : "descriptors",
                   strerror(state.error));
}

/* ---- children ---- */

#define GROUP_POLL_MS 10u   /* between checks whether the group is empty */
#define KILL_WAIT_MS  5000u /* at the daemon's end, for killed processes that do not go (their disk hangs) */

static void stop_watching(struct child *c)
{
    if (c->exit_event)
        event_free(c->exit_event);
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->exit_event = NULL;
    c->pidfd = -1;
}

static void free_child(struct child *c)
{
    timer_clear(&c->timer);
    stop_watching(c);
    for (int i = 0; i < 2; i++)
        if (c->held[i] > 0)
            close(c->held[i]);
    LIST_REMOVE(c, all);
    child_count--;
    guard_remove(c->pid);
    free(c);
}

/* False if the group is empty. */
static bool signal_group(const struct child *c, int number)
{
    return kill(-c->pid, number) == 0 || errno != ESRCH;
}

static void linger(void *arg)
{
    struct child *c = arg;
    bool others = signal_group(c, 0);
    if (others && clock_mono_us() < c->linger_until_us) {
        timer_set(&c->timer, c->loop, GROUP_POLL_MS, linger, c);
        return;
    }
    if (others)
        signal_group(c, SIGKILL);
    if (!c->forgotten)
        c->ended(c->owner, c->status);
    free_child(c);
}

static bool reap(struct child *c)
{
    pid_t got;
    do
        got = waitpid(c->pid, &c->status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        c->status = CHILD_STATUS_LOST;
    return got != 0;
}

static void on_exit_event(evutil_socket_t fd, short what, void *arg)
{
    struct child *c = arg;
    (void)fd, (void)what;
    if (!reap(c))
        return;
    stop_watching(c);
    timer_clear(&c->timer);
    c->linger_until_us = c->state == CHILD_KILLED ? 0 : clock_mono_us() + CHILD_LINGER_MS * 1000;
    c->state = CHILD_REAPED;
    linger(c);
}

static void escalate(void *arg)
{
    struct child *c = arg;
    bool term = c->state == CHILD_STDIN_CLOSED;
    signal_group(c, term ? SIGTERM : SIGKILL);
    if (term)
        timer_set(&c->timer, c->loop, CHILD_KILL_MS, escalate, c);
    c->state = term ? CHILD_SENT_TERM : CHILD_KILLED;
}

void child_terminate(struct child *c)
{
    if (c->state != CHILD_RUNNING)
        return;
    c->state = CHILD_STDIN_CLOSED;
    timer_set(&c->timer, c->loop, CHILD_TERM_MS, escalate, c);
}

void child_dismiss(struct child *c, int output, int errors)
{
    c->held[0] = output < 0 ? -1 : fcntl(output, F_DUPFD_CLOEXEC, 3);
    c->held[1] = errors < 0 ? -1 : fcntl(errors, F_DUPFD_CLOEXEC, 3);
    c->forgotten = true;
    if (c->state > CHILD_STDIN_CLOSED)
        return;
    c->state = CHILD_STDIN_CLOSED;
    escalate(c);
}

void child_kill(struct child *c, bool forget)
{
    c->forgotten |= forget;
    signal_group(c, SIGKILL);
    c->linger_until_us = 0; /* of one that is reaped already: linger's next turn ends it */
    if (c->state == CHILD_REAPED)
        return;
    c->state = CHILD_KILLED;
    timer_clear(&c->timer);
}

struct channels {
    int ours[3], theirs[3]; /* stdin, stdout, stderr; -1: closed */
};

static void close_all(int fds[3])
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Our ends are non-blocking; the child's are blocking, as programs expect. */
static enum err open_channels(struct channels *channels, const struct child_spec *spec, struct why *why)
{
    int opened = 0;
    *channels = (struct channels){{-1, -1, -1}, {-1, -1, -1}};
    for (int fd = 0; fd < 3; fd++) /* a channel below 3 would be overwritten by the child's stdio */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            break;
    for (; opened < 3; opened++) {
        int ends[2], ours = opened == 0; /* a pipe is written at its second end */
        if (spec->pipes || opened == 2 ? pipe2(ends, O_CLOEXEC)
                                       : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
            break;
        channels->ours[opened] = ends[ours];
        channels->theirs[opened] = ends[!ours];
        if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) != 0)
            break;
    }
    return opened == 3
               ? OK
               : err_set(why, ERR_IO, "cannot start '%s': no pipes: %s", spec->argv[0], strerror(errno));
}

/* Its end will be reported. A failure ends it. */
static enum err watch(struct child *c, const char *name, struct why *why)
{
    c->exit_event = event_new(loop_base(c->loop), c->pidfd, EV_READ | EV_PERSIST, on_exit_event, c);
    if (c->exit_event && event_add(c->exit_event, NULL) == 0) {
        LIST_INSERT_HEAD(&children, c, all);
        child_count++;
        return OK;
    }
    err_set(why, ERR_IO, "cannot watch the process '%s': %s", name, strerror(errno));
    signal_group(c, SIGKILL);
    waitpid(c->pid, NULL, 0);
    guard_remove(c->pid);
    stop_watching(c);
    return ERR_IO;
}

enum err child_start(struct loop *loop, const struct child_spec *spec, child_ended *ended, void *owner,
                     struct child **out, int *in, int *output, int *errors, struct why *why)
{
    struct channels channels;
    struct sigaction now, normal = {.sa_handler = SIG_DFL};
    struct child *c = alloc_zeroed(sizeof(*c));
    *out = NULL;
    *in = *output = *errors = -1;
    *c = (struct child){.loop = loop, .pidfd = -1, .ended = ended, .owner = owner};
    /* If our parent left SIGCHLD ignored, the kernel would reap by itself and lose how processes ended. */
    if (sigaction(SIGCHLD, NULL, &now) == 0 && (now.sa_handler == SIG_IGN || now.sa_flags & SA_NOCLDWAIT))
        sigaction(SIGCHLD, &normal, NULL);
    enum err err = open_channels(&channels, spec, why);
    if (!err)
        err = spawn(spec, channels.theirs, &c->pid, &c->pidfd, why);
    if (!err)
        err = watch(c, spec->argv[0], why);
    close_all(channels.theirs);
    if (err) {
        close_all(channels.ours);
        free(c);
        return err;
    }
    *in = channels.ours[0];
    *output = channels.ours[1];
    *errors = channels.ours[2];
    *out = c;
    return OK;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

struct str child_status(struct arena *arena, int status)
{
    if (status == CHILD_STATUS_LOST)
        return STR_LIT("ended, exit status unknown");
    if (WIFEXITED(status))
        return arena_printf(arena, "exit code %d", WEXITSTATUS(status));
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (name)
        return arena_printf(arena, "killed by SIG%s", name);
    return arena_printf(arena, "ended with the status %d", status);
}

static void signal_all(const struct loop *loop, int number)
{
    struct child *c;
    LIST_FOREACH (c, &children, all)
        if (c->loop == loop)
            signal_group(c, number);
}

/* Reaps the children of the loop and frees those whose group is empty, or at once if `force`. *running: how
 * many are not reaped. Returns how many are left. */
static size_t collect(const struct loop *loop, bool force, size_t *running)
{
    size_t left = 0;
    *running = 0;
    for (struct child *c = LIST_FIRST(&children), *next; c; c = next) {
        next = LIST_NEXT(c, all);
        if (c->loop != loop)
            continue;
        if (c->state != CHILD_REAPED && reap(c))
            c->state = CHILD_REAPED;
        *running += c->state != CHILD_REAPED;
        if (force || (c->state == CHILD_REAPED && !signal_group(c, 0)))
            free_child(c);
        else
            left++;
    }
    return left;
}

static size_t wait_for_all(const struct loop *loop, uint32_t ms)
{
    int64_t until = clock_mono_us() + (int64_t)ms * 1000;
    size_t running;
    while (collect(loop, false, &running) && clock_mono_us() < until)
        poll(NULL, 0, 1);
    return running;
}

void child_terminate_all(struct loop *loop, uint32_t ms)
{
    signal_all(loop, SIGTERM);
    wait_for_all(loop, ms);
    signal_all(loop, SIGKILL);
    size_t running = wait_for_all(loop, CHILD_LINGER_MS);
    for (uint32_t waited = 0; running && waited < KILL_WAIT_MS; waited += CHILD_LINGER_MS)
        running = wait_for_all(loop, CHILD_LINGER_MS);
    collect(loop, true, &running); /* a group with zombies that are not reaped never becomes empty */
    if (LIST_EMPTY(&children))
        guard_stop();
}

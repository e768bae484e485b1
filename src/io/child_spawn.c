/*
 * clone(CLONE_VM | CLONE_VFORK) copies nothing, so its cost does not depend on
 * the daemon's size. The daemon sleeps until the new process has executed its
 * program, and reads from shared memory which step failed. Until then the
 * process runs on its own stack with all signals blocked, and only makes
 * system calls.
 */
#include "io/child_spawn.h"

#include "io/child_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES      65536u
#define SIGNAL_SET_BYTES 8u /* of the kernel's sigset_t */

enum spawn_step { STEP_SETUP, STEP_LIMIT, STEP_USER, STEP_SANDBOX, STEP_FOLDER, STEP_PROGRAM };

/* Shared with the new process. */
struct spawn_state {
    const struct child_spawn_options *options;
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
    struct child_guard_message message = {getpid()};
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != state->parent)
        _exit(127);
    if (state->options->guard >= 0)
        send(state->options->guard, &message, sizeof(message), MSG_NOSIGNAL);
}

IN_NEW_PROCESS static int keep_only_stdio(const int stdio[3])
{
    for (int fd = 0; fd < 3; fd++)
        if (dup2(stdio[fd], fd) < 0)
            return -1;
    return close_range(3, ~0u, 0);
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

/* Before the descriptors are closed, of which the ruleset is one. */
IN_NEW_PROCESS static int restrict_files(const struct child_confinement *confinement)
{
    if (!confinement)
        return 0;
    if (drop_capabilities() != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return confinement->landlock < 0 ? 0 : (int)syscall(SYS_landlock_restrict_self, confinement->landlock, 0);
}

/* Last, so that the filter need not allow what precedes it. */
IN_NEW_PROCESS static int filter_calls(const struct child_confinement *confinement)
{
    if (!confinement || !confinement->filter)
        return 0;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, confinement->filter);
}

IN_NEW_PROCESS static int run_child(void *arg)
{
    struct spawn_state *state = arg;
    const struct child_spec *spec = state->options->spec;
    bind_to_daemon(state);
    if (become(spec->identity) != 0) {
        state->step = STEP_USER;
    } else if (restrict_files(spec->confinement) != 0) {
        state->step = STEP_SANDBOX;
    } else if (keep_only_stdio(state->options->stdio) != 0) {
        state->step = STEP_SETUP;
    } else if (set_limits(&spec->limits) != 0) {
        state->step = STEP_LIMIT;
    } else if (spec->cwd && chdir(spec->cwd) != 0) {
        state->step = STEP_FOLDER;
    } else if (filter_calls(spec->confinement) != 0) {
        state->step = STEP_SANDBOX;
    } else {
        reset_signals();
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
        if (access(program, F_OK) == 0 && !state->options->spec->cwd)
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

enum err child_spawn(const struct child_spawn_options *options, pid_t *pid, int *pidfd, struct why *why)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    const char *name = options->spec->argv[0];
    char program[PATH_MAX];
    struct spawn_state state = {.options = options, .program = program, .parent = getpid()};
    sigset_t all, before;
    enum err err = child_find_program(options->spec, program, why);
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
    child_guard_remove(*pid);
    if (state.step == STEP_PROGRAM)
        return explain_exec(&state, why);
    if (state.step == STEP_FOLDER)
        return err_set(why, ERR_NOT_FOUND, "cannot run '%s' in the folder '%s': %s", name, options->spec->cwd,
                       strerror(state.error));
    return err_set(why, ERR_IO, "cannot prepare '%s': setting its %s failed: %s", name,
                   state.step == STEP_LIMIT     ? "limits"
                   : state.step == STEP_SANDBOX ? "sandbox"
                   : state.step == STEP_USER    ? "user"
                                                : "descriptors",
                   strerror(state.error));
}

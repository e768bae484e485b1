/*
 * See child_spawn.h. clone(CLONE_VM | CLONE_VFORK): nothing is copied, so it
 * costs the same however large the daemon has grown; we sleep until the new
 * process is another program, and it tells us through our own memory what
 * went wrong. Until then it runs on a stack of its own, with every signal
 * blocked, and calls the kernel only.
 */
#include "io/child_spawn.h"

#include "io/child_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#define SIGNAL_SET_BYTES 8u /* the kernel's own */

enum spawn_step { STEP_SETUP, STEP_LIMIT, STEP_FOLDER, STEP_PROGRAM };

/* Shared with the new process. */
struct birth {
    const struct spawn *spawn;
    const char *program;
    pid_t parent;
    enum spawn_step step; /* where it failed, and errno then; 0: it did not */
    int error;
};

/* ---- in the new process ---------------------------------------------------------------------- */

/* A sanitizer takes its stack for ours, and wants memory that the limits do not leave. */
#define IN_NEW_PROCESS __attribute__((no_sanitize("address", "undefined")))

IN_NEW_PROCESS static int limit_to(int which, uint64_t value, uint64_t more)
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

/* Past its soft limit of processor time it is told (SIGXCPU), a second later it is killed. */
IN_NEW_PROCESS static int limit_all(const struct child_limits *limits)
{
    struct rlimit files;
    if (limit_to(RLIMIT_DATA, limits->memory_bytes, 0) || limit_to(RLIMIT_FSIZE, limits->file_bytes, 0) ||
        limit_to(RLIMIT_CPU, limits->cpu_s, 1) || limit_to(RLIMIT_NPROC, limits->processes, 0) ||
        limit_to(RLIMIT_NOFILE, limits->files, 0))
        return -1;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > CHILD_OPEN_FILES && !limits->files) {
        files.rlim_cur = CHILD_OPEN_FILES; /* the daemon raised its own */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    struct rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
    return 0;
}

/* No session of a terminal: nothing may ask there for a password. Dies with us, and the guard knows. */
IN_NEW_PROCESS static void tie(const struct birth *birth)
{
    struct child_guard_message word = {getpid()};
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != birth->parent)
        _exit(127);
    if (birth->spawn->guard >= 0)
        send(birth->spawn->guard, &word, sizeof(word), MSG_NOSIGNAL);
}

IN_NEW_PROCESS static int hold_only_stdio(const int stdio[3])
{
    for (int fd = 0; fd < 3; fd++)
        if (dup2(stdio[fd], fd) < 0)
            return -1;
    return close_range(3, ~0u, 0);
}

/* Handlers first: one that ran now would run in the daemon's memory. The kernel is asked itself: libc keeps
 * its hands on two of them (32, 33), which whoever started us may have ignored like the others. */
IN_NEW_PROCESS static void free_signals(void)
{
    static const unsigned long normal[8]; /* the kernel's sigaction: SIG_DFL, no flags, no mask */
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        syscall(SYS_rt_sigaction, number, normal, NULL, SIGNAL_SET_BYTES);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

IN_NEW_PROCESS static int fail(struct birth *birth, enum spawn_step step)
{
    birth->step = step;
    birth->error = errno;
    _exit(127);
}

IN_NEW_PROCESS static int be_born(void *arg)
{
    struct birth *birth = arg;
    const struct child_spec *spec = birth->spawn->spec;
    tie(birth);
    if (hold_only_stdio(birth->spawn->stdio) != 0)
        return fail(birth, STEP_SETUP);
    if (limit_all(&spec->limits) != 0)
        return fail(birth, STEP_LIMIT);
    if (spec->cwd && chdir(spec->cwd) != 0)
        return fail(birth, STEP_FOLDER);
    free_signals();
    execve(birth->program, (char *const *)spec->argv, (char *const *)spec->env);
    return fail(birth, STEP_PROGRAM);
}

/* ---- which program --------------------------------------------------------------------------- */

static const char *path_of(const char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* The next folder of PATH, joined with the name; an empty folder is the present one. */
static bool next_candidate(const char **path, const char *name, char out[PATH_MAX])
{
    const char *at = *path;
    if (!at)
        return false;
    int len = (int)strcspn(at, ":");
    *path = at[len] ? at + len + 1 : NULL;
    int n = len ? snprintf(out, PATH_MAX, "%.*s/%s", len, at, name) : snprintf(out, PATH_MAX, "./%s", name);
    if (n >= PATH_MAX)
        out[0] = '\0';
    return true;
}

/* As a shell looks one up: what holds a slash is where it says, else the first in PATH that may be run. */
static enum err find_program(const struct child_spec *spec, char found[PATH_MAX], struct why *why)
{
    const char *name = spec->argv[0], *path = path_of(spec->env), *rest = path;
    char refused[PATH_MAX] = "";
    if (strchr(name, '/')) {
        if (snprintf(found, PATH_MAX, "%s", name) < PATH_MAX)
            return OK;
        return err_set(why, ERR_NOT_FOUND, "the name of the command has more than %d bytes", PATH_MAX);
    }
    while (next_candidate(&rest, name, found)) {
        if (is_program(found))
            return OK;
        if (!refused[0] && access(found, F_OK) == 0)
            memcpy(refused, found, sizeof(refused));
    }
    if (refused[0])
        return err_set(why, ERR_NOT_FOUND, "'%s' may not be executed: give it the right (chmod +x)", refused);
    return err_set(why, ERR_NOT_FOUND,
                   "no command '%s' in PATH (%s): install it, or name it with its whole path", name, path);
}

/* ---- in the daemon --------------------------------------------------------------------------- */

static enum err explain_program(const struct birth *birth, struct why *why)
{
    const char *program = birth->program, *words = strerror(birth->error);
    bool exists = access(program, F_OK) == 0;
    switch (birth->error) {
    case ENOENT:
    case ENOTDIR:
        if (exists && !birth->spawn->spec->cwd)
            return err_set(why, ERR_NOT_FOUND,
                           "'%s' cannot be run: the interpreter that its first line names is not there",
                           program);
        return err_set(why, ERR_NOT_FOUND, "no command '%s', or no interpreter that its first line names",
                       program);
    case ENOEXEC:
        return err_set(why, ERR_NOT_FOUND,
                       "'%s' is no program: a script's first line must name its interpreter (#!/bin/sh)",
                       program);
    case EACCES:
        return err_set(why, ERR_NOT_FOUND, "'%s' may not be executed: give it the right (chmod +x)", program);
    case E2BIG:
        return err_set(why, ERR_LIMIT,
                       "the arguments and environment of '%s' are longer than the system allows", program);
    }
    return err_set(why, ERR_IO, "cannot run '%s': %s", program, words);
}

static enum err explain(const struct birth *birth, struct why *why)
{
    const char *words = strerror(birth->error), *name = birth->spawn->spec->argv[0];
    if (birth->step == STEP_PROGRAM)
        return explain_program(birth, why);
    if (birth->step == STEP_FOLDER)
        return err_set(why, ERR_NOT_FOUND, "cannot run '%s' in the folder '%s': %s", name,
                       birth->spawn->spec->cwd, words);
    return err_set(why, ERR_IO, "cannot prepare '%s': its %s could not be set: %s", name,
                   birth->step == STEP_LIMIT ? "limits" : "descriptors", words);
}

enum err child_spawn(const struct spawn *spawn, pid_t *pid, int *pidfd, struct why *why)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    char program[PATH_MAX];
    struct birth birth = {.spawn = spawn, .program = program, .parent = getpid()};
    sigset_t all, before;
    enum err err = find_program(spawn->spec, program, why);
    if (err)
        return err;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    *pid =
        clone(be_born, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &birth, pidfd);
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (*pid < 0)
        return err_set(why, ERR_IO, "cannot start '%s': %s", spawn->spec->argv[0], strerror(error));
    if (!birth.error)
        return OK;
    waitpid(*pid, NULL, 0);
    close(*pidfd);
    child_guard_remove(*pid);
    return explain(&birth, why);
}

/*
 * The guard is forked, not executed: it shares the daemon's memory pages until
 * they are written and needs no file of its own. It keeps one descriptor open
 * and ignores the signals that end other processes (a terminal's Ctrl-C, a
 * service manager's SIGTERM to the whole group).
 */
#include "io/child_guard.h"

#include "base/clock.h"
#include "io/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GUARD_POLL_MS 5

static struct {
    pid_t pid; /* 0: none */
    int socket;
    pid_t groups[CHILD_MAX];
    size_t count;
} guard;

void child_guard_add(pid_t group)
{
    for (size_t i = 0; i < guard.count; i++)
        if (guard.groups[i] == group)
            return;
    if (guard.count < CHILD_MAX)
        guard.groups[guard.count++] = group;
}

static void drop(pid_t group)
{
    for (size_t i = 0; i < guard.count; i++)
        if (guard.groups[i] == group) {
            guard.groups[i] = guard.groups[--guard.count];
            return;
        }
}

/* Drops the groups that are empty, as the kernel may reuse their numbers. */
static void signal_all(int number)
{
    for (size_t i = guard.count; i-- > 0;)
        if (kill(-guard.groups[i], number) != 0 && errno == ESRCH)
            drop(guard.groups[i]);
}

/* Reads messages until the daemon's end of the socket is closed. */
static void follow_daemon(int socket)
{
    struct child_guard_message message;
    ssize_t n;
    while ((n = recv(socket, &message, sizeof(message), 0)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        if (n == (ssize_t)sizeof(message) && message.group > 0)
            child_guard_add(message.group);
        else if (n == (ssize_t)sizeof(message))
            drop(-message.group);
    }
}

static _Noreturn void run_guard(int socket)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM};
    sigset_t none;
    setsid();
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
    follow_daemon(3);
    int64_t until = clock_mono_us() + (int64_t)CHILD_TERM_MS * 1000;
    signal_all(SIGTERM);
    while (guard.count && clock_mono_us() < until) {
        poll(NULL, 0, GUARD_POLL_MS);
        signal_all(0);
    }
    signal_all(SIGKILL);
    _exit(0);
}

static bool is_running(void)
{
    if (!guard.pid || waitpid(guard.pid, NULL, WNOHANG) == 0)
        return guard.pid != 0;
    close(guard.socket);
    guard.pid = 0;
    return false;
}

static enum err start_guard(struct why *why)
{
    int ends[2];
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

enum err child_guard_ensure(int *socket, struct why *why)
{
    enum err err = OK;
    if (guard.count >= CHILD_MAX)
        return err_set(why, ERR_LIMIT, "%u processes are running, the most that toolgate starts at once",
                       CHILD_MAX);
    if (!is_running())
        err = start_guard(why);
    *socket = err ? -1 : guard.socket;
    return err;
}

void child_guard_remove(pid_t group)
{
    struct child_guard_message message = {-group};
    drop(group);
    if (guard.pid)
        send(guard.socket, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void child_guard_stop(void)
{
    if (!is_running())
        return;
    close(guard.socket);
    waitpid(guard.pid, NULL, 0);
    guard.pid = 0;
}

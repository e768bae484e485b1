/*
 * See child_guard.h. Forked, not another program: it shares the daemon's
 * memory pages until they are written to, and needs no file of its own. It
 * holds one descriptor, ignores what ends others (a terminal's Ctrl-C, a
 * service manager's SIGTERM to all), and goes when the daemon has gone.
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

#define GUARD_LOOK_MS 5

/* Of the process, as its children are. */
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

/* ---- in the guard ---------------------------------------------------------------------------- */

/* Only to those that are still there: who has nobody left is dropped, so that its number is not used again.
 */
static void signal_all(int number)
{
    for (size_t i = guard.count; i-- > 0;)
        if (kill(-guard.groups[i], number) != 0 && errno == ESRCH)
            drop(guard.groups[i]);
}

static void end_all(void)
{
    int64_t until = clock_mono_us() + (int64_t)CHILD_TERM_MS * 1000;
    signal_all(SIGTERM);
    while (guard.count && clock_mono_us() < until) {
        poll(NULL, 0, GUARD_LOOK_MS);
        signal_all(0);
    }
    signal_all(SIGKILL);
}

static void listen_to_daemon(int socket)
{
    struct child_guard_message words[64];
    ssize_t n;
    while ((n = recv(socket, words, sizeof(words[0]), 0)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        if (n == (ssize_t)sizeof(words[0]) && words[0].group > 0)
            child_guard_add(words[0].group);
        else if (n == (ssize_t)sizeof(words[0]))
            drop(-words[0].group);
    }
}

static void hold_nothing_but(int socket)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    dup2(socket, 3);
    close_range(4, ~0u, 0);
}

static void ignore_signals(void)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM};
    sigset_t none;
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void be_guard(int socket)
{
    setsid();
    ignore_signals();
    prctl(PR_SET_NAME, "toolgate-guard");
    hold_nothing_but(socket);
    if (chdir("/") == 0) /* else it keeps a file system from being unmounted: no reason to end */
        errno = 0;
    listen_to_daemon(3);
    end_all();
    _exit(0);
}

/* ---- in the daemon --------------------------------------------------------------------------- */

static bool is_there(void)
{
    if (!guard.pid || waitpid(guard.pid, NULL, WNOHANG) == 0)
        return guard.pid != 0;
    close(guard.socket);
    guard.pid = 0;
    return false;
}

static enum err make_guard(struct why *why)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(why, ERR_IO, "cannot make a socket for the guard of processes: %s", strerror(errno));
    /* Before the fork, which would inherit a full one: signals come to the daemon's handlers otherwise. */
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        be_guard(ends[1]);
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_set(why, ERR_IO, "cannot start the guard of processes: %s", strerror(error));
    }
    guard.pid = pid;
    guard.socket = ends[0];
    return OK;
}

enum err child_guard_ensure(int *socket, struct why *why)
{
    enum err err = OK;
    if (guard.count >= CHILD_MAX)
        return err_set(why, ERR_LIMIT, "%u processes are running already, the most that are started at once",
                       CHILD_MAX);
    if (!is_there())
        err = make_guard(why);
    *socket = err ? -1 : guard.socket;
    return err;
}

void child_guard_remove(pid_t group)
{
    struct child_guard_message word = {-group};
    drop(group);
    if (guard.pid) /* one that is gone needs no word; a full socket is the kernel's trouble, not ours */
        send(guard.socket, &word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void child_guard_stop(void)
{
    if (!is_there())
        return;
    close(guard.socket);
    waitpid(guard.pid, NULL, 0);
    guard.pid = 0;
}

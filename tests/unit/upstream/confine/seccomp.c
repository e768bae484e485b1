/* The filter for a kernel whose Landlock keeps no signals back, in a process that is the caller's child as an
 * upstream is the daemon's. */

#include "unit.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "upstream/confine/seccomp.h"

#define ABI_OF_DEBIAN_12 2

enum { GOOD, NO_FILTER, DAEMON, THREAD, USER, PIDFD, CHILD, OWN_THREAD, GROUP };

static int fails(long result, int error)
{
    return result == -1 && errno == error;
}

static int try_all(const struct sock_fprog *filter)
{
    pid_t daemon = getppid();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter))
        return NO_FILTER;
    if (!fails(kill(daemon, 0), EPERM))
        return DAEMON;
    if (!fails(syscall(SYS_tgkill, daemon, daemon, 0), EPERM))
        return THREAD;
    if (!fails(kill(-1, 0), EPERM))
        return USER;
    if (!fails(syscall(SYS_pidfd_send_signal, 0, 0, NULL, 0), ENOSYS))
        return PIDFD;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    if (child < 0 || kill(child, SIGKILL) != 0 || waitpid(child, NULL, 0) != child)
        return CHILD;
    if (syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0) != 0)
        return OWN_THREAD;
    return kill(0, 0) == 0 ? GOOD : GROUP;
}

TEST(spares_the_daemon_where_landlock_does_not)
{
    if (!seccomp_is_supported())
        skip();
    struct arena *arena = arena_new();
    const struct sock_fprog *filter = seccomp_filter(arena, false, ABI_OF_DEBIAN_12);
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_all(filter));
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_true(WIFEXITED(status));
    assert_int_equal(GOOD, WEXITSTATUS(status));
    arena_free(arena);
}

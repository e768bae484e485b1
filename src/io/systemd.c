/* The protocols of sd_notify(3) and sd_listen_fds(3), as their manual pages describe them. */
#include "io/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SYSTEMD_STATE_MAX_BYTES 1024u

void systemd_notify(const char *format, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char state[SYSTEMD_STATE_MAX_BYTES];
    va_list args;
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@') /* the NUL of the abstract namespace */
        address.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    va_start(args, format);
    vsnprintf(state, sizeof(state), format, args);
    va_end(args);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* Without a listener this fails, which must not stop the daemon. */
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
    close(fd);
}

/* False if the variable is no whole number, or `pid_name` names another process. */
static bool env_number(const char *name, const char *pid_name, int64_t *out)
{
    const char *text = getenv(name), *pid = getenv(pid_name);
    char *end;
    if (!text || (pid && strtol(pid, NULL, 10) != getpid()))
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

int64_t systemd_watchdog_us(void)
{
    int64_t us;
    return env_number("WATCHDOG_USEC", "WATCHDOG_PID", &us) && us > 1 ? us / 2 : 0;
}

enum err systemd_listen_fd(int *fd, struct why *why)
{
    int64_t count = 0;
    *fd = -1;
    if (!getenv("LISTEN_PID") || !env_number("LISTEN_FDS", "LISTEN_PID", &count) || count == 0)
        return OK;
    if (count != 1)
        return err_set(why, ERR_CONFIG,
                       "systemd handed over %" PRId64 " sockets, expected one: keep one ListenStream= in the "
                       "socket unit",
                       count);
    int domain = 0, type = 0, accepts = 0, first = SYSTEMD_FIRST_FD;
    socklen_t size = sizeof(int);
    if (getsockopt(first, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX ||
        getsockopt(first, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM ||
        getsockopt(first, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) != 0 || !accepts)
        return err_set(why, ERR_CONFIG,
                       "the socket that systemd handed over is not a listening Unix stream socket: give the "
                       "socket unit ListenStream=/path");
    fcntl(SYSTEMD_FIRST_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SYSTEMD_FIRST_FD, F_SETFL, O_NONBLOCK | fcntl(SYSTEMD_FIRST_FD, F_GETFL));
    *fd = SYSTEMD_FIRST_FD;
    return OK;
}

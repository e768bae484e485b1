/*
 * If no file descriptor is left, a spare one is closed to accept the connection, send an
 * error and close it: otherwise the level-triggered event would fire forever.
 */
#include "server/listener.h"

#include "base/alloc.h"
#include "base/log.h"
#include "io/descriptor.h"
#include "io/systemd.h"
#include "io/timer.h"
#include "io/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES_RESERVED     64u /* for logs, timers, policies being read, … */
#define FILES_RESERVED_MIN 24u /* the same, if the host allows few */

struct listener {
    int spare;
    bool inherited, ready;
    struct unix_socket socket;
    struct loop *loop;
    struct descriptor *acceptable;
    struct timer resume; /* set: it does not accept */
    const struct listener_hooks *hooks;
    void *owner;
};

static int accept_one(const struct listener *l)
{
    int fd;
    do
        fd = accept4(l->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    return fd;
}

/* Trades the spare descriptor for the connection, to send an error. The kernel checks for a free descriptor
 * before it checks for a connection, so there may be none. False: even this failed. */
static bool refuse_one(struct listener *l)
{
    if (l->spare < 0)
        return false;
    close(l->spare);
    int fd = accept_one(l);
    bool failed = fd < 0 && errno != EAGAIN;
    if (fd >= 0) {
        l->hooks->no_files(l->owner, fd);
        close(fd);
    }
    l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return !failed && l->spare >= 0;
}

static void on_acceptable(void *owner, int fd, bool readable, bool writable)
{
    (void)fd, (void)readable, (void)writable;
    ((struct listener *)owner)->ready = true;
}

static void on_resume(void *owner)
{
    descriptor_watch(((struct listener *)owner)->acceptable, true, false);
}

void listener_accept(struct listener *l)
{
    if (!l || !l->ready)
        return;
    l->ready = false;
    for (int i = 0; i < LISTENER_ACCEPTS_PER_TURN; i++) {
        int fd = accept_one(l);
        if (fd >= 0) {
            l->hooks->accepted(l->owner, fd);
            continue;
        }
        bool no_files = errno == EMFILE || errno == ENFILE;
        /* One refusal per turn: connections may end before the next. */
        if (errno != EAGAIN && !(no_files && refuse_one(l))) {
            descriptor_watch(l->acceptable, false, false);
            timer_set(&l->resume, l->loop, LISTENER_PAUSE_MS, on_resume, l);
            log_event(LOG_ERROR, "accept_paused", LOG_NUM("ms", LISTENER_PAUSE_MS),
                      LOG_TEXT("why", "no file descriptor left: raise LimitNOFILE= (or ulimit -n)"));
        }
        return;
    }
}

/* After the shutdown, no connection can join those that wait. */
void listener_accept_last(struct listener *l)
{
    int fd = -1;
    if (l->inherited || shutdown(l->socket.fd, SHUT_RD) != 0)
        return;
    while ((fd = accept_one(l)) >= 0)
        l->hooks->accepted(l->owner, fd);
}

enum err listener_new(struct loop *loop, const char *path, mode_t mode, const struct listener_hooks *hooks,
                      void *owner, struct listener **out, struct why *why)
{
    static const struct unix_socket_names names = {"socket", "--socket, or 'socket' in the configuration"};
    struct listener *l = alloc_zeroed(sizeof(*l));
    l->loop = loop;
    l->socket.fd = -1;
    l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    l->hooks = hooks;
    l->owner = owner;
    enum err err = systemd_listen_fd(&l->socket.fd, why);
    if (!err && l->socket.fd >= 0) {
        socklen_t size = sizeof(l->socket.address);
        l->inherited = true;
        if (getsockname(l->socket.fd, (struct sockaddr *)&l->socket.address, &size) != 0)
            l->socket.address.sun_path[0] = '\0';
    } else if (!err) {
        err = unix_socket_listen(path, mode, LISTENER_BACKLOG, &names, &l->socket, why);
    }
    if (!err) {
        l->acceptable = descriptor_new(loop, l->socket.fd, on_acceptable, l);
        descriptor_watch(l->acceptable, true, false);
    } else {
        listener_free(l);
        l = NULL;
    }
    *out = l;
    return err;
}

void listener_free(struct listener *listener)
{
    if (!listener)
        return;
    descriptor_free(listener->acceptable);
    timer_clear(&listener->resume);
    unix_socket_close(&listener->socket);
    if (listener->spare >= 0)
        close(listener->spare);
    free(listener);
}

bool listener_is_inherited(const struct listener *listener)
{
    return listener->inherited;
}

const char *listener_path(const struct listener *listener)
{
    return listener->socket.address.sun_path;
}

struct file_shares listener_raise_file_limit(struct file_shares wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    rlim_t all = wanted.connections + wanted.calls + FILES_RESERVED;
    if (limit.rlim_cur < all) {
        limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || all < limit.rlim_max ? all : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= all)
        return wanted;
    rlim_t reserved = limit.rlim_cur / 4;
    if (reserved > FILES_RESERVED)
        reserved = FILES_RESERVED;
    if (reserved < FILES_RESERVED_MIN)
        reserved = FILES_RESERVED_MIN;
    size_t left = limit.rlim_cur > reserved ? limit.rlim_cur - reserved : 1;
    struct file_shares shares = {.calls = wanted.calls < left / 4 ? wanted.calls : left / 4};
    shares.connections = left - shares.calls < wanted.connections ? left - shares.calls : wanted.connections;
    return shares;
}

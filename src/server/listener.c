/*
 * A socket file without a listener is left from a crash and is replaced; one
 * with a listener belongs to a running daemon and is an error. If no file
 * descriptor is left, a spare one is closed to accept the connection, send an
 * error and close it: otherwise the level-triggered event would fire forever.
 */
#include "server/listener.h"

#include "base/log.h"
#include "server/systemd.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FILES_RESERVED     64u /* for logs, timers, policies being read, … */
#define FILES_RESERVED_MIN 24u /* the same, if the host allows few */

struct listener {
    int fd, spare;
    bool inherited, ready;
    struct sockaddr_un address;
    dev_t device; /* of the file that we bound: only that one is removed at the end */
    ino_t inode;
    struct event *acceptable, *resume;
    const struct listener_hooks *hooks;
    void *owner;
};

static int accept_one(const struct listener *l)
{
    int fd;
    do
        fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
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

static void on_acceptable(evutil_socket_t listening, short what, void *arg)
{
    (void)listening, (void)what;
    ((struct listener *)arg)->ready = true;
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    event_add(((struct listener *)arg)->acceptable, NULL);
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
            struct timeval pause = {.tv_usec = LISTENER_PAUSE_MS * 1000};
            event_del(l->acceptable);
            event_add(l->resume, &pause);
            log_event(LOG_ERROR, "accept_paused", LOG_NUM("ms", LISTENER_PAUSE_MS),
                      LOG_TEXT("why", "no file descriptor left: raise LimitNOFILE= (or ulimit -n)"));
        }
        return;
    }
}

/* Only the last folder: a deeper path that does not exist is probably mistyped. */
enum err listener_make_directory(const char *path, struct why *why)
{
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return OK;
    *slash = '\0';
    if (access(folder, F_OK) == 0 || mkdir(folder, 0755) == 0 || errno == EEXIST)
        return OK;
    return err_set(why, ERR_IO, "socket %s: its folder %s does not exist and cannot be created: %s", path,
                   folder, strerror(errno));
}

/* OK: the path is free. Never removes a file that is not a socket. */
static enum err clear_stale(const struct listener *l, struct why *why)
{
    const char *path = l->address.sun_path;
    struct stat st;
    if (lstat(path, &st) != 0)
        return OK;
    if (!S_ISSOCK(st.st_mode))
        return err_set(
            why, ERR_EXISTS,
            "socket %s: the file there is not a socket: move it, or choose another path (--socket)", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(why, ERR_IO, "socket %s: %s", path, strerror(errno));
    int answer = connect(fd, (const struct sockaddr *)&l->address, sizeof(l->address)) == 0 ? 0 : errno;
    close(fd);
    if (answer != ECONNREFUSED)
        return err_set(why, ERR_EXISTS,
                       "socket %s: another process listens there%s%s: stop it, or choose another path "
                       "(--socket)",
                       path, answer ? " or guards it: " : "", answer ? strerror(answer) : "");
    if (unlink(path) != 0 && errno != ENOENT)
        return err_set(why, ERR_IO, "socket %s: cannot remove the socket of an earlier daemon: %s", path,
                       strerror(errno));
    log_event(LOG_INFO, "stale_socket_replaced", LOG_TEXT("socket", path));
    return OK;
}

/* Bound without rights for others at first, so that no one connects before the mode is set. */
static enum err bind_socket(struct listener *l, mode_t mode, struct why *why)
{
    const char *path = l->address.sun_path;
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    int failed = l->fd < 0 || bind(l->fd, (struct sockaddr *)&l->address, sizeof(l->address)) != 0;
    umask(before);
    struct stat st;
    if (!failed && stat(path, &st) == 0) {
        l->device = st.st_dev;
        l->inode = st.st_ino;
    }
    if (failed || chmod(path, mode) != 0 || listen(l->fd, LISTENER_BACKLOG) != 0)
        return err_set(why, ERR_IO, "socket %s: cannot listen there: %s", path, strerror(errno));
    return OK;
}

enum err listener_new(struct event_base *base, const char *path, mode_t mode,
                      const struct listener_hooks *hooks, void *owner, struct listener **out, struct why *why)
{
    struct listener *l = calloc(1, sizeof(*l));
    if (!l)
        abort();
    l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    l->hooks = hooks;
    l->owner = owner;
    enum err err = systemd_listen_fd(&l->fd, why);
    if (!err && l->fd >= 0) {
        socklen_t size = sizeof(l->address);
        l->inherited = true;
        if (getsockname(l->fd, (struct sockaddr *)&l->address, &size) != 0)
            l->address.sun_path[0] = '\0';
    } else if (!err) {
        l->address = (struct sockaddr_un){.sun_family = AF_UNIX};
        if (path[0] == '\0' || strlen(path) >= sizeof(l->address.sun_path))
            err = err_set(
                why, ERR_CONFIG,
                "socket %s: expected a path of 1 to %zu bytes, got %zu: choose a shorter one (--socket, "
                "or 'socket' in the configuration)",
                path, sizeof(l->address.sun_path) - 1, strlen(path));
        else
            memcpy(l->address.sun_path, path, strlen(path));
        if (!err)
            err = listener_make_directory(path, why);
        if (!err)
            err = clear_stale(l, why);
        if (!err)
            err = bind_socket(l, mode, why);
    }
    if (!err) {
        l->acceptable = event_new(base, l->fd, EV_READ | EV_PERSIST, on_acceptable, l);
        l->resume = event_new(base, -1, 0, on_resume, l);
        event_add(l->acceptable, NULL);
    } else {
        listener_free(l);
        l = NULL;
    }
    *out = l;
    return err;
}

void listener_free(struct listener *listener)
{
    struct stat st;
    if (!listener)
        return;
    const char *path = listener->address.sun_path;
    if (!listener->inherited && listener->inode && lstat(path, &st) == 0 && st.st_dev == listener->device &&
        st.st_ino == listener->inode)
        unlink(path);
    if (listener->acceptable)
        event_free(listener->acceptable);
    if (listener->resume)
        event_free(listener->resume);
    if (listener->fd >= 0)
        close(listener->fd);
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
    return listener->address.sun_path;
}

size_t listener_raise_file_limit(size_t connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return connections;
    rlim_t wanted = connections + FILES_RESERVED;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max ? wanted : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= wanted)
        return connections;
    rlim_t reserved = limit.rlim_cur / 4;
    if (reserved > FILES_RESERVED)
        reserved = FILES_RESERVED;
    if (reserved < FILES_RESERVED_MIN)
        reserved = FILES_RESERVED_MIN;
    return limit.rlim_cur > reserved ? limit.rlim_cur - reserved : 1;
}

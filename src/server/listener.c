/*
 * A socket file that nobody listens on is left over from a crash and is
 * replaced; one that answers belongs to a running daemon and is an error.
 * When no file descriptor is left, a spare one is given up to accept the
 * waiting connection, say why, and close it: otherwise the level-triggered
 * listener would fire for ever.
 */
#include "server/listener.h"

#include "base/log.h"

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

#include "server/systemd.h"

#define FILES_BESIDE_CONNECTIONS 64u /* logs, timers, policies being read, … */
#define FILES_BESIDE_AT_LEAST    24u /* the same, where the host allows few */

struct listener {
    int fd, spare;
    bool inherited, ready;
    struct sockaddr_un address;
    dev_t device; /* of the socket file we made: nobody else's is removed at the end */
    ino_t inode;
    struct event *acceptable, *rest_over;
    const struct listener_hooks *hooks;
    void *owner;
};

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void rest(struct listener *l)
{
    struct timeval pause = {.tv_usec = LISTENER_PAUSE_MS * 1000};
    event_del(l->acceptable);
    event_add(l->rest_over, &pause);
    log_event(LOG_ERROR, "accept_paused", LOG_NUM("ms", LISTENER_PAUSE_MS),
              LOG_TEXT("why", "no file descriptor left: raise LimitNOFILE= (or ulimit -n)"));
}

static void on_rest_over(evutil_socket_t fd, short what, void *arg)
{
    struct listener *l = arg;
    (void)fd, (void)what;
    event_add(l->acceptable, NULL);
}

static int accept_one(const struct listener *l)
{
    int fd;
    do
        fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    return fd;
}

/* Trades the spare file for the connection, only to tell it. The kernel looks for a free descriptor before it
 * looks for a caller, so nobody may be there. False: not even that was possible. */
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
    l->spare = open_spare();
    return !failed && l->spare >= 0;
}

static bool out_of_files(int error)
{
    return error == EMFILE || error == ENFILE;
}

static void on_acceptable(evutil_socket_t listening, short what, void *arg)
{
    struct listener *l = arg;
    (void)listening, (void)what;
    l->ready = true;
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
        /* One refusal a turn: those who are served may end meanwhile. */
        if (errno != EAGAIN && (!out_of_files(errno) || !refuse_one(l)))
            rest(l);
        return;
    }
}

static enum err make_address(struct listener *l, const char *path, struct why *why)
{
    l->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (path[0] == '\0' || strlen(path) >= sizeof(l->address.sun_path))
        return err_set(why, ERR_CONFIG,
                       "socket %s: expected a path of 1 to %zu bytes, got %zu: choose a shorter one "
                       "(--socket, or 'socket' in the configuration)",
                       path, sizeof(l->address.sun_path) - 1, strlen(path));
    memcpy(l->address.sun_path, path, strlen(path));
    return OK;
}

/* The last folder only: whoever named a deeper path that does not exist probably mistyped it. */
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
    return err_set(why, ERR_IO, "socket %s: its folder %s does not exist and cannot be made: %s", path,
                   folder, strerror(errno));
}

/* OK: the way is free. A file that is no socket is never touched. */
static enum err clear_stale(const struct listener *l, struct why *why)
{
    const char *path = l->address.sun_path;
    struct stat st;
    if (lstat(path, &st) != 0)
        return OK;
    if (!S_ISSOCK(st.st_mode))
        return err_set(why, ERR_EXISTS,
                       "socket %s: a file that is no socket is in the way: move it, or choose "
                       "another path (--socket)",
                       path);
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
        return err_set(why, ERR_IO, "socket %s: left over from before, and cannot be removed: %s", path,
                       strerror(errno));
    log_event(LOG_INFO, "stale_socket_replaced", LOG_TEXT("socket", path));
    return OK;
}

/* Bound without any right for others first, so that nobody slips in before the mode is set. */
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

static enum err open_path(struct listener *l, const char *path, mode_t mode, struct why *why)
{
    enum err err = make_address(l, path, why);
    if (!err)
        err = listener_make_directory(path, why);
    if (!err)
        err = clear_stale(l, why);
    if (!err)
        err = bind_socket(l, mode, why);
    return err;
}

static void ask_own_path(struct listener *l)
{
    socklen_t size = sizeof(l->address);
    l->inherited = true;
    if (getsockname(l->fd, (struct sockaddr *)&l->address, &size) != 0)
        l->address.sun_path[0] = '\0';
}

enum err listener_new(struct event_base *base, const char *path, mode_t mode,
                      const struct listener_hooks *hooks, void *owner, struct listener **out, struct why *why)
{
    struct listener *l = calloc(1, sizeof(*l));
    if (!l)
        abort();
    l->spare = open_spare();
    l->hooks = hooks;
    l->owner = owner;
    enum err err = systemd_listen_fd(&l->fd, why);
    if (!err && l->fd >= 0)
        ask_own_path(l);
    else if (!err)
        err = open_path(l, path, mode, why);
    if (!err) {
        l->acceptable = event_new(base, l->fd, EV_READ | EV_PERSIST, on_acceptable, l);
        l->rest_over = event_new(base, -1, 0, on_rest_over, l);
        event_add(l->acceptable, NULL);
    } else {
        listener_free(l);
        l = NULL;
    }
    *out = l;
    return err;
}

static void remove_file(const struct listener *l)
{
    struct stat st;
    bool ours = !l->inherited && l->inode && lstat(l->address.sun_path, &st) == 0 && st.st_dev == l->device &&
                st.st_ino == l->inode;
    if (ours)
        unlink(l->address.sun_path);
}

void listener_free(struct listener *listener)
{
    if (!listener)
        return;
    remove_file(listener);
    if (listener->acceptable)
        event_free(listener->acceptable);
    if (listener->rest_over)
        event_free(listener->rest_over);
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
    rlim_t wanted = connections + FILES_BESIDE_CONNECTIONS;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max ? wanted : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= wanted)
        return connections;
    rlim_t beside = limit.rlim_cur / 4;
    if (beside > FILES_BESIDE_CONNECTIONS)
        beside = FILES_BESIDE_CONNECTIONS;
    if (beside < FILES_BESIDE_AT_LEAST)
        beside = FILES_BESIDE_AT_LEAST;
    return limit.rlim_cur > beside ? limit.rlim_cur - beside : 1;
}

/*
 * A socket file without a listener is left from a crash and is replaced; one with a listener belongs to a
 * running daemon and is an error.
 */
#include "io/unix_socket.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum err unix_socket_make_directory(const char *path, const char *name, struct why *why)
{
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return OK;
    *slash = '\0';
    if (access(folder, F_OK) == 0 || mkdir(folder, 0755) == 0 || errno == EEXIST)
        return OK;
    return err_set(why, ERR_IO, "%s %s: its folder %s does not exist and cannot be created: %s", name, path,
                   folder, strerror(errno));
}

/* OK: the path is free. Never removes a file that is not a socket. */
static enum err clear_stale(const struct unix_socket *s, const struct unix_socket_names *names,
                            struct why *why)
{
    const char *path = s->address.sun_path;
    struct stat st;
    if (lstat(path, &st) != 0)
        return OK;
    if (!S_ISSOCK(st.st_mode))
        return err_set(why, ERR_EXISTS,
                       "%s %s: the file there is not a socket: move it, or choose another path (%s)",
                       names->name, path, names->key);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(why, ERR_IO, "%s %s: %s", names->name, path, strerror(errno));
    int answer = connect(fd, (const struct sockaddr *)&s->address, sizeof(s->address)) == 0 ? 0 : errno;
    close(fd);
    if (answer != ECONNREFUSED)
        return err_set(
            why, ERR_EXISTS, "%s %s: another process listens there%s%s: stop it, or choose another path (%s)",
            names->name, path, answer ? " or guards it: " : "", answer ? strerror(answer) : "", names->key);
    if (unlink(path) != 0 && errno != ENOENT)
        return err_set(why, ERR_IO, "%s %s: cannot remove the socket of an earlier daemon: %s", names->name,
                       path, strerror(errno));
    log_event(LOG_INFO, "stale_socket_replaced", LOG_TEXT("socket", path));
    return OK;
}

/* Not over a file that has come there since. */
static bool move(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ||
           (errno == EINVAL && rename(from, to) == 0); /* a file system that cannot do that */
}

/* The file has its mode from the beginning: a chmod afterwards could meet another file of this name. It gets
 * its name when it listens: who waits for the file may connect at once, and another daemon that starts does
 * not take it for one that is left over. Only a path that leaves no room for the name before is bound itself.
 */
static enum err bind_socket(struct unix_socket *s, mode_t mode, int backlog, const char *name,
                            struct why *why)
{
    struct sockaddr_un first = s->address;
    const char *path = s->address.sun_path;
    int len = snprintf(first.sun_path, sizeof(first.sun_path), "%s.%ld", path, (long)getpid());
    bool aside = len < (int)sizeof(first.sun_path);
    if (!aside)
        first = s->address;
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0777 & ~mode);
    bool bound = s->fd >= 0 && bind(s->fd, (struct sockaddr *)&first, sizeof(first)) == 0;
    umask(before);
    struct stat st;
    if (bound && listen(s->fd, backlog) == 0 && stat(first.sun_path, &st) == 0 &&
        (!aside || move(first.sun_path, path))) {
        s->device = st.st_dev;
        s->inode = st.st_ino;
        return OK;
    }
    int problem = errno;
    if (bound)
        unlink(first.sun_path);
    return err_set(why, ERR_IO, "%s %s: cannot listen there: %s", name, path, strerror(problem));
}

enum err unix_socket_listen(const char *path, mode_t mode, int backlog, const struct unix_socket_names *names,
                            struct unix_socket *out, struct why *why)
{
    *out = (struct unix_socket){.fd = -1, .address = {.sun_family = AF_UNIX}};
    if (path[0] == '\0' || strlen(path) >= sizeof(out->address.sun_path))
        return err_set(why, ERR_CONFIG,
                       "%s %s: expected a path of 1 to %zu bytes, got %zu: choose a shorter one (%s)",
                       names->name, path, sizeof(out->address.sun_path) - 1, strlen(path), names->key);
    memcpy(out->address.sun_path, path, strlen(path));
    enum err err = unix_socket_make_directory(path, names->name, why);
    if (!err)
        err = clear_stale(out, names, why);
    if (!err)
        err = bind_socket(out, mode, backlog, names->name, why);
    if (err)
        unix_socket_close(out);
    return err;
}

void unix_socket_close(struct unix_socket *s)
{
    struct stat st;
    const char *path = s->address.sun_path;
    if (s->inode && lstat(path, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode)
        unlink(path);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    s->inode = 0;
}

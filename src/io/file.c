/* Reads until end of file: the size that a file reports is only a hint. */
#include "io/file.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err read_all(struct arena *arena, int fd, size_t hint, const char *path, size_t max_bytes,
                         struct str *out, struct why *why)
{
    size_t size = (hint < max_bytes ? hint : max_bytes) + 2, len = 0; /* a NUL, and one byte too many */
    char *text = arena_alloc(arena, size);
    ssize_t n;
    while ((n = read(fd, text + len, size - 1 - len)) != 0 && len <= max_bytes) {
        if (n < 0 && errno != EINTR)
            return err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
        len += n > 0 ? (size_t)n : 0;
        if (len < size - 1)
            continue;
        char *bigger = arena_alloc(arena, size *= 2);
        memcpy(bigger, text, len);
        text = bigger;
    }
    if (len > max_bytes)
        return err_set(why, ERR_LIMIT, "%s: expected at most %zu bytes, found more: split the file", path,
                       max_bytes);
    text[len] = '\0';
    *out = (struct str){text, len};
    return OK;
}

static enum err read_path(struct arena *arena, const char *path, bool wait, size_t max_bytes, struct str *out,
                          struct why *why)
{
    struct stat st;
    enum err err;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (wait ? 0 : O_NONBLOCK)); /* a FIFO would block */
    if (fd < 0 || fstat(fd, &st) != 0)
        err = err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
    else if (!wait && !S_ISREG(st.st_mode))
        err = err_set(why, ERR_IO, "%s: expected a file, got %s", path,
                      S_ISDIR(st.st_mode)    ? "a folder"
                      : S_ISFIFO(st.st_mode) ? "a FIFO"
                                             : "a device");
    else
        err =
            read_all(arena, fd, S_ISREG(st.st_mode) ? (size_t)st.st_size : 65536, path, max_bytes, out, why);
    if (fd >= 0)
        close(fd);
    return err;
}

enum err file_read(struct arena *arena, const char *path, size_t max_bytes, struct str *out, struct why *why)
{
    return read_path(arena, path, false, max_bytes, out, why);
}

enum err file_read_input(struct arena *arena, const char *path, size_t max_bytes, struct str *out,
                         struct why *why)
{
    return read_path(arena, path, true, max_bytes, out, why);
}

static enum err check_owner(const struct stat *st, const char *path, struct why *why)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return err_set(why, ERR_IO, "%s: it belongs to uid %u, and is not used: remove it, or chown %u %s",
                       path, (unsigned)st->st_uid, (unsigned)geteuid(), path);
    if (!S_ISLNK(st->st_mode) && (st->st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(why, ERR_IO,
                       "%s: other users may write it, so it is not used: remove it, or chmod go-w %s", path,
                       path);
    return OK;
}

enum err file_check_private(const char *path, struct why *why)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return OK;
    enum err err = check_owner(&st, path, why);
    return !err && S_ISLNK(st.st_mode) && stat(path, &st) == 0 ? check_owner(&st, path, why) : err;
}

enum err file_check_private_fd(int fd, const char *path, struct why *why)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? check_owner(&st, path, why)
                               : err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
}

enum err file_check_above(const char *path, uid_t also, struct why *why)
{
    char folder[PATH_MAX];
    struct stat st;
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strrchr(folder, '/'); slash; slash = slash == folder ? NULL : strrchr(folder, '/')) {
        slash[slash == folder] = '\0';
        if (stat(folder, &st) != 0)
            return err_set(why, ERR_IO, "%s: %s", folder, strerror(errno));
        if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != also)
            return err_set(why, ERR_CONFIG,
                           "the folder %s above it belongs to uid %u, who could replace it: choose one in a "
                           "folder of root or of this process's user",
                           folder, (unsigned)st.st_uid);
        if (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX))
            return err_set(why, ERR_CONFIG,
                           "everybody may write into the folder %s above it, and replace it: chmod o-w %s",
                           folder, folder);
    }
    return OK;
}

enum err file_replace(const char *path, struct str text, bool sync, struct why *why)
{
    char aside[PATH_MAX];
    if (snprintf(aside, sizeof(aside), "%s.new", path) >= (int)sizeof(aside))
        return err_set(why, ERR_IO, "%s: the path is too long", path);
    unlink(aside); /* of a process that was killed; the new one must be ours */
    int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool written = fd >= 0;
    while (written && text.len) {
        ssize_t n = write(fd, text.at, text.len);
        written = n >= 0 || errno == EINTR;
        text = str_from(text, n > 0 ? (size_t)n : 0);
    }
    written = written && (!sync || fsync(fd) == 0);
    int problem = errno;
    if (fd >= 0)
        close(fd);
    if (written && rename(aside, path) == 0)
        return OK;
    problem = written ? errno : problem;
    if (fd >= 0)
        unlink(aside);
    return err_set(why, ERR_IO, "%s: %s", path, strerror(problem));
}

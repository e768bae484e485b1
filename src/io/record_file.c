/*
 * A record file: private, appended to, rotated by size. It is locked, so that two daemons never rotate each
 * other's file, and reopened once its path leads elsewhere.
 */
#include "io/record_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4352 /* PATH_MAX and a number */

void record_target_close(struct record_target *target)
{
    if (target->fd >= 0)
        close(target->fd);
    target->fd = -1;
}

static enum err cannot_open(const char *path, int error, struct why *why)
{
    const char *fix = error == ENOENT                     ? "its folder does not exist: create it"
                      : error == EACCES || error == EPERM ? "let the daemon's user write to its folder"
                      : error == ELOOP                    ? "it is a symbolic link: name the file itself"
                      : error == EROFS                    ? "choose a folder that can be written to"
                      : error == EWOULDBLOCK              ? "another daemon writes it: give each its own file"
                      : error == ENOSPC || error == EDQUOT ? "free some space"
                      : error == EFBIG                     ? "raise LimitFSIZE= of the service, or ulimit -f"
                      : error == EMFILE || error == ENFILE ? "raise LimitNOFILE= of the service, or ulimit -n"
                      : error == EIO                       ? "look at its disk: dmesg"
                                                           : "choose another file";
    return err_set(why, ERR_IO, "%s: cannot be written: %s (%s)", path,
                   error == EWOULDBLOCK ? "it is locked" : strerror(error), fix);
}

/* A record is an object, and a computer that lost its power leaves bytes of zero. With anything else, the
 * path is a mistake, and the file is another program's, such as the configuration. */
static bool holds_records(int fd, off_t size)
{
    char first;
    return !size || pread(fd, &first, 1, 0) != 1 || first == '{' || first == '\n' || !first;
}

/* Somebody else's file, a FIFO or a device may be a trap. */
static enum err check(int fd, const char *path, struct stat *st, struct why *why)
{
    if (fstat(fd, st) != 0)
        return cannot_open(path, errno, why);
    if (!S_ISREG(st->st_mode))
        return err_set(why, ERR_IO, "%s: expected a regular file, found something else (name another file)",
                       path);
    if (st->st_uid != geteuid())
        return err_set(
            why, ERR_IO,
            "%s: it belongs to uid %u, expected the daemon's, %u (remove it, or give it to the daemon "
            "with chown)",
            path, (unsigned)st->st_uid, (unsigned)geteuid());
    if (!holds_records(fd, st->st_size))
        return err_set(why, ERR_IO,
                       "%s: it holds something else than records (name another file, or move it away)", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return cannot_open(path, errno, why);
    if ((st->st_mode & 0177) && fchmod(fd, 0600) != 0)
        return cannot_open(path, errno, why);
    return OK;
}

/* After a crash or a full disk the file may end within a record, which must not run into the next. */
static bool end_last_line(int fd, off_t size)
{
    char last;
    if (!size || pread(fd, &last, 1, size - 1) != 1 || last == '\n')
        return true;
    return write(fd, "\n", 1) == 1;
}

static enum err open_file(struct record_target *t, struct why *why)
{
    const char *path = t->options->path;
    struct stat st;
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return cannot_open(path, errno, why);
    enum err err = check(fd, path, &st, why);
    if (!err && !end_last_line(fd, st.st_size))
        err = cannot_open(path, errno, why);
    if (err)
        close(fd);
    else
        t->fd = fd;
    return err;
}

/* The file was moved or removed. */
static bool has_moved(const struct record_target *t, const struct stat *open_one)
{
    struct stat at_path;
    return lstat(t->options->path, &at_path) != 0 || at_path.st_ino != open_one->st_ino ||
           at_path.st_dev != open_one->st_dev;
}

/* path.3 becomes path.4, …, path becomes path.1. */
static enum err rotate(struct record_target *t, struct why *why)
{
    const struct record_sink_options *o = t->options;
    char from[PATH_BYTES], to[PATH_BYTES];
    for (uint32_t i = o->keep; i > 0; i--) {
        snprintf(to, sizeof(to), "%s.%u", o->path, i);
        if (i > 1)
            snprintf(from, sizeof(from), "%s.%u", o->path, i - 1);
        else
            snprintf(from, sizeof(from), "%s", o->path);
        if (rename(from, to) != 0 && errno != ENOENT)
            return err_set(why, ERR_IO, "%s: cannot be rotated to %s: %s (%s)", from, to, strerror(errno),
                           errno == EISDIR || errno == ENOTEMPTY
                               ? "remove that folder"
                               : "let the daemon's user write to its folder");
    }
    record_target_close(t);
    return open_file(t, why);
}

/* The bytes of whole lines among the first `max`. */
static size_t whole_lines(struct str lines, size_t max)
{
    const char *end = max >= lines.len ? lines.at + lines.len : memrchr(lines.at, '\n', max);
    if (!end)
        return 0;
    return max >= lines.len ? lines.len : (size_t)(end - lines.at) + 1;
}

/* Half a line is cut off again, and written whole once there is space. */
static size_t write_lines(struct record_target *t, struct str lines, off_t size, struct why *why)
{
    size_t done = 0;
    while (done < lines.len) {
        ssize_t n = write(t->fd, lines.at + done, lines.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int error = n < 0 ? errno : EIO; /* no disk writes nothing and calls that no error */
            size_t whole = done ? whole_lines(lines, done) : 0;
            if (whole < done && ftruncate(t->fd, size + (off_t)whole) != 0)
                record_target_close(t); /* opening it again ends the line */
            cannot_open(t->options->path, error, why);
            return whole;
        }
        done += (size_t)n;
    }
    return done;
}

/* What still fits, at least one line of an empty file. */
static size_t fitting(const struct record_target *t, struct str lines, off_t size)
{
    uint64_t max = t->options->max_bytes, left = (uint64_t)size < max ? max - (uint64_t)size : 0;
    size_t fits = left >= lines.len ? lines.len : left ? whole_lines(lines, (size_t)left) : 0;
    if (!fits && !size)
        fits = (size_t)((char *)memchr(lines.at, '\n', lines.len) - lines.at) + 1;
    return fits;
}

static size_t write_file(struct record_target *t, struct str lines, uint64_t *lost, struct why *why)
{
    size_t done = 0;
    (void)lost;
    while (done < lines.len) {
        struct str rest = str_from(lines, done);
        struct stat st;
        if (fstat(t->fd, &st) != 0 || has_moved(t, &st)) {
            record_target_close(t);
            if (open_file(t, why) || fstat(t->fd, &st) != 0)
                return done;
        }
        size_t fits = fitting(t, rest, st.st_size);
        if (!fits) {
            if (rotate(t, why))
                return done;
            continue;
        }
        size_t written = write_lines(t, (struct str){rest.at, fits}, st.st_size, why);
        done += written;
        if (written < fits)
            return done;
    }
    return done;
}

const struct record_target_ops record_file_ops = {open_file, write_file};

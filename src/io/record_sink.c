/*
 * Two buffers: `filling` is the loop's alone, `handed` the thread's until it is empty again. So the lock is
 * taken once a batch, and the thread allocates nothing.
 */
#include "io/record_sink.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "io/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ---- the targets, of which the thread uses one; these functions may block; none allocates or logs ----
 *
 * Both writers take whole lines and return the bytes of those that are written, always whole lines; less than
 * all: `why` says why. */

struct record_target {
    const struct record_sink_options *options;
    int fd; /* -1: not open */
};

/* A file is private, appended to, rotated by size. It is locked, so that two daemons never rotate each
 * other's file, and reopened once its path leads elsewhere. */

#define PATH_BYTES 4352 /* PATH_MAX and a number */

static void close_target(struct record_target *target)
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

/* Somebody else's file, a FIFO or a device may be a trap. */
static enum err check(int fd, const char *path, struct stat *st, struct why *why)
{
    char first;
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
    /* A record is an object, and a computer that lost its power leaves bytes of zero. With anything else, the
     * path is a mistake, and the file is another program's, such as the configuration. */
    if (st->st_size && pread(fd, &first, 1, 0) == 1 && first != '{' && first != '\n' && first)
        return err_set(why, ERR_IO,
                       "%s: it holds something else than records (name another file, or move it away)", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return cannot_open(path, errno, why);
    if ((st->st_mode & 0177) && fchmod(fd, 0600) != 0)
        return cannot_open(path, errno, why);
    return OK;
}

static enum err open_file(struct record_target *t, struct why *why)
{
    const char *path = t->options->path;
    struct stat st;
    char last;
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return cannot_open(path, errno, why);
    enum err err = check(fd, path, &st, why);
    /* After a crash or a full disk the file may end within a record, which must not run into the next. */
    if (!err && st.st_size && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n' &&
        write(fd, "\n", 1) != 1)
        err = cannot_open(path, errno, why);
    if (err)
        close(fd);
    else
        t->fd = fd;
    return err;
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
    close_target(t);
    return open_file(t, why);
}

/* The bytes of whole lines among the first `max`. */
static size_t whole_lines(struct str lines, size_t max)
{
    if (max >= lines.len)
        return lines.len;
    const char *end = memrchr(lines.at, '\n', max);
    return end ? (size_t)(end - lines.at) + 1 : 0;
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
            size_t whole = whole_lines(lines, done);
            if (whole < done && ftruncate(t->fd, size + (off_t)whole) != 0)
                close_target(t); /* opening it again ends the line */
            cannot_open(t->options->path, error, why);
            return whole;
        }
        done += (size_t)n;
    }
    return done;
}

static size_t write_file(struct record_target *t, struct str lines, struct why *why)
{
    size_t done = 0;
    while (done < lines.len) {
        struct str rest = str_from(lines, done);
        struct stat st, at_path; /* different if the file was moved or removed */
        if (fstat(t->fd, &st) != 0 || lstat(t->options->path, &at_path) != 0 || at_path.st_ino != st.st_ino ||
            at_path.st_dev != st.st_dev) {
            close_target(t);
            if (open_file(t, why) || fstat(t->fd, &st) != 0)
                return done;
        }
        uint64_t max = t->options->max_bytes, size = (uint64_t)st.st_size;
        size_t fits = size < max ? whole_lines(rest, max - size) : 0;
        if (!fits && !size) /* an empty file takes at least one line */
            fits = (size_t)((char *)memchr(rest.at, '\n', rest.len) - rest.at) + 1;
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

/* Records as datagrams to journald: entries with the record as MESSAGE. */

#define DATAGRAM_WAIT_MS 200u /* for a receiver that does not read */
#define DATAGRAM_BUFFER_BYTES                                                                                \
    1048576 /* as far as net.core.wmem_max allows: the largest record has to fit                             \
             */

static enum err open_socket(struct record_target *t, struct why *why)
{
    const char *path = t->options->path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_usec = DATAGRAM_WAIT_MS * 1000};
    int size = DATAGRAM_BUFFER_BYTES;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        t->fd = fd;
        return OK;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    const char *fix = error == ENOENT         ? "nothing is there: start the receiver"
                      : error == ECONNREFUSED ? "nobody receives there: start the receiver"
                      : error == EPROTOTYPE   ? "it is no datagram socket"
                      : error == EACCES       ? "let the daemon's user write to it"
                                              : "choose another socket";
    return err_set(why, ERR_IO, "%s: cannot be reached: %s (%s)", path, strerror(error), fix);
}

/* journald's native protocol: a field a line. A record has no newline, so it needs no length before it. */
static ssize_t send_record(const struct record_target *t, struct str record)
{
    char before[128];
    struct iovec parts[3] = {{before, 0}, {(char *)record.at, record.len}, {(char *)"\n", 1}};
    parts[0].iov_len = (size_t)snprintf(before, sizeof(before),
                                        "PRIORITY=6\nSYSLOG_IDENTIFIER=%s\nMESSAGE=", t->options->identifier);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    ssize_t n;
    do
        n = sendmsg(t->fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

/* *lost: how many of them are larger than the socket takes, and can never be written. */
static size_t write_records(struct record_target *t, struct str lines, uint64_t *lost, struct why *why)
{
    size_t done = 0;
    while (done < lines.len) {
        const char *at = lines.at + done, *end = memchr(at, '\n', lines.len - done);
        struct str record = {at, (size_t)(end - at)};
        bool sent = send_record(t, record) >= 0;
        if (!sent && errno != EMSGSIZE) {
            bool unread = errno == EAGAIN || errno == ENOBUFS;
            err_set(why, ERR_IO, "%s: %s", t->options->path,
                    unread ? "its receiver does not read (restart the receiver)" : strerror(errno));
            if (!unread)
                close_target(t); /* the receiver has ended: the next one has to be connected to */
            return done;
        }
        *lost += !sent;
        done += record.len + 1;
    }
    return done;
}

static enum err open_target(struct record_target *t, struct why *why)
{
    return t->options->kind == RECORD_SINK_FILE ? open_file(t, why) : open_socket(t, why);
}

#define STACK_BYTES 262144u
#define KEEP_BYTES  1048576u /* a buffer that grew beyond is freed once it is written */

struct record_sink {
    struct record_sink_options options;
    struct loop *loop;
    void (*changed)(void *owner, const struct record_sink_status *status);
    void *owner;
    struct buf filling;
    struct timer flush;
    bool has_thread, overflows, down; /* down: as the owner was told */
    uint64_t dropped;

    pthread_t thread;
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t work, progress;
    struct buf handed;
    size_t taken; /* of `handed` */
    bool failing, reopen, ending, ended;
    int64_t busy_us; /* since when the thread opens or writes; 0: it does not */
    struct why why;  /* if failing */
    uint64_t written, lost;
};

/* ---- the thread ---- */

static struct timespec after_ms(uint32_t ms)
{
    int64_t ns = clock_mono_ns() + (int64_t)ms * 1000000;
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static uint64_t count_lines(struct str lines)
{
    uint64_t count = 0;
    const char *at = lines.at, *end = at + lines.len;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        count++;
    }
    return count;
}

/* Without the lock: only the thread touches `rest`, which is empty after a wake to reopen or to try again.
 * The loop may replace `handed` during that time. */
static void write_batch(struct record_sink *s, struct record_target *target, struct str rest)
{
    struct why why;
    uint64_t lost = 0;
    size_t done = 0;
    bool open = target->fd >= 0 || open_target(target, &why) == OK;
    if (open && rest.len)
        done = s->options.kind == RECORD_SINK_FILE ? write_file(target, rest, &why)
                                                   : write_records(target, rest, &lost, &why);
    pthread_mutex_lock(&s->lock);
    s->busy_us = 0;
    s->taken += done;
    s->written += count_lines((struct str){rest.at, done}) - lost;
    s->lost += lost;
    s->failing = !open || done < rest.len;
    if (s->failing)
        s->why = why;
    if (s->taken == s->handed.len)
        s->taken = s->handed.len = 0;
    pthread_cond_broadcast(&s->progress);
    pthread_mutex_unlock(&s->lock);
}

/* False: it is to end. With the lock. */
static bool wait_for_work(struct record_sink *s)
{
    if (s->failing && !s->ending) {
        struct timespec retry = after_ms(RECORD_SINK_RETRY_MS);
        while (!s->ending && !s->reopen &&
               pthread_cond_clockwait(&s->work, &s->lock, CLOCK_MONOTONIC, &retry) != ETIMEDOUT)
            continue;
        return true;
    }
    while (!s->handed.len && !s->reopen && !s->ending)
        pthread_cond_wait(&s->work, &s->lock);
    return s->handed.len || s->reopen;
}

static void *run(void *arg)
{
    struct record_sink *s = arg;
    struct record_target target = {&s->options, -1};
    bool last_try = false;
    pthread_mutex_lock(&s->lock);
    while (!last_try && wait_for_work(s)) {
        bool reopen = s->reopen;
        s->reopen = false;
        s->busy_us = clock_mono_us();
        last_try = s->ending && s->failing;
        struct str rest = str_from(buf_view(&s->handed), s->taken);
        pthread_mutex_unlock(&s->lock);
        if (reopen)
            close_target(&target);
        write_batch(s, &target, rest);
        pthread_mutex_lock(&s->lock);
    }
    s->ended = true;
    pthread_cond_broadcast(&s->progress);
    pthread_mutex_unlock(&s->lock);
    close_target(&target);
    return NULL;
}

/* ---- the loop's side ---- */

static void on_flush(void *owner);

static void flush_soon(struct record_sink *s)
{
    if (s->loop && !timer_is_set(&s->flush))
        timer_set(&s->flush, s->loop, RECORD_SINK_FLUSH_MS, on_flush, s);
}

/* It grew while the disk was full or slow, and is written. With the lock. */
static bool is_too_large(const struct record_sink *s)
{
    return !s->handed.len && s->handed.cap > KEEP_BYTES;
}

/* Gives the thread what was buffered, if it is done with the batch before. */
static void hand_over(struct record_sink *s)
{
    pthread_mutex_lock(&s->lock);
    if (is_too_large(s))
        buf_clear(&s->handed);
    if (!s->handed.len && s->filling.len) {
        struct buf empty = s->handed;
        s->handed = s->filling;
        s->filling = empty;
        s->overflows = false;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Signals are the loop's. Without a thread the sink is down, and on_flush tries again. */
static void start_thread(struct record_sink *s)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_mutex_lock(&s->lock);
    s->has_thread = pthread_create(&s->thread, &attributes, run, s) == 0;
    s->failing = !s->has_thread;
    if (s->failing)
        err_set(&s->why, ERR_LIMIT,
                "%s: no thread can be started for it: raise TasksMax= of the service, or ulimit -u",
                s->options.path);
    pthread_mutex_unlock(&s->lock);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void on_flush(void *owner)
{
    struct record_sink *s = owner;
    struct record_sink_status status;
    if (!s->has_thread)
        start_thread(s);
    hand_over(s);
    record_sink_status(s, &status);
    if (status.down != s->down) {
        s->down = status.down;
        s->changed(s->owner, &status);
    }
    pthread_mutex_lock(&s->lock);
    bool again = s->handed.len || s->failing || is_too_large(s);
    pthread_mutex_unlock(&s->lock);
    if (again || s->filling.len || s->down)
        flush_soon(s);
}

void record_sink_add(struct record_sink *s, struct str line)
{
    if (s->filling.len + line.len > RECORD_SINK_BUFFER_BYTES) {
        s->dropped++;
        s->overflows = true;
        return;
    }
    buf_str(&s->filling, line);
    if (s->filling.len >= RECORD_SINK_FLUSH_BYTES && !s->overflows && !s->down)
        hand_over(s);
    flush_soon(s);
}

void record_sink_reopen(struct record_sink *s)
{
    hand_over(s);
    pthread_mutex_lock(&s->lock);
    s->reopen = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    flush_soon(s);
}

void record_sink_leave_loop(struct record_sink *s)
{
    timer_clear(&s->flush);
    s->loop = NULL;
}

void record_sink_status(struct record_sink *s, struct record_sink_status *out)
{
    *out = (struct record_sink_status){.kind = s->options.kind, .path = s->options.path};
    pthread_mutex_lock(&s->lock);
    bool hangs = s->busy_us && clock_mono_us() - s->busy_us > (int64_t)RECORD_SINK_HANG_MS * 1000;
    out->down = s->failing || s->overflows || hangs;
    if (hangs)
        err_set(&out->why, ERR_TIMEOUT, "%s: a write has not returned for %u s: look at its disk",
                s->options.path, RECORD_SINK_HANG_MS / 1000);
    else if (s->failing)
        out->why = s->why;
    else if (s->overflows)
        err_set(&out->why, ERR_LIMIT, "%s: takes less than comes: %u bytes are waiting", s->options.path,
                RECORD_SINK_BUFFER_BYTES);
    out->written = s->written;
    out->dropped = s->dropped + s->lost;
    out->waiting_bytes = s->filling.len + s->handed.len - s->taken;
    pthread_mutex_unlock(&s->lock);
}

/* ---- new and free ---- */

enum err record_sink_check(const struct record_sink_options *options, struct why *why)
{
    struct record_target target = {options, -1};
    enum err err = open_target(&target, why);
    close_target(&target);
    return err;
}

struct record_sink *record_sink_new(struct loop *loop, const struct record_sink_options *options,
                                    void (*changed)(void *owner, const struct record_sink_status *status),
                                    void *owner)
{
    struct record_sink *s = alloc_zeroed(sizeof(*s));
    s->options = *options;
    s->options.path = strdup(options->path);
    s->loop = loop;
    s->changed = changed;
    s->owner = owner;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->progress, NULL);
    if (!s->options.path)
        abort();
    start_thread(s);
    return s;
}

/* False: the thread has made no progress by `deadline`. With the lock. */
static bool wait_for_thread(struct record_sink *s, const struct timespec *deadline)
{
    return pthread_cond_clockwait(&s->progress, &s->lock, CLOCK_MONOTONIC, deadline) != ETIMEDOUT;
}

uint64_t record_sink_free(struct record_sink *s)
{
    if (!s)
        return 0;
    struct timespec deadline = after_ms(RECORD_SINK_STOP_MS);
    timer_clear(&s->flush);
    pthread_mutex_lock(&s->lock);
    while (s->handed.len && !s->failing && wait_for_thread(s, &deadline))
        continue;
    pthread_mutex_unlock(&s->lock);
    hand_over(s);
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    s->ended |= !s->has_thread;
    pthread_cond_signal(&s->work);
    while (!s->ended && wait_for_thread(s, &deadline))
        continue;
    bool ended = s->ended;
    uint64_t left = count_lines(buf_view(&s->filling));
    if (ended)
        left += count_lines(str_from(buf_view(&s->handed), s->taken));
    pthread_mutex_unlock(&s->lock);
    if (!ended) { /* it hangs in the kernel: what it uses stays */
        pthread_detach(s->thread);
        return left;
    }
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->progress);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    buf_clear(&s->filling);
    buf_clear(&s->handed);
    free((char *)s->options.path);
    free(s);
    return left;
}

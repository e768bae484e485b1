/*
 * Formats an event as one line, and writes lines without ever waiting for the process that reads them. A line
 * that the reader takes at once is written by the caller; while the reader stalls, lines wait in a bounded
 * queue for a thread, and what does not fit is dropped and counted.
 *
 * The descriptor itself may block, and its flags are never changed, as a pipe or terminal is shared with its
 * reader's other writers. So the writer opens it a second time, by /proc/self/fd, for a file description of
 * its own that does not block; a socket has MSG_DONTWAIT; a regular file takes a line into the page cache.
 * Where none of these is possible, the thread alone writes.
 */
#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"debug", "info", "warn", "error", "off"};

static struct {
    enum log_level level;
    enum log_format format;
} logger = {LOG_INFO, LOG_FORMAT_TEXT};

/* ---- an event as a line ---- */

/* A JSON string, in either format; invalid UTF-8 becomes U+FFFD, and what a terminal would obey or hide an
 * escape. */
static void put_quoted(struct buf *out, struct str s)
{
    const char *end = s.at + s.len;
    buf_byte(out, '"');
    for (const char *p = s.at; p < end;) {
        const char *from = p;
        while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= ' ')
            p++;
        printable_write_json(out, (struct str){from, (size_t)(p - from)});
        if (p < end && (unsigned char)*p < ' ')
            buf_printf(out, "\\u%04x", (unsigned)*p);
        else if (p < end)
            buf_printf(out, "\\%c", *p);
        p++;
    }
    buf_byte(out, '"');
}

static void put_field(struct buf *out, const struct log_field *field)
{
    bool json = logger.format == LOG_FORMAT_JSON;
    struct str text = str_cut(field->text, LOG_VALUE_MAX_BYTES);
    bool quoted = json || !printable_is_plain(text);
    buf_printf(out, json ? ",\"%s\":" : " %s=", field->key);
    if (field->is_number) {
        buf_int(out, field->number);
        return;
    }
    for (size_t i = 0; i < text.len && !quoted;
         i++) { /* what is hard to read, or could forge a field or line */
        unsigned char c = (unsigned char)text.at[i];
        quoted = c == ' ' || c == '"' || c == '=' || c == '\\';
    }
    if (quoted)
        put_quoted(out, text);
    else
        buf_str(out, text);
}

static void put_event(struct buf *line, enum log_level level, const char *event,
                      const struct log_field *fields)
{
    bool json = logger.format == LOG_FORMAT_JSON;
    int64_t now = clock_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    char stamp[32];
    gmtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(line, json ? "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"event\":\"%s\"" : "%s.%03dZ %s %s",
               stamp, (int)(now % 1000), level_names[level], event);
    for (; fields->key; fields++)
        if (fields->is_number || fields->text.len)
            put_field(line, fields);
    buf_text(line, json ? "}\n" : "\n");
}

/* ---- the writer ---- */

#define STACK_BYTES 131072u
#define POLL_MS     100 /* how soon a stalled thread sees that the log has another descriptor */

enum target_kind { TARGET_FILE, TARGET_SOCKET, TARGET_SECOND, TARGET_MAY_BLOCK };

struct target {
    int fd, second; /* second: -1 unless TARGET_SECOND */
    enum target_kind kind;
    unsigned number; /* distinguishes it from the one before */
};

struct line {
    struct line *next;
    size_t len, done;
    char at[];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    struct target target;
    bool in_use; /* the thread writes to `busy` without the lock */
    struct target busy;
    bool never_waits, has_thread;
    bool failing; /* the last line met an error (a full disk, a limit), and was dropped */
    struct line *first, **last;
    size_t queued_bytes;
    uint64_t dropped, dropped_before; /* before: as the last line about them said */
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .work = PTHREAD_COND_INITIALIZER,
            .idle = PTHREAD_COND_INITIALIZER,
            .target = {STDERR_FILENO, -1, TARGET_MAY_BLOCK, 0},
            .last = &writer.first};

/* ---- the target ---- */

static void target_close(const struct target *target)
{
    if (target->second >= 0)
        close(target->second);
    if (target->fd != STDERR_FILENO)
        close(target->fd);
}

static void target_find_kind(struct target *target)
{
    struct stat status;
    char path[64];
    if (fstat(target->fd, &status) != 0)
        return;
    if (S_ISREG(status.st_mode)) {
        target->kind = TARGET_FILE;
    } else if (S_ISSOCK(status.st_mode)) {
        target->kind = TARGET_SOCKET;
    } else {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", target->fd);
        target->second = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        target->kind = target->second >= 0 ? TARGET_SECOND : TARGET_MAY_BLOCK;
    }
}

/* -1 with EAGAIN if the reader stalls, unless the kind is TARGET_MAY_BLOCK. */
static ssize_t target_write(const struct target *target, const char *at, size_t len)
{
    ssize_t written;
    do {
        written = target->kind == TARGET_SOCKET
                      ? send(target->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                      : write(target->second >= 0 ? target->second : target->fd, at, len);
    } while (written < 0 && errno == EINTR);
    return written;
}

static bool would_block(ssize_t written)
{
    return written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS);
}

/* ---- the thread; all of these with the lock ---- */

static bool enqueue(struct str text, size_t done)
{
    struct line *line = malloc(sizeof(*line) + text.len);
    if (!line)
        return false;
    *line = (struct line){NULL, text.len, done};
    memcpy(line->at, text.at, text.len);
    *writer.last = line;
    writer.last = &line->next;
    writer.queued_bytes += text.len;
    return true;
}

/* Once lines flow again, one says how many are missing. */
static void enqueue_dropped(void)
{
    struct buf text = {0};
    if (writer.dropped == writer.dropped_before || writer.failing)
        return;
    put_event(
        &text, LOG_WARN, "log_lines_dropped",
        (const struct log_field[]){LOG_NUM("lines", writer.dropped - writer.dropped_before), {.key = NULL}});
    if (enqueue(buf_view(&text), 0))
        writer.dropped_before = writer.dropped;
    buf_clear(&text);
}

static void count_failure(bool failed)
{
    writer.failing = failed;
    writer.dropped += failed;
}

/* Without the lock while it writes: the line stays at the front, and only the thread takes it from there. */
static void write_first(void)
{
    struct line *line = writer.first;
    struct target target = writer.target;
    writer.busy = target;
    writer.in_use = true;
    pthread_mutex_unlock(&writer.lock);
    ssize_t written = target_write(&target, line->at + line->done, line->len - line->done);
    bool stalls = would_block(written);
    struct pollfd reader = {.fd = target.second >= 0 ? target.second : target.fd, .events = POLLOUT};
    if (stalls)
        poll(&reader, 1, POLL_MS);
    pthread_mutex_lock(&writer.lock);
    writer.in_use = false;
    if (target.number != writer.target.number)
        target_close(&target);
    if (written > 0)
        line->done += (size_t)written;
    if (target.number != writer.target.number && line->done < line->len) {
        line->done = 0; /* the other log gets it whole */
    } else if (!stalls) {
        count_failure(written <= 0);
        if (written > 0 && line->done < line->len)
            return;
        writer.first = line->next; /* written, or lost, as the log cannot be written */
        if (!writer.first)
            writer.last = &writer.first;
        writer.queued_bytes -= line->len;
        free(line);
    }
}

static void *run(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&writer.lock);
    for (;;) {
        while (writer.first)
            write_first();
        enqueue_dropped();
        if (writer.first)
            continue;
        pthread_cond_broadcast(&writer.idle);
        pthread_cond_wait(&writer.work, &writer.lock);
    }
    return NULL;
}

/* At the first line that waits: most daemons never need it. */
static bool has_thread(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (writer.has_thread)
        return true;
    sigfillset(&all); /* the daemon's handlers run in its main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    writer.has_thread = pthread_create(&thread, &attributes, run, NULL) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return writer.has_thread;
}

/* ---- the caller's side ---- */

void log_never_wait(void)
{
    pthread_mutex_lock(&writer.lock);
    writer.never_waits = true;
    if (writer.target.kind == TARGET_MAY_BLOCK && writer.target.second < 0)
        target_find_kind(&writer.target);
    pthread_mutex_unlock(&writer.lock);
}

/* How much of the line the reader takes now. */
static size_t write_now(struct str line)
{
    ssize_t written = -1;
    errno = EAGAIN;
    if (!writer.first && !writer.in_use && writer.target.kind != TARGET_MAY_BLOCK)
        written = target_write(&writer.target, line.at, line.len);
    if (would_block(written))
        return 0;
    count_failure(written <= 0);
    return written > 0 ? (size_t)written : line.len; /* the daemon goes on if its log cannot be written */
}

/* By one write(2), so that the lines of several daemons never mix. */
static void write_line(struct str line)
{
    pthread_mutex_lock(&writer.lock);
    if (!writer.never_waits) {
        (void)!write(writer.target.fd, line.at, line.len);
        pthread_mutex_unlock(&writer.lock);
        return;
    }
    size_t done = write_now(line);
    if (done < line.len) {
        bool fits = writer.queued_bytes + line.len <= LOG_QUEUE_MAX_BYTES;
        if (!has_thread() || !fits || !enqueue(line, done))
            writer.dropped++;
        else
            pthread_cond_signal(&writer.work);
    } else if (writer.dropped != writer.dropped_before && !writer.failing && has_thread()) {
        pthread_cond_signal(&writer.work); /* lines flow again: one says how many are missing */
    }
    pthread_mutex_unlock(&writer.lock);
}

void log_flush(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOG_CLOSE_MS / 1000;
    pthread_mutex_lock(&writer.lock);
    while (writer.first || (writer.has_thread && !writer.failing && writer.dropped != writer.dropped_before))
        if (pthread_cond_clockwait(&writer.idle, &writer.lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&writer.lock);
}

uint64_t log_lines_dropped(void)
{
    pthread_mutex_lock(&writer.lock);
    uint64_t dropped = writer.dropped;
    pthread_mutex_unlock(&writer.lock);
    return dropped;
}

/* ---- the logger ---- */

enum err log_open(enum log_level level, enum log_format format, const char *path, struct why *why)
{
    int fd = STDERR_FILENO;
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    if (path &&
        (fd = open(path, flags | O_NONBLOCK, 0640)) < 0) /* a FIFO without a reader fails, not waits */
        return err_set(why, ERR_IO, "log file %s: %s", path,
                       errno == ENXIO ? "nobody reads this FIFO" : strerror(errno));
    if (path)
        fcntl(fd, F_SETFL, flags & O_APPEND);
    pthread_mutex_lock(&writer.lock);
    bool is_busy = writer.in_use && writer.busy.number == writer.target.number; /* the thread closes it */
    if (!is_busy)
        target_close(&writer.target);
    writer.target = (struct target){fd, -1, TARGET_MAY_BLOCK, writer.target.number + 1};
    if (writer.never_waits)
        target_find_kind(&writer.target);
    pthread_mutex_unlock(&writer.lock);
    logger.level = level;
    logger.format = format;
    return OK;
}

enum log_level log_quiet(void)
{
    enum log_level level = logger.level;
    logger.level = LOG_OFF;
    return level;
}

void log_level_set(enum log_level level)
{
    logger.level = level;
}

bool log_wants(enum log_level level)
{
    return level >= logger.level;
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    struct buf line = {0};
    if (!log_wants(level))
        return;
    put_event(&line, level, event, fields);
    write_line(buf_view(&line));
    buf_clear(&line);
}

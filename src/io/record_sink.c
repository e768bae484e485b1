/*
 * Two buffers: `filling` is the loop's alone, `handed` the thread's until it is empty again. So the lock is
 * taken once a batch, and the thread allocates nothing.
 */
#include "io/record_sink.h"

#include "base/buf.h"
#include "base/clock.h"
#include "io/record_target.h"
#include "io/timer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

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
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
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
 * The loop may then replace `handed` meanwhile. */
static void write_batch(struct record_sink *s, struct record_target *target, struct str rest)
{
    const struct record_target_ops *ops = record_target_ops(&s->options);
    struct why why;
    uint64_t lost = 0;
    size_t done = 0;
    bool open = target->fd >= 0 || ops->open(target, &why) == OK;
    if (open && rest.len)
        done = ops->write(target, rest, &lost, &why);
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
            record_target_close(&target);
        write_batch(s, &target, rest);
        pthread_mutex_lock(&s->lock);
    }
    s->ended = true;
    pthread_cond_broadcast(&s->progress);
    pthread_mutex_unlock(&s->lock);
    record_target_close(&target);
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

static void report_change(struct record_sink *s)
{
    struct record_sink_status status;
    record_sink_status(s, &status);
    if (status.down == s->down)
        return;
    s->down = status.down;
    s->changed(s->owner, &status);
}

static void on_flush(void *owner)
{
    struct record_sink *s = owner;
    if (!s->has_thread)
        start_thread(s);
    hand_over(s);
    report_change(s);
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
    enum err err = record_target_ops(options)->open(&target, why);
    record_target_close(&target);
    return err;
}

static void free_sink(struct record_sink *s)
{
    pthread_cond_destroy(&s->progress);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    buf_clear(&s->filling);
    buf_clear(&s->handed);
    free((char *)s->options.path);
    free(s);
}

struct record_sink *record_sink_new(struct loop *loop, const struct record_sink_options *options,
                                    void (*changed)(void *owner, const struct record_sink_status *status),
                                    void *owner)
{
    struct record_sink *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
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

/* False: the thread has not come so far by `deadline`. */
static bool wait_until(struct record_sink *s, bool (*is_so)(const struct record_sink *s),
                       const struct timespec *deadline)
{
    int error = 0;
    while (!is_so(s) && error != ETIMEDOUT)
        error = pthread_cond_clockwait(&s->progress, &s->lock, CLOCK_MONOTONIC, deadline);
    return is_so(s);
}

static bool is_free(const struct record_sink *s)
{
    return !s->handed.len || s->failing;
}

static bool has_ended(const struct record_sink *s)
{
    return s->ended;
}

uint64_t record_sink_free(struct record_sink *s)
{
    if (!s)
        return 0;
    struct timespec deadline = after_ms(RECORD_SINK_STOP_MS);
    timer_clear(&s->flush);
    pthread_mutex_lock(&s->lock);
    wait_until(s, is_free, &deadline);
    pthread_mutex_unlock(&s->lock);
    hand_over(s);
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    s->ended |= !s->has_thread;
    pthread_cond_signal(&s->work);
    bool ended = wait_until(s, has_ended, &deadline);
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
    free_sink(s);
    return left;
}

/*
 * timer_settime costs 0.7 µs, too much for every call: the first run starts the
 * timer, and it stops itself after 20 ticks without a run. The handler uses only
 * async-signal-safe functions and never jumps.
 */
#include "sandbox/deadline.h"

#include "sandbox/fault_record.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct {
    timer_t timer;
    bool made;
    volatile sig_atomic_t armed, idle;
    struct deadline_run *volatile running;
} ticker;

const struct deadline_run *deadline_running(void)
{
    return ticker.running;
}

static void arm(bool on)
{
    struct itimerspec every = {0};
    if (on)
        every.it_value.tv_nsec = every.it_interval.tv_nsec = DEADLINE_TICK_MS * 1000000L;
    ticker.armed = on;
    timer_settime(ticker.timer, 0, &every, NULL);
}

static void put(int fd, const char *text)
{
    while (write(fd, text, strlen(text)) < 0 && errno == EINTR)
        continue;
}

/* printf is not async-signal-safe. */
static void end_process(const struct deadline_run *run)
{
    put(STDERR_FILENO, "toolgate: policy stalled past the watchdog, the process ends: ");
    put(STDERR_FILENO, run->file);
    put(STDERR_FILENO, "\n");
    fault_record_write("stall", run->source_hash, run->file);
    _exit(DEADLINE_STALL_EXIT);
}

static void on_tick(int signo)
{
    (void)signo;
    int saved = errno;
    struct deadline_run *run = ticker.running;
    if (!run) {
        if (++ticker.idle >= (int)DEADLINE_IDLE_TICKS)
            arm(false);
    } else if (++run->ticks >= run->watchdog) {
        end_process(run);
    } else if (run->ticks >= run->budget) {
        run->late = 1;
        run->on_late(run->owner);
    }
    errno = saved;
}

/* A child process does not inherit timers. */
static void after_fork(void)
{
    ticker.made = false;
    ticker.armed = 0;
}

static void make_timer(void)
{
    static bool registered;
    struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    sigemptyset(&act.sa_mask);
    if (sigaction(event.sigev_signo, &act, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &ticker.timer) != 0) {
        perror("toolgate: no timer for the deadline of policies");
        abort();
    }
    if (!registered)
        pthread_atfork(NULL, NULL, after_fork);
    registered = true;
    ticker.made = true;
}

void deadline_enter(struct deadline_run *run)
{
    run->ticks = run->late = 0;
    run->outer = ticker.running;
    if (!ticker.made)
        make_timer();
    ticker.running = run; /* before `armed` is read: from here on the handler does not disarm */
    ticker.idle = 0;
    if (!ticker.armed)
        arm(true);
}

void deadline_leave(struct deadline_run *run)
{
    ticker.running = run->outer;
}

/*
 * timer_settime costs 0.7 µs, too much for every call: the timer is started
 * by the first run and stops itself once 20 ticks passed without any.
 * Everything in the handler is async-signal-safe; it never jumps.
 */
#include "sandbox/deadline.h"

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
    int stall_fd; /* where the watchdog writes which file it was; 0: nowhere */
} tick;

void deadline_set_stall_fd(int fd)
{
    tick.stall_fd = fd;
}

static void arm(bool on)
{
    struct itimerspec every = {0};
    if (on)
        every.it_value.tv_nsec = every.it_interval.tv_nsec = DEADLINE_TICK_MS * 1000000L;
    tick.armed = on;
    timer_settime(tick.timer, 0, &every, NULL);
}

static void say(int fd, const char *text)
{
    while (write(fd, text, strlen(text)) < 0 && errno == EINTR)
        continue;
}

/* printf is not for signal handlers. */
static void say_hex(int fd, uint64_t number)
{
    char digits[17] = "";
    for (int i = 15; i >= 0; i--, number >>= 4)
        digits[i] = "0123456789abcdef"[number & 15];
    say(fd, digits);
}

static void tell_stall(int fd, const struct deadline_run *run)
{
    say_hex(fd, run->text);
    say(fd, " ");
    say(fd, run->file);
    say(fd, "\n");
}

static void end_process(const struct deadline_run *run)
{
    say(STDERR_FILENO, "toolgate: policy stalled past the watchdog, the process ends: ");
    say(STDERR_FILENO, run->file);
    say(STDERR_FILENO, "\n");
    if (tick.stall_fd > 0)
        tell_stall(tick.stall_fd, run);
    _exit(DEADLINE_STALL_EXIT);
}

static void on_tick(int signo)
{
    (void)signo;
    int saved = errno;
    struct deadline_run *run = tick.running;
    if (!run) {
        if (++tick.idle >= (int)DEADLINE_IDLE_TICKS)
            arm(false);
    } else if (++run->ticks >= run->watchdog) {
        end_process(run);
    } else if (run->ticks >= run->budget) {
        run->late = 1;
        run->on_late(run->owner);
    }
    errno = saved;
}

/* Timers stay with the parent. */
static void after_fork(void)
{
    tick.made = false;
    tick.armed = 0;
}

static void make_timer(void)
{
    static bool watching;
    struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    sigemptyset(&act.sa_mask);
    if (sigaction(event.sigev_signo, &act, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &tick.timer) != 0) {
        perror("toolgate: no timer for the deadline of policies");
        abort();
    }
    if (!watching)
        pthread_atfork(NULL, NULL, after_fork);
    watching = true;
    tick.made = true;
}

void deadline_enter(struct deadline_run *run)
{
    run->ticks = run->late = 0;
    run->outer = tick.running;
    if (!tick.made)
        make_timer();
    tick.running = run; /* before looking at `armed`: from here on the handler does not disarm */
    tick.idle = 0;
    if (!tick.armed)
        arm(true);
}

void deadline_leave(struct deadline_run *run)
{
    tick.running = run->outer;
}

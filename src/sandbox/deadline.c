/*
 * timer_settime costs 0.7 µs, too much for every call: the first run starts the
 * timer, and it stops itself after 20 ticks without a run. The handler uses only
 * async-signal-safe functions and never jumps.
 */
#include "sandbox/deadline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct {
    timer_t timer;
    bool made;
    volatile sig_atomic_t armed, idle;
    struct deadline_run *volatile running;
} ticker;

/* ---- the fault record: all but fault_record_open runs in signal handlers, without printf and malloc ---- */

#define HEX_DIGITS               16u
#define FAULT_RECORD_STACK_BYTES 65536u /* for the handler: the usual stack may have overflowed */

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
#define CRASH_SIGNALS (sizeof(crash_signals) / sizeof(crash_signals[0]))

static struct {
    int fd;
    struct sigaction before[CRASH_SIGNALS];
    stack_t stack_before;
} record;

static char handler_stack[FAULT_RECORD_STACK_BYTES] __attribute__((aligned(16)));

static void put_hex(char out[HEX_DIGITS], uint64_t n)
{
    for (size_t i = HEX_DIGITS; i-- > 0; n >>= 4)
        out[i] = "0123456789abcdef"[n & 15];
}

/* One writev, so that lines of two processes do not mix. */
static void fault_record_write(const char *kind, uint64_t text, const char *file)
{
    char text_hex[HEX_DIGITS], space[] = " ", end[] = "\n";
    if (record.fd <= 0)
        return;
    put_hex(text_hex, text);
    struct iovec parts[] = {{text_hex, HEX_DIGITS},       {space, 1},
                            {(char *)kind, strlen(kind)}, {space, 1},
                            {(char *)file, strlen(file)}, {end, 1}};
    while (writev(record.fd, parts, sizeof(parts) / sizeof(parts[0])) < 0 && errno == EINTR)
        continue;
}

static void put_error(const char *text)
{
    while (write(STDERR_FILENO, text, strlen(text)) < 0 && errno == EINTR)
        continue;
}

/* The signal is delivered once more, with what handled it before: a core dump is of the place of the fault.
 */
static void on_crash(int signo, siginfo_t *info, void *context)
{
    const struct deadline_run *run = ticker.running;
    (void)context;
    if (run) {
        put_error("toolgate: the process crashed in a policy: ");
        put_error(run->file);
        put_error("\n");
        fault_record_write("crash", run->source_hash, run->file);
    }
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        if (crash_signals[i] == signo)
            sigaction(signo, &record.before[i], NULL);
    if (info->si_code <= 0) /* sent by kill or raise: nothing repeats it */
        raise(signo);
}

static void catch_crashes(void)
{
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaltstack(&stack, &record.stack_before);
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &action, &record.before[i]);
}

static void stop_catching(void)
{
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &record.before[i], NULL);
    sigaltstack(&record.stack_before, NULL);
}

void fault_record_open(int fd)
{
    if (fd > 0 && record.fd <= 0)
        catch_crashes();
    else if (fd <= 0 && record.fd > 0)
        stop_catching();
    record.fd = fd;
}

/* ---- the ticker ---- */

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

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

#define TICK_MS    1u
#define IDLE_TICKS 20u /* without a running policy; then the timer stops */

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

static void put(int fd, const char *text)
{
    while (write(fd, text, strlen(text)) < 0 && errno == EINTR)
        continue;
}

/* Says what the policy did to the process, and writes it down in one writev, so that lines of two processes
 * do not mix. */
static void report_fault(const char *message, const char *kind, const struct deadline_run *run)
{
    char hash[HEX_DIGITS], space[] = " ", end[] = "\n";
    uint64_t n = run->source_hash;
    put(STDERR_FILENO, message);
    put(STDERR_FILENO, run->file);
    put(STDERR_FILENO, "\n");
    for (size_t i = HEX_DIGITS; i-- > 0; n >>= 4)
        hash[i] = "0123456789abcdef"[n & 15];
    struct iovec parts[] = {{hash, HEX_DIGITS},
                            {space, 1},
                            {(char *)kind, strlen(kind)},
                            {space, 1},
                            {(char *)run->file, strlen(run->file)},
                            {end, 1}};
    while (record.fd > 0 && writev(record.fd, parts, sizeof(parts) / sizeof(parts[0])) < 0 && errno == EINTR)
        continue;
}

/* The signal is delivered once more, with what handled it before: a core dump is of the place of the fault.
 */
static void on_crash(int signo, siginfo_t *info, void *context)
{
    const struct deadline_run *run = ticker.running;
    (void)context;
    if (run)
        report_fault("toolgate: the process crashed in a policy: ", "crash", run);
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        if (crash_signals[i] == signo)
            sigaction(signo, &record.before[i], NULL);
    if (info->si_code <= 0) /* sent by kill or raise: nothing repeats it */
        raise(signo);
}

void fault_record_open(int fd)
{
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    bool catches = fd > 0 && record.fd <= 0, stops = fd <= 0 && record.fd > 0;
    sigemptyset(&action.sa_mask);
    if (catches)
        sigaltstack(&stack, &record.stack_before);
    for (size_t i = 0; i < CRASH_SIGNALS && (catches || stops); i++)
        sigaction(crash_signals[i], catches ? &action : &record.before[i],
                  catches ? &record.before[i] : NULL);
    if (stops)
        sigaltstack(&record.stack_before, NULL);
    record.fd = fd;
}

/* ---- the ticker ---- */

static void arm(bool on)
{
    struct itimerspec every = {0};
    if (on)
        every.it_value.tv_nsec = every.it_interval.tv_nsec = TICK_MS * 1000000L;
    ticker.armed = on;
    timer_settime(ticker.timer, 0, &every, NULL);
}

static void on_tick(int signo)
{
    (void)signo;
    int saved = errno;
    struct deadline_run *run = ticker.running;
    if (!run) {
        if (++ticker.idle >= (int)IDLE_TICKS)
            arm(false);
    } else if (++run->ticks >= run->watchdog) {
        report_fault("toolgate: policy stalled past the watchdog, the process ends: ", "stall", run);
        _exit(DEADLINE_STALL_EXIT);
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

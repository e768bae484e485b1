/* Handlers call only what is safe in a signal, and say what was written down before. */
#include "hook/hook_guard.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t has_answer;
static char answer_text[HOOK_ANSWER_MAX_BYTES];
static size_t answer_len;

/* Never blocks: a pipe that is full has no reader. */
static void write_now(int fd, const char *at, size_t len)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    ssize_t ignored = poll(&ready, 1, 0) == 1 ? write(fd, at, len) : 0;
    (void)ignored;
}

static void on_deadline(int number)
{
    static const char late[] =
        "toolgate hook: not done within 1.5 s: the daemon hangs, or stdin has no end\n";
    (void)number;
    write_now(STDERR_FILENO, late, sizeof(late) - 1);
    if (has_answer)
        write_now(STDOUT_FILENO, answer_text, answer_len);
    _exit(has_answer ? 0 : HOOK_BLOCKS);
}

static void on_fault(int number)
{
    static const char fault[] = "toolgate hook: it was ended before it had an answer\n";
    (void)number;
    write_now(STDERR_FILENO, fault, sizeof(fault) - 1);
    _exit(HOOK_BLOCKS);
}

void hook_guard_begin(void)
{
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGSYS,  SIGTERM,  SIGINT,
                                 SIGHUP,  SIGQUIT, SIGXCPU, SIGXFSZ, SIGUSR1, SIGUSR2, SIGVTALRM};
    struct itimerval deadline = {
        .it_value = {.tv_sec = HOOK_DEADLINE_MS / 1000, .tv_usec = HOOK_DEADLINE_MS % 1000 * 1000}};
    struct sigaction action = {.sa_handler = on_fault};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigaction(faults[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a stdout without a reader is an error of write */
    action.sa_handler = on_deadline;
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    setitimer(ITIMER_REAL, &deadline, NULL);
}

void hook_guard_answer(struct str answer)
{
    answer_len = answer.len < sizeof(answer_text) ? answer.len : 0;
    if (answer_len)
        memcpy(answer_text, answer.at, answer_len);
    has_answer = answer_len == answer.len;
}

bool hook_guard_say(struct str answer)
{
    has_answer = false; /* part of another may be written */
    bool said = !answer.len || fwrite(answer.at, 1, answer.len, stdout) == answer.len;
    said = fflush(stdout) == 0 && said;
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    return said;
}

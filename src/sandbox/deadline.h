/*
 * The deadline of running policies: a process-wide 1 ms timer that runs only
 * while a policy does. It counts the ticks of the running hook; past its budget
 * it calls `on_late`, and past the watchdog's limit it ends the process and
 * names the file. Signals are process-wide, so this is static state.
 */
#ifndef TOOLGATE_SANDBOX_DEADLINE_H
#define TOOLGATE_SANDBOX_DEADLINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define DEADLINE_STALL_EXIT 70 /* exit status after the watchdog; EX_SOFTWARE */

#define SANDBOX_LOAD_DEADLINE_MS 200u  /* for loading one file, which blocks the daemon */
#define SANDBOX_WATCHDOG_MS      2000u /* past the deadline: a run that does not stop ends the process */

/* One run, on the caller's stack: it fills the fields up to the blank line. */
struct deadline_run {
    sig_atomic_t budget, watchdog; /* in ticks */
    void (*on_late)(void *owner);  /* in the signal handler, at every tick past the budget */
    void *owner;
    const char *file;     /* that the watchdog names */
    uint64_t source_hash; /* of the file's content, written beside its name */

    volatile sig_atomic_t ticks;
    volatile sig_atomic_t late; /* the budget is used up */
    struct deadline_run *outer; /* the run that contains this one; its ticks stop */
};

void deadline_enter(struct deadline_run *run);
void deadline_leave(struct deadline_run *run);

/* The file, open for appending, in which a signal handler writes which file's policy stalled or crashed the
 * process before it ends: "<text: 16 hex> <stall|crash> <file>". 0: none. With a file SIGSEGV, SIGBUS,
 * SIGABRT, SIGILL and SIGFPE are caught while a policy runs, and end the process as they would have. */
void fault_record_open(int fd);

#endif

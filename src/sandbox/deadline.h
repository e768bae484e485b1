/*
 * A clock that interrupts: a 1 ms tick that runs only while policies do. It
 * counts the ticks of the running hook; past its budget it calls `late`, and
 * past the watchdog's it ends the process, naming the file.
 *
 * The tick has to be process-wide, as signals are. It is the one piece of
 * static state in this room.
 */
#ifndef TOOLGATE_SANDBOX_DEADLINE_H
#define TOOLGATE_SANDBOX_DEADLINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define DEADLINE_TICK_MS    1u
#define DEADLINE_IDLE_TICKS 20u /* without a policy in them; then the timer stops itself */
#define DEADLINE_STALL_EXIT 70  /* exit status after the watchdog; EX_SOFTWARE */

#define SANDBOX_LOAD_DEADLINE_MS 200u /* loading one file, during which a serving daemon answers nobody */
#define SANDBOX_WATCHDOG_MS      2000u /* a run that even its deadline cannot stop ends the process after this */

/* Where the watchdog writes which file stalled, before it ends the process; 0: nowhere. */
void deadline_set_stall_fd(int fd);

/* One bounded run; lives on the stack of whoever runs it. */
struct deadline_run {
    volatile sig_atomic_t ticks;
    volatile sig_atomic_t late; /* the budget is spent */
    sig_atomic_t budget, watchdog;
    void (*on_late)(void *owner); /* in the signal handler, at every tick past the budget */
    void *owner;
    const char *file;           /* named where the watchdog ends the process */
    uint64_t text;              /* hash of the file's text, told beside its name */
    struct deadline_run *outer; /* a run inside a run: the outer one stands still meanwhile */
};

void deadline_enter(struct deadline_run *run);
void deadline_leave(struct deadline_run *run);

#endif

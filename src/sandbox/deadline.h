/* Limits of the time of policies, and the record of those that end the process. */
#ifndef TOOLGATE_SANDBOX_DEADLINE_H
#define TOOLGATE_SANDBOX_DEADLINE_H

#define DEADLINE_STALL_EXIT 70 /* exit status after the watchdog; EX_SOFTWARE */

#define SANDBOX_LOAD_DEADLINE_MS 200u  /* for loading one file, which blocks the daemon */
#define SANDBOX_WATCHDOG_MS      2000u /* past the deadline: a run that does not stop ends the process */

/* The file, open for appending, in which a signal handler writes which file's policy stalled or crashed the
 * process before it ends: "<text: 16 hex> <stall|crash> <file>". 0: none. With a file SIGSEGV, SIGBUS,
 * SIGABRT, SIGILL and SIGFPE are caught while a policy runs, and end the process as they would have. */
void fault_record_open(int fd);

#endif

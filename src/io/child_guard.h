/*
 * The guard: a tiny process that knows the process groups we started and ends
 * them when the daemon is gone, even after kill -9. The kernel's
 * PR_SET_PDEATHSIG reaches a child, but not the child's children. The guard is
 * forked with the first child and ends with the daemon.
 *
 *   daemon ──socket──▶ guard         +group  sent by the new process itself, before it executes its program
 *                                    -group  sent by the daemon when the group is empty
 *                                    end of file: SIGTERM, CHILD_TERM_MS, SIGKILL
 */
#ifndef TOOLGATE_IO_CHILD_GUARD_H
#define TOOLGATE_IO_CHILD_GUARD_H

#include "base/err.h"

#include <sys/types.h>

#define CHILD_MAX 4096u /* children at once */

struct child_guard_message {
    pid_t group; /* negative: the group is empty */
};

/* Returns the socket to which a new process writes its child_guard_message. Starts the guard, also again if
 * somebody ended it. ERR_LIMIT: there are CHILD_MAX children; ERR_IO: the system refused. */
enum err child_guard_ensure(int *socket, struct why *why);

/* Keep the daemon's list of groups, which a guard that is started again inherits. */
void child_guard_add(pid_t group);
void child_guard_remove(pid_t group);

/* Only if no group is left. Returns when the guard has ended. */
void child_guard_stop(void);

#endif

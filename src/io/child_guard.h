/*
 * A tiny process that knows the groups we started and ends what is left of
 * them when the daemon is gone, even by kill -9: what the kernel does for a
 * child itself (PR_SET_PDEATHSIG) it does not do for the child's children.
 * It is made when the first child is, and ends with the daemon.
 *
 *   daemon ──socket──▶ guard         +group  from the new process itself, before it becomes another program
 *                                    -group  from the daemon, when nobody is left of it
 *                                    end of file: TERM, CHILD_TERM_MS, KILL
 */
#ifndef TOOLGATE_IO_CHILD_GUARD_H
#define TOOLGATE_IO_CHILD_GUARD_H

#include "base/err.h"

#include <sys/types.h>

#define CHILD_MAX 4096u /* processes of ours at once */

/* What is said to it: a group's number, negative when it is gone. */
struct child_guard_message {
    pid_t group;
};

/* Where a new process writes its child_guard_message. Makes the guard, and another where somebody ended it.
 * ERR_LIMIT: there are CHILD_MAX; ERR_IO: the system refused. */
enum err child_guard_ensure(int *socket, struct why *why);

/* Which groups there are, for a guard that has to be made anew. */
void child_guard_add(pid_t group);
void child_guard_remove(pid_t group);

/* No group is left: returns when the guard is gone, too. */
void child_guard_stop(void);

#endif

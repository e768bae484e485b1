/*
 * One process made: the part of io/child.c that runs between clone and exec.
 * Only files of io/child*.c include this.
 */
#ifndef TOOLGATE_IO_CHILD_SPAWN_H
#define TOOLGATE_IO_CHILD_SPAWN_H

#include "io/child.h"

#define CHILD_OPEN_FILES                                                                                     \
    1024u /* soft limit of open files: what select() can take, as the system has it; may be raised */

struct spawn {
    const struct child_spec *spec;
    int stdio[3]; /* become its 0, 1, 2 */
    int guard;    /* is told the new group (child_guard.h); -1: nobody */
};

/* The process leads a session, and so a group, of its own. `pidfd` becomes readable when it has ended. */
enum err child_spawn(const struct spawn *spawn, pid_t *pid, int *pidfd, struct why *why);

#endif

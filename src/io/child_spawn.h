/* Creates one process: the part of io/child.c that runs between clone and exec. Private to io/child*.c. */
#ifndef TOOLGATE_IO_CHILD_SPAWN_H
#define TOOLGATE_IO_CHILD_SPAWN_H

#include "io/child.h"

#define CHILD_OPEN_FILES 1024u /* soft limit, which select() can handle; the child may raise it */

struct child_spawn_options {
    const struct child_spec *spec;
    int stdio[3]; /* become descriptors 0, 1, 2 */
    int guard;    /* socket that receives the new group (child_guard.h); -1: none */
};

/* The process leads a session and a group of its own. `pidfd` becomes readable when it has ended. */
enum err child_spawn(const struct child_spawn_options *options, pid_t *pid, int *pidfd, struct why *why);

#endif

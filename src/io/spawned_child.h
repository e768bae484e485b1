/*
 * A child process that `toolgate spawner` started for this process: asked for
 * by name over a Unix socket, one connection each. Its pipes arrive by
 * SCM_RIGHTS. Closing the connection kills it with its group.
 *
 *   client                    spawner
 *   "start NAME\n"        ─▶
 *                         ◀─  "started PID\n" with three descriptors, or "refused REASON\n"
 *   "end\n"               ─▶  SIGTERM after a while, then SIGKILL (child_terminate)
 *                         ◀─  "ended STATUS\n" (waitpid's)
 *   closes                ─▶  SIGKILL
 */
#ifndef TOOLGATE_IO_SPAWNED_CHILD_H
#define TOOLGATE_IO_SPAWNED_CHILD_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define SPAWNED_LINE_MAX_BYTES 1024u /* of one message */

struct loop;
struct spawned_child;

/* Each fires in a turn of the loop, never inside a spawned_child_ function. */
struct spawned_child_callbacks {
    /* The receiver owns the three descriptors, which are non-blocking. */
    void (*started)(void *owner, int in, int out, int errors);
    /* It ended, or could not be started. `why` is NULL if `status`, as waitpid's, is known. It is freed when
     * this returns. */
    void (*ended)(void *owner, int status, const char *why);
};

/* ERR_IO, ERR_UNAVAILABLE: the spawner cannot be reached; `why` states the fix. */
enum err spawned_child_start(struct loop *loop, struct str path, struct str name,
                             const struct spawned_child_callbacks *callbacks, void *owner,
                             struct spawned_child **out, struct why *why);
int64_t spawned_child_pid(const struct spawned_child *child); /* 0: not started yet */
void spawned_child_terminate(struct spawned_child *child);    /* after its stdin was closed */
void spawned_child_kill(struct spawned_child *child);         /* frees it; `ended` does not fire */

#endif

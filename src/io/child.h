/*
 * A process of ours: started without a shell in a group of its own, with pipes
 * (socket pairs, as the MCP SDKs make them) for stdin and stdout and one for
 * stderr, waited for by the loop, ended with its whole group. It does not
 * outlive the daemon, not even one that was killed.
 */
#ifndef TOOLGATE_IO_CHILD_H
#define TOOLGATE_IO_CHILD_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child;
struct loop;

/* 0: as the system has it. */
struct child_limits {
    uint64_t memory_bytes, file_bytes;
    uint32_t cpu_s, files, processes;
};

struct child_spec {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in the PATH of `env` */
    const char *const *env;  /* NAME=VALUE, ends with NULL: all that it gets */
    const char *cwd;         /* NULL: the daemon's */
    struct child_limits limits;
};

/* Each fires from the loop's turn, never inside a child_ function. */
struct child_hooks {
    /* It and everything that held its pipes is gone, or CHILD_LINGER_MS have passed since it ended. `status`
     * is waitpid's. The child is freed when it returns. */
    void (*ended)(void *owner, int status);
};

#define CHILD_LINGER_MS 200u  /* grandchildren may hold the pipes for that long after it ended */
#define CHILD_TERM_MS   2000u /* child_end: from closed stdin to SIGTERM, and from there to SIGKILL */

/* ERR_NOT_FOUND, ERR_IO: it could not be started, and `why` says what to mend (no such command, no such
 * folder, not executable). The descriptors are non-blocking and the caller's to close; each may be closed at
 * any time. */
enum err child_start(struct loop *loop, const struct child_spec *spec, const struct child_hooks *hooks,
                     void *owner, struct child **out, int *in, int *output, int *errors, struct why *why);
pid_t child_pid(const struct child *child);

/* The orderly end: the caller has closed `in`; SIGTERM follows after CHILD_TERM_MS, SIGKILL after as long
 * again, each to the whole group. `ended` fires as ever. */
void child_end(struct child *child);
/* SIGKILL to the whole group, now. `ended` fires as ever, unless `forget`. */
void child_kill(struct child *child, bool forget);

/* "exit code 3", "killed by SIGSEGV". */
struct arena;
struct str child_status(struct arena *arena, int status);

/* At the daemon's end: SIGTERM and after `ms` SIGKILL to every group that is left; returns when all are gone.
 */
void children_end(struct loop *loop, uint32_t ms);

#endif

/*
 * A process of ours: started without a shell in a session and group of its
 * own, with pipes (or socket pairs, as the MCP SDKs make them) for stdin and
 * stdout and a pipe for stderr, waited for by the loop, ended with its whole
 * group. It does not outlive the daemon, not even one that was killed
 * (io/child_guard.h); only what leaves the group on purpose (setsid) can.
 */
#ifndef TOOLGATE_IO_CHILD_H
#define TOOLGATE_IO_CHILD_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct child;
struct loop;

/* 0: as the system has it. */
struct child_limits {
    uint64_t memory_bytes; /* that it may write to (RLIMIT_DATA); address space alone, of which node and Go
                              reserve plenty, is not counted */
    uint64_t file_bytes;   /* of each file it writes */
    uint32_t cpu_s, files;
    uint32_t processes; /* of its user altogether; nothing to root */
};

struct child_spec {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in the PATH of `env` */
    const char *const *env;  /* NAME=VALUE, ends with NULL: all that it gets */
    const char *cwd;         /* NULL: the daemon's */
    bool
        pipes; /* stdin and stdout are pipes, which scripts can open again as /dev/stdin; else socket pairs */
    struct child_limits limits;
};

/* Each fires from the loop's turn, never inside a child_ function. */
struct child_callbacks {
    /* It was waited for and nobody is left of its group: they went by themselves, within CHILD_LINGER_MS, or
     * have been killed. What it wrote can be read until then and after. `status` is waitpid's, or
     * CHILD_STATUS_LOST. The child is freed when it returns. */
    void (*ended)(void *owner, int status);
};

#define CHILD_LINGER_MS 200u  /* others of its group may go on for that long after it ended */
#define CHILD_TERM_MS   2000u /* child_terminate: from closed stdin to SIGTERM, and from there to SIGKILL */

/* ERR_NOT_FOUND, ERR_LIMIT, ERR_IO: it could not be started, and `why` says what to mend (no such command, no
 * such folder, not executable). The descriptors are non-blocking and the caller's to close; each may be
 * closed at any time. */
enum err child_start(struct loop *loop, const struct child_spec *spec, const struct child_callbacks *hooks,
                     void *owner, struct child **out, int *in, int *output, int *errors, struct why *why);
pid_t child_pid(const struct child *child);

/* The orderly end: the caller has closed `in`; SIGTERM follows after CHILD_TERM_MS, SIGKILL after as long
 * again, each to the whole group. `ended` fires as ever. */
void child_terminate(struct child *child);
/* SIGKILL to the whole group, now. `ended` fires as ever, unless `forget`: then the child is not the caller's
 * any more. */
void child_kill(struct child *child, bool forget);

/* Somebody else in this process waited for it: neither exited nor killed, as far as we know. */
#define CHILD_STATUS_LOST (-1)
/* "exit code 3", "killed by SIGSEGV". */
struct str child_status(struct arena *arena, int status);

/* At the daemon's end, before loop_free: SIGTERM and after `ms` SIGKILL to every group that is left; returns
 * when all are gone. No hook fires any more, and every child is freed. */
void child_terminate_all(struct loop *loop, uint32_t ms);

#endif

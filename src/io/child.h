/*
 * A child process, started without a shell in a session and process group of
 * its own. stdin and stdout are pipes or, as the MCP SDKs make them, socket
 * pairs; stderr is a pipe. The event loop waits for it, and it ends with its
 * whole group. No child outlives the daemon, even a killed one
 * (a guard ends it), unless it leaves its group deliberately (setsid).
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

/* 0: the system's default. */
struct child_limits {
    uint64_t memory_bytes; /* writable memory (RLIMIT_DATA); reserved address space, of which node and Go use
                              much, does not count */
    uint64_t file_bytes;   /* of each file it writes */
    uint32_t cpu_s, files;
    uint32_t processes; /* of its user in total; not enforced for root */
};

struct sock_fprog;

/* What the process gives up before it executes its program (confine/confine.h prepares it). */
struct child_confinement {
    int landlock;                    /* a ruleset; -1: none */
    const struct sock_fprog *filter; /* of system calls; NULL: none */
};

struct child_identity {
    uid_t uid;
    gid_t gid; /* its only group */
};

struct child_spec {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in the PATH of `env` */
    const char *const *env;  /* NAME=VALUE, ends with NULL: the whole environment */
    const char *cwd;         /* NULL: the daemon's */
    int program; /* an open descriptor (O_PATH is enough) of the program, which is not looked up; 0: none */
    bool pipes;  /* for stdin and stdout, which scripts can open as /dev/stdin; false: socket pairs */
    struct child_limits limits;
    const struct child_confinement *confinement; /* NULL: as free as the daemon */
    const struct child_identity *identity;       /* NULL: our own user, with our privileges */
};

/* Fires in a turn of the loop, never inside a child_ function: the child was waited for and its group is
 * empty, as the others ended by themselves within CHILD_LINGER_MS, or were killed. Its output can be read
 * until then and after. `status` is waitpid's, or CHILD_STATUS_LOST. The child is freed when this returns. */
typedef void child_ended(void *owner, int status);

#define CHILD_LINGER_MS 200u  /* the rest of the group may go on this long after the child ended */
#define CHILD_TERM_MS   2000u /* child_terminate: from closed stdin to SIGTERM */
#define CHILD_KILL_MS   5000u /* from SIGTERM to SIGKILL: an installer needs time to leave its cache whole */

/* ERR_NOT_FOUND, ERR_LIMIT or ERR_IO: it did not start, and `why` states the fix (no such command, no such
 * folder, not executable). The caller owns the three descriptors, which are non-blocking, and may close each
 * at any time. */
enum err child_start(struct loop *loop, const struct child_spec *spec, child_ended *ended, void *owner,
                     struct child **out, int *in, int *output, int *errors, struct why *why);

/* Where child_start finds the program of `spec`, without starting it: `found` has PATH_MAX bytes.
 * ERR_NOT_FOUND: `why` states the fix. A path with a slash is taken as it is, relative to `cwd`. */
enum err child_find_program(const struct child_spec *spec, char *found, struct why *why);

pid_t child_pid(const struct child *child);

/* The orderly end, after the caller has closed `in`: SIGTERM after CHILD_TERM_MS and SIGKILL CHILD_KILL_MS
 * later, to the whole group. Then `ended` fires. */
void child_terminate(struct child *child);
/* The same, with SIGTERM now, for a child that no longer belongs to the caller: `ended` does not fire.
 * Its output, if these are not -1, stays open until then, unread: what it says while it cleans up must not be
 * its death by SIGPIPE. The descriptors are copied. */
void child_dismiss(struct child *child, int output, int errors);
/* SIGKILL to the whole group, now. `ended` fires, unless `forget`: then the child no longer belongs to the
 * caller. */
void child_kill(struct child *child, bool forget);

/* Other code in this process waited for it; how it ended is unknown. */
#define CHILD_STATUS_LOST (-1)
/* "exit code 3", "killed by SIGSEGV". */
struct str child_status(struct arena *arena, int status);

/* When the daemon ends, before loop_free: sends SIGTERM and, after `ms`, SIGKILL to every group and returns
 * when all are gone. No callback fires, and every child is freed. */
void child_terminate_all(struct loop *loop, uint32_t ms);

#endif

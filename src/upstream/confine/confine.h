/*
 * What a process that toolgate starts may reach: files by Landlock, sockets by
 * a seccomp filter. A confinement is prepared before the process is created,
 * so that between clone and exec only system calls remain (io/child.c).
 * Where the kernel lacks a feature, nothing starts, unless the spec says
 * best_effort.
 */
#ifndef TOOLGATE_UPSTREAM_CONFINE_CONFINE_H
#define TOOLGATE_UPSTREAM_CONFINE_CONFINE_H

#include "base/err.h"
#include "base/str.h"
#include "io/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFINE_PATHS_MAX    256u   /* of `read`, and of `write` */
#define CONFINE_RULES_MAX    65536u /* Landlock rules of one process; the folders beside a hidden one count */
#define CONFINE_MEMORY_BYTES 4294967296u /* writable memory of each process, if the spec gives none */

struct arena;
struct loop;

struct confine_paths {
    const struct str *list; /* absolute, NUL-terminated */
    size_t count;
};

struct confine_spec {
    bool on;
    bool best_effort; /* start without what the kernel lacks */
    bool network;     /* IP sockets; Unix sockets are never allowed, since the daemon's are among them */
    bool reads_given; /* false: everything may be read but the hidden paths */
    struct confine_paths read, write;
    struct confine_paths env; /* names of the daemon's variables that it gets besides PATH, LANG, TZ */
    uint64_t memory_bytes;    /* 0: CONFINE_MEMORY_BYTES */
    uint32_t processes;       /* of its user; 0: no limit */
};

/* What this kernel and the daemon's own service unit allow. */
struct confine_support {
    int landlock_abi; /* 0: none */
    bool seccomp;
};
struct confine_support confine_support(void);

/* The paths that no confined process of this loop reads, nor files named "PATH.*", unless its spec names the
 * path itself or one below it. "%u" in a path stands for any name; NULL and "" for none. Replaces those given
 * before. */
void confine_hide(struct loop *loop, const char *const *paths, size_t count);

/* Ready for child_start until confine_free. */
struct confinement {
    struct child_confinement child;
    struct str missing;  /* best_effort: what the kernel lacks, in the arena; empty: nothing */
    struct str narrowed; /* a path of `read` of which hidden paths stay out; empty: none */
};

/* The program of `child` is readable, and so is `script` unless it is NULL: only what an operator wrote,
 * never an argument of a call. ERR_UNAVAILABLE: the kernel lacks a feature; ERR_NOT_FOUND: a path of the spec
 * does not exist; ERR_CONFIG: `write` names a folder with a hidden path in it. `why` states the fix. */
enum err confine_prepare(struct loop *loop, struct arena *arena, const struct confine_spec *spec,
                         const struct child_spec *child, const char *script, struct confinement *out,
                         struct why *why);
void confine_free(struct confinement *confinement);

#endif

/* The two halves of a confinement: landlock.c for files, seccomp.c for system calls. */
#ifndef TOOLGATE_UPSTREAM_CONFINE_CONFINE_INTERNAL_H
#define TOOLGATE_UPSTREAM_CONFINE_CONFINE_INTERNAL_H

#include "upstream/confine/confine.h"

/* 0: the kernel has no Landlock, or this process may not use it. */
int landlock_abi(void);

/* A ruleset: what `spec` names, the program, and what every program needs (libraries, certificates,
 * /dev/null). */
enum err landlock_ruleset(struct arena *arena, const struct confine_spec *spec,
                          const struct confine_paths *hidden, const struct confine_paths *programs, int *out,
                          struct why *why);

/* The first path of `read` that holds hidden ones, or STR_NONE. */
struct str landlock_narrowed(struct arena *arena, const struct confine_spec *spec,
                             const struct confine_paths *hidden);

bool seccomp_is_supported(void);

/* The filter, in the arena; NULL: it could not be made. `abi`: of Landlock; the filter stands in for what an
 * old one does not restrict. */
const struct sock_fprog *seccomp_filter(struct arena *arena, bool network, int abi);

#endif

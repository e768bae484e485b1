/* The half of a confinement that restricts system calls. */
#ifndef TOOLGATE_UPSTREAM_CONFINE_SECCOMP_H
#define TOOLGATE_UPSTREAM_CONFINE_SECCOMP_H

#include <stdbool.h>

struct arena;
struct sock_fprog;

bool seccomp_is_supported(void);

/* The filter, in the arena; NULL: it could not be made. `abi`: of Landlock; the filter stands in for what an
 * old one does not restrict. */
const struct sock_fprog *seccomp_filter(struct arena *arena, bool network, int abi);

#endif

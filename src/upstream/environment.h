/* The environment of a process of ours: a few variables of the daemon's, and what a spec says. */
#ifndef TOOLGATE_UPSTREAM_ENVIRONMENT_H
#define TOOLGATE_UPSTREAM_ENVIRONMENT_H

#include "base/err.h"
#include "upstream/secrets.h"
#include "upstream/upstream_spec.h"

/* NAME=VALUE each, ends with NULL, all in the arena: those of `taken` (names, ends with NULL) that the daemon
 * has, and `pairs`, filled in (secrets.h), which come before them where both name one; PATH is always there.
 * `why` begins with the name whose value is wrong. */
enum err environment_build(struct arena *arena, const char *const *taken, const struct name_values *pairs,
                           struct secrets *used, const char *const **out, struct why *why);

#endif

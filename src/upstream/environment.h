/* The environment of a process that toolgate starts: some variables of the daemon, and those of a spec. */
#ifndef TOOLGATE_UPSTREAM_ENVIRONMENT_H
#define TOOLGATE_UPSTREAM_ENVIRONMENT_H

#include "base/err.h"
#include "upstream/secrets.h"
#include "upstream/upstream_spec.h"

/* NAME=VALUE each, NULL-terminated, in the arena: the daemon's variables named in `inherited` ("HOME PATH"),
 * overridden by `pairs` with their secrets expanded; PATH is always set. `why` begins with the name of the
 * variable. */
enum err environment_build(struct arena *arena, const char *inherited, const struct name_values *pairs,
                           struct secrets *used, const char *const **out, struct why *why);

#endif

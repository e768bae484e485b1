/* The environment of a process that toolgate starts: some variables of the daemon, and those of a spec. */
#ifndef TOOLGATE_UPSTREAM_ENVIRONMENT_H
#define TOOLGATE_UPSTREAM_ENVIRONMENT_H

#include "base/err.h"
#include "base/trace_context.h"
#include "upstream/secrets.h"
#include "upstream/upstream_spec.h"

/* NAME=VALUE each, NULL-terminated, in the arena: the daemon's variables named in `inherited` ("HOME PATH"),
 * overridden by `pairs` with their secrets expanded; PATH is always set. `why` begins with the name of the
 * variable. */
enum err environment_build(struct arena *arena, const char *inherited, const struct name_values *pairs,
                           struct secrets *used, const char *const **out, struct why *why);

/* The same environment with the values of `trace` as TRACEPARENT, TRACESTATE and BAGGAGE, except those that
 * `pairs` sets. They are the caller's bytes: no reference in them is expanded. */
const char *const *environment_with_trace(struct arena *arena, const char *const *environment,
                                          const struct name_values *pairs, const struct trace_context *trace);

/* Whether the command of an MCP server could be started; one with ${NAME} in it is left to its start. */
enum err environment_find_command(struct arena *arena, const struct upstream_spec *spec, struct why *why);

#endif

/* How a process is started: its command line, environment, limits and sandbox. Used for upstreams by the
 * daemon (mcp/mcp_stdio.c) and by `toolgate spawner`; the environment also for commands (exec/exec.c). */
#ifndef TOOLGATE_UPSTREAM_PROCESS_H
#define TOOLGATE_UPSTREAM_PROCESS_H

#include "upstream/confine/confine.h"
#include "upstream/secrets.h"
#include "upstream/upstream_spec.h"

struct trace_context;

struct process {
    struct child_spec child;
    struct confinement confinement;
    struct child_identity identity; /* of upstreams.NAME.user */
};

/* `process` keeps its address until process_clear, which is due in any case; its strings live in the arena,
 * its secrets are added to `secrets`. */
enum err process_prepare(struct loop *loop, struct arena *arena, const struct upstream_spec *spec,
                         struct secrets *secrets, struct process *process, struct why *why);
void process_clear(struct process *process);

/* NAME=VALUE each, NULL-terminated, in the arena: the daemon's variables named in `inherited` ("HOME PATH"),
 * overridden by `pairs` with their secrets expanded; PATH is always set. The values of `trace` (NULL: none)
 * are TRACEPARENT, TRACESTATE and BAGGAGE, except those that `pairs` sets: they are the caller's bytes, in
 * which no reference is expanded. `why` begins with the name of the variable. */
enum err environment_build(struct arena *arena, const char *inherited, const struct name_values *pairs,
                           const struct trace_context *trace, struct secrets *used, const char *const **out,
                           struct why *why);

/* Whether the command of an MCP server could be started; one with ${NAME} in it is left to its start. */
enum err environment_find_command(struct arena *arena, const struct upstream_spec *spec, struct why *why);

#endif

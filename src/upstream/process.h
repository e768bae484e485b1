/* How the process of an upstream is started: its command line, environment, limits and sandbox. Used by the
 * daemon (mcp/mcp_stdio.c) and by `toolgate spawner`. */
#ifndef TOOLGATE_UPSTREAM_PROCESS_H
#define TOOLGATE_UPSTREAM_PROCESS_H

#include "confine/confine.h"
#include "upstream/secrets.h"
#include "upstream/upstream_spec.h"

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

#endif

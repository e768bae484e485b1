/*
 * The daemon's upstreams: started with the first configuration, adjusted with
 * each that goes live. It passes their tools to the loader, and reports when
 * an upstream's tools change.
 */
#ifndef TOOLGATE_SERVER_UPSTREAM_MANAGER_H
#define TOOLGATE_SERVER_UPSTREAM_MANAGER_H

#include "server/server_internal.h"

struct tool_list_source;

#define UPSTREAM_MANAGER_START_MS    5000u /* at the start, for upstreams to list their tools */
#define UPSTREAM_MANAGER_DELAY_MS    20u   /* from a change to the reload */
#define UPSTREAM_MANAGER_INTERVAL_MS 1000u /* between two reloads for changes */
#define UPSTREAM_MANAGER_STOP_MS     4000u /* at the end, for processes to end by themselves … */
#define UPSTREAM_MANAGER_KILL_MS     1000u /* … and after SIGTERM, before they are killed */

/* Starts the upstreams of the first configuration. `tools_changed` fires from the loop's turn, after an
 * upstream's tools have changed; not while the daemon drains. */
struct upstream_manager *upstream_manager_new(struct server *server, const struct config *config,
                                              void (*tools_changed)(struct server *server));
/* Ends every process; NULL is allowed. */
void upstream_manager_free(struct upstream_manager *manager);

/* The tools, for the loader. The first use turns the loop until all upstreams have listed their tools, for at
 * most UPSTREAM_MANAGER_START_MS. */
const struct tool_list_source *upstream_manager_source(struct upstream_manager *manager);

/* A generation went live: its upstreams from now on; those that are down are tried again. */
void upstream_manager_apply(struct upstream_manager *manager, const struct config *config);

/* Stops all upstreams once their calls have ended, turning the loop for at most UPSTREAM_MANAGER_STOP_MS.
 * NULL is allowed. */
void upstream_manager_stop(struct upstream_manager *manager);

#endif

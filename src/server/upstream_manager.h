/*
 * The upstreams of a daemon: made with the first configuration, adjusted with
 * each one that goes live, and their offers handed to what is loaded. A change
 * of what one offers asks for a reload, a few in a row for one only.
 */
#ifndef TOOLGATE_SERVER_UPSTREAM_MANAGER_H
#define TOOLGATE_SERVER_UPSTREAM_MANAGER_H

#include "server/server_internal.h"

#define UPSTREAM_MANAGER_START_MS    5000u /* at the start, for upstreams that have not told what they offer */
#define UPSTREAM_MANAGER_DELAY_MS    20u   /* from a change to the reload it asks for */
#define UPSTREAM_MANAGER_INTERVAL_MS 1000u /* between two reloads that changes ask for */
#define UPSTREAM_MANAGER_STOP_MS     4000u /* at the end, for processes to end by themselves … */
#define UPSTREAM_MANAGER_KILL_MS     1000u /* … after SIGTERM; then they are killed */

/* Starts what the first configuration names. */
struct upstream_manager *upstream_manager_new(struct server *server, const struct config *config);
/* Ends every process; NULL is fine. */
void upstream_manager_free(struct upstream_manager *offers);

/* For loading: while the first is loaded this waits, until all have told or UPSTREAM_MANAGER_START_MS are
 * over. One that has told nothing is taken for what it offered before. */
const struct tool_list_source *upstream_manager_source(struct upstream_manager *offers);

/* A generation went live, or an operator has asked for one: its upstreams from now on, and those that are
 * down are tried again. */
void upstream_manager_apply(struct upstream_manager *offers, const struct config *config);

/* The daemon stops: all are let go once their calls are answered. */
void upstream_manager_stop(struct upstream_manager *offers);
bool upstream_manager_is_stopped(const struct upstream_manager *offers);

#endif

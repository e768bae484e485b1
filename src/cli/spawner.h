/*
 * `toolgate spawner`: a small process that starts upstreams by name, from a
 * configuration of its own, for a daemon whose service unit forbids it. It
 * reads nothing of what the upstreams say. io/spawned_child.h has the protocol.
 */
#ifndef TOOLGATE_CLI_SPAWNER_H
#define TOOLGATE_CLI_SPAWNER_H

#include "policy/config.h"

#define SPAWNER_CONNECTIONS_MAX 256u  /* more are closed at once */
#define SPAWNER_REQUEST_MS      5000u /* from a connection to its request */

/* Serves until SIGTERM or SIGINT, then kills what it started. `why` states the fix. */
enum err spawner_run(const struct config *config, const char *socket, struct why *why);

/* The file decides what runs, and as whom, and so do the files of its mcp_config: only root, or the user who
 * runs this, may write to them or replace them. */
enum err spawner_check_file(const char *path, struct why *why);
enum err spawner_check_files(const struct config *config, struct why *why);

#endif

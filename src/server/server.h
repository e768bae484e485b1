/*
 * The daemon: listening socket, event loop, connections, reload and drain.
 * Knows how requests arrive and leave, not how a decision is made.
 */
#ifndef TOOLGATE_SERVER_SERVER_H
#define TOOLGATE_SERVER_SERVER_H

#include "config/config.h"

#define SERVER_DRAIN_MS  5000u /* SIGTERM: how long calls in flight may take to finish */
#define SERVER_LEDGER_MS 3000u /* a start waits so long for Redis, and then serves without it */

/*
 * Serves until SIGTERM or SIGINT has drained it. Takes the listening socket
 * from systemd (LISTEN_FDS) where one is handed over. Logs `daemon_ready` with the
 * socket once it accepts, and tells systemd. Returns OK after a clean drain;
 * on a start that fails `why` says what to mend and nothing is left behind.
 */
enum err server_run(const struct config_sources *sources, struct why *why);

#endif

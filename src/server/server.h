/*
 * The daemon: start, event loop, drain. It does not know how a call is
 * decided (gate/), only how requests arrive and replies leave.
 */
#ifndef TOOLGATE_SERVER_SERVER_H
#define TOOLGATE_SERVER_SERVER_H

#include "policy/config.h"

#define SERVER_DRAIN_NEW_MS 200u  /* after SIGTERM, for the first line of a connection that has sent none */
#define SERVER_DRAIN_MS     5000u /* after SIGTERM, for calls in flight */
#define SERVER_LEDGER_MS    3000u /* at the start, for Redis; then the daemon serves without it */

/*
 * Serves until SIGTERM or SIGINT has drained it. Uses the listening socket
 * that systemd hands over (LISTEN_FDS), if any. Logs `daemon_ready` once it
 * accepts connections. Returns OK after a drain. If the start fails, `why`
 * has the fix and nothing is left behind.
 */
enum err server_run(const struct config_sources *sources, struct why *why);

#endif

/* The daemon's decision log: opened at the start, adapted by each reload, reopened on SIGUSR1. */
#ifndef TOOLGATE_SERVER_DECISIONS_H
#define TOOLGATE_SERVER_DECISIONS_H

#include "config/config.h"

struct server;

/* ERR_IO: a sink that the configuration names cannot be written to. */
enum err decisions_open(struct server *server, const struct config *config, struct why *why);

/* After a reload; `config` is the new one. */
void decisions_apply(struct server *server, const struct config *config);

/* The event loop ends: further records are still written by decisions_close. */
void decisions_leave_loop(struct server *server);
void decisions_close(struct server *server);

#endif

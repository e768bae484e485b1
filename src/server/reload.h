/*
 * A new generation: built aside with its examples run, then swapped in by one
 * pointer; or the old one stays, and every reason is said.
 */
#ifndef TOOLGATE_SERVER_RELOAD_H
#define TOOLGATE_SERVER_RELOAD_H

#include "server/room.h"

/* SIGHUP. Logs how it went, tells systemd, and clients where the tool list changed. */
enum err reload(struct server *server, struct generation_report *report);

#endif

/*
 * A new generation: built aside with its examples run, then swapped in by one
 * pointer; or the old one stays, and every reason is said.
 */
#ifndef TOOLGATE_SERVER_RELOAD_H
#define TOOLGATE_SERVER_RELOAD_H

#include "server/room.h"

/* Reads configuration, tools and policies. On failure the report holds every error. */
enum err reload_build(const struct config_sources *sources, uint64_t number, struct generation **out,
                      struct generation_report *report);

/* SIGHUP. Logs how it went, tells systemd, and clients where the tool list changed. */
enum err reload(struct server *server, struct generation_report *report);

#endif

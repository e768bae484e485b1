/*
 * The upstreams of a daemon: made with the first configuration, adjusted with
 * each one that goes live, and their offers handed to what is loaded. A change
 * of what one offers asks for a reload, a few in a row for one only.
 */
#ifndef TOOLGATE_SERVER_UPSTREAM_MANAGER_H
#define TOOLGATE_SERVER_UPSTREAM_MANAGER_H

#include "server/server_internal.h"

#define OFFERS_WAIT_MS   5000u /* at the start, for upstreams that have not told what they offer */
#define OFFERS_SETTLE_MS 20u   /* from a change to the reload it asks for */
#define OFFERS_APART_MS  1000u /* between two reloads that changes ask for */
#define OFFERS_END_MS    4000u /* at the end, for processes to end by themselves … */
#define OFFERS_KILL_MS   1000u /* … after SIGTERM; then they are killed */

/* Starts what the first configuration names. */
struct server_offers *offers_open(struct server *server, const struct config *config);
/* Ends every process; NULL is fine. */
void offers_free(struct server_offers *offers);

/* For loading: while the first is loaded this waits, until all have told or OFFERS_WAIT_MS are over. One that
 * has told nothing is taken for what it offered before. */
const struct offers *offers_for_loading(struct server_offers *offers);

/* A generation went live, or an operator has asked for one: its upstreams from now on, and those that are
 * down are tried again. */
void offers_apply(struct server_offers *offers, const struct config *config);

/* The daemon stops: all are let go once their calls are answered. */
void offers_end(struct server_offers *offers);
bool offers_have_ended(const struct server_offers *offers);

#endif

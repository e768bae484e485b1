/*
 * Requests that Redis has yet to be told, by session, in their order: what was counted while it was away.
 * Only keeps them, bounded; outage_serve.c decides.
 */
#ifndef TOOLGATE_LEDGER_OUTAGE_H
#define TOOLGATE_LEDGER_OUTAGE_H

#include "ledger/request.h"

struct outage;

/* All kept requests take at most `bytes_max`; a call is about 1,200 bytes. Further ones find no room. */
struct outage *outage_new(size_t bytes_max);
void outage_free(struct outage *outage);

/* Takes an owned request over. False: no room, and it is still the caller's. */
bool outage_keep(struct outage *outage, struct session_request *owned);
/* Puts requests back ahead of those that are kept; never fails. `queue` is empty then. */
void outage_put_back(struct outage *outage, struct hash128 id, struct request_queue *queue);
bool outage_has(struct outage *outage, struct hash128 id);
/* Moves all of one session to the end of `queue`; returns how many. */
uint32_t outage_take(struct outage *outage, struct hash128 id, struct request_queue *queue);
/* Some session that has requests; false: none has. */
bool outage_first(const struct outage *outage, struct hash128 *id);

size_t outage_sessions(const struct outage *outage);
size_t outage_requests(const struct outage *outage);

#endif

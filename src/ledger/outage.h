/*
 * Redis is away: the requests that it has yet to be told, by session, in their order, and what of its coming
 * and going is worth a line in the log. What is done about a request is in ledger_internal.h.
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

/* ---- the log: since when, how often, why. A Redis that comes and goes all the time gets a few lines, then
 * one in ten seconds that counts the others ---- */

#define OUTAGE_LOG_LINES     5u     /* of `ledger_away`, one after the other */
#define OUTAGE_LOG_LINE_MS   10000u /* until there may be one more */
#define OUTAGE_LOG_WHY_BYTES 512u

struct outage_log { /* embedded; all zero to begin with */
    bool is_away, is_said;
    int64_t since_ms;
    uint64_t outages;
    uint64_t unsaid; /* outages since the last line */
    uint32_t lines_used;
    int64_t refilled_ms;
    char why[OUTAGE_LOG_WHY_BYTES]; /* as it was said last */
};

/* After each failure, also where it has been away; logged where an outage begins or its reason is another. */
void outage_log_away(struct outage_log *outage_log, struct str address, const char *why,
                     const char *on_outage);
/* `sessions` are to be told. */
void outage_log_back(struct outage_log *outage_log, uint64_t sessions);

#endif

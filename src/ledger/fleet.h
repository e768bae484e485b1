/*
 * Which daemons share a Redis, and by which policies they judge. Each writes itself into one record of the
 * fleet, when its policies change and every FLEET_BEAT_MS; one that has not done so for FLEET_GONE_S is gone.
 * Daemons with different policies give one session different verdicts: each of them warns, until they are
 * alike again.
 */
#ifndef TOOLGATE_LEDGER_FLEET_H
#define TOOLGATE_LEDGER_FLEET_H

#include "io/timer.h"
#include "ledger/record.h"

#define FLEET_BEAT_MS       20000u
#define FLEET_GONE_S        65u
#define FLEET_DAEMONS_MAX   128u /* the one heard of longest ago goes */
#define FLEET_NAME_BYTES    80u  /* "host/1234" */
#define FLEET_RECORD_BYTES  16384u
#define FLEET_NAMED         3u /* in the warning */
#define FLEET_WARNING_BYTES 512u

struct fleet_daemon {
    uint64_t id, policies; /* random; a hash */
    uint32_t seen_s;
    struct str name;
};

struct fleet { /* embedded in the ledger */
    struct record record;
    struct loop *loop;
    struct timer beat;
    struct fleet_daemon self; /* policies 0: not told yet */
    struct fleet_daemon list[FLEET_DAEMONS_MAX];
    unsigned count;
    uint64_t written; /* of `self`, by the last round */
    char name[FLEET_NAME_BYTES];
    char warning[FLEET_WARNING_BYTES]; /* empty: all are alike */
    uint64_t warned_of;                /* the hashes that differ, as one: logged once each */
};

/* Borrows both; the store is that of Redis. Nothing is written before fleet_tell. */
void fleet_init(struct fleet *fleet, struct loop *loop, struct session_store *store);
/* This daemon's policies are now these. */
void fleet_tell(struct fleet *fleet, uint64_t policies);
void fleet_clear(struct fleet *fleet); /* after the store: it ends no request any more */

/* Its bytes behind those of record.h; empty if they are bad. */
void fleet_code(void *fleet, struct record_coder *coder);

#endif

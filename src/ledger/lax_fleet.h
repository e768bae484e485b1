/*
 * What the fleet has learnt of schemas that their servers do not keep: one record for all, beside the
 * sessions. Three sessions, of two users where there are two, make a problem known for 30 days. The record is
 * small and read only for calls with such problems; all changes are idempotent, so they are applied again
 * after a conflict or an outage. Without Redis it lives in this process alone.
 */
#ifndef TOOLGATE_LEDGER_LAX_FLEET_H
#define TOOLGATE_LEDGER_LAX_FLEET_H

#include "ledger/ledger.h"
#include "ledger/record.h"

#define LAX_FLEET_ENTRIES_MAX  128u     /* the one touched longest ago goes */
#define LAX_FLEET_PENDING_MAX  64u      /* changes that Redis has yet to be told */
#define LAX_FLEET_SESSIONS     3u       /* that make a problem known */
#define LAX_FLEET_KNOWN_S      2592000u /* 30 days */
#define LAX_FLEET_FRESH_MS     1000u    /* what was read is not read again for so long */
#define LAX_FLEET_NAME_BYTES   64u      /* of a tool */
#define LAX_FLEET_PATH_BYTES   120u     /* of a problem; a longer one is never known */
#define LAX_FLEET_CODE_BYTES   16u
#define LAX_FLEET_RECORD_BYTES 65536u

struct lax_entry {
    uint64_t schema;             /* digest */
    uint32_t touched_s, known_s; /* known_s 0: not yet */
    uint8_t session_count;
    uint64_t sessions[LAX_FLEET_SESSIONS], users[LAX_FLEET_SESSIONS];
    uint8_t tool_len, path_len, code_len;
    char tool[LAX_FLEET_NAME_BYTES], path[LAX_FLEET_PATH_BYTES], code[LAX_FLEET_CODE_BYTES];
};

/* What a session has found out about one problem. */
struct lax_finding {
    struct lax_entry of;
    uint64_t session, user;
    bool accepted; /* false: the server has refused it, and the fleet forgets what it knew */
};

struct lax_table {
    uint64_t users[2]; /* two different ones whose sessions have found something; 0: none */
    unsigned count;
    struct lax_entry list[LAX_FLEET_ENTRIES_MAX]; /* the one touched last at the end */
};

/* Its bytes behind those of record.h; empty if they are bad. */
void lax_table_code(struct record_coder *coder, struct lax_table *table);
/* True: it changed. */
bool lax_table_apply(struct lax_table *table, const struct lax_finding *finding, uint32_t now_s);

struct lax_fleet;

struct lax_fleet *lax_fleet_new(struct session_store *redis,
                                struct session_store *memory); /* redis may be NULL */
/* After the stores: they end no request any more. */
void lax_fleet_free(struct lax_fleet *fleet);
/* Redis is there: what it has is read, and it is told what it has missed. */
void lax_fleet_up(struct lax_fleet *fleet);
void lax_fleet_cancel(struct lax_fleet *fleet, void *owner);

#endif

/*
 * What is known of schemas that their servers do not keep. A session remembers the problems that it was asked
 * about, and what the server has said to them (rules_internal.h). The fleet shares one record: three
 * sessions of two users make a problem known for 30 days, three of one user where the daemon serves no other.
 * The record is small, and read only for calls with such problems; all changes are idempotent, so they are
 * applied again after a conflict or an outage.
 */
#ifndef TOOLGATE_LEDGER_LAX_H
#define TOOLGATE_LEDGER_LAX_H

#include "ledger/record.h"

#define LAX_ENTRIES_MAX  128u     /* the one touched longest ago goes */
#define LAX_PENDING_MAX  64u      /* changes that Redis does not have yet */
#define LAX_SESSIONS     3u       /* that make a problem known */
#define LAX_KNOWN_S      2592000u /* 30 days */
#define LAX_FRESH_MS     1000u    /* the record is read again at the earliest after this time */
#define LAX_NAME_BYTES   64u      /* of a tool */
#define LAX_PATH_BYTES   120u     /* of a problem; a longer one is never known */
#define LAX_CODE_BYTES   16u
#define LAX_RECORD_BYTES 65536u

/* What a session has found out about one problem. */
struct lax_finding {
    uint64_t schema; /* digest */
    uint64_t session, user;
    struct str tool, path, code; /* the path is a place in the schema */
    bool alone;                  /* the daemon serves one user only: three sessions are enough */
    bool forgets; /* an operator's word about the tool, and the path if there is one: nothing else is told */
};

struct lax_table {
    uint64_t spare[2]; /* of older versions */
    unsigned count;
    struct lax_entry {
        uint64_t schema;
        uint32_t touched_s, known_s; /* known_s 0: not yet */
        uint8_t session_count;
        uint64_t sessions[LAX_SESSIONS], users[LAX_SESSIONS];
        struct str tool, path, code;
    } list[LAX_ENTRIES_MAX]; /* the one touched last at the end */
};

/* Its bytes behind those of record.h; empty if they are bad. */
void lax_table_code(struct record_coder *coder, struct lax_table *table);
/* True: it changed. New texts are copied into the arena. */
bool lax_table_apply(struct lax_table *table, const struct lax_finding *finding, uint32_t now_s,
                     struct arena *arena);

struct lax_fleet { /* embedded in the ledger */
    struct record record;
    struct lax_table table; /* as stored, with what is pending */
    int64_t read_us;        /* when it was read; 0: never */
    bool has_dropped;
    struct lax_finding pending[LAX_PENDING_MAX];
    unsigned pending_count, applied; /* the first ones are in the table that is committed */
    struct arena *arena;             /* of their texts */
};
/* Borrows the store: that of Redis, or else of this process. */
void lax_fleet_init(struct lax_fleet *fleet, struct session_store *store);
void lax_fleet_clear(struct lax_fleet *fleet); /* after the store: it ends no request any more */

#endif

/*
 * What the files of the ledger share: ledger.c (the interface of ledger.h), apply.c (a request on a session
 * and its parts), transaction.c (load, apply, commit, retry), outage.c (while Redis is away). Nobody else
 * includes this.
 */
#ifndef TOOLGATE_LEDGER_LEDGER_INTERNAL_H
#define TOOLGATE_LEDGER_LEDGER_INTERNAL_H

#include "base/rate_limit.h"
#include "ledger/entry.h"
#include "ledger/call_id.h"
#include "ledger/lax_fleet.h"
#include "ledger/outage.h"

#define CONFLICTS_MAX         16u /* of one commit; then its requests are unavailable */
#define CONFLICTS_AT_ONCE     3u  /* further ones wait a little first, at random */
#define CONFLICT_PAUSE_MS     2u  /* doubled with each, up to CONFLICT_PAUSE_MAX_MS */
#define CONFLICT_PAUSE_MAX_MS 256u
#define HOPPING_COMMITS       4u /* without a conflict, until a session counts as staying with this daemon */
#define REFUSED_RETRY_MS      500u   /* a session that Redis refused is counted here so long */
#define UNREADABLE_RETRY_MS   60000u /* and one whose value cannot be read */
#define REPLAYING_MAX         64u    /* sessions whose kept requests are under way */
#define REPLAY_RETRY_MS       500u
#define LAPSED_EVERY_MS                                                                                      \
    60000u                 /* sessions with open chains are looked at so often, or as often as they may end */
#define EVENTS_PER_S   2u  /* of log lines that a session can cause */
#define FACTS_MAX      32u /* of one result; the rest find no room */
#define NAME_MAX_BYTES 64u /* of a tool, in the details */

struct ledger {
    struct entries entries;
    struct session_store *memory;
    struct session_store *redis; /* NULL: there is only the memory */
    struct outage *outage;       /* NULL likewise */
    struct lax_fleet *lax_fleet;
    uint32_t daemon, sequence; /* who this is in session_mark, and its last request */
    enum ledger_outage on_outage;
    uint32_t ttl_s, history;
    bool settles_unheard;
    bool evicts, has_evicted; /* a session was let go of for want of memory; that was logged */
    struct loop *loop;
    struct arena *arena; /* of the address */
    struct redis_address *address;
    struct str shown; /* the address, for people */
    LIST_HEAD(, session_request) waiting;
    struct session_request *starting; /* inside transaction_start */
    struct timer replay, lapsed;
    struct rate_limit refusals, unreadables, conflict_lines;
    uint64_t loads, by_redis, by_local, uncounted, refused, replayed, replayed_logged, lost, conflicts;
    uint32_t replaying; /* sessions */
    bool has_lost;      /* logged */
    union {
        struct ledger_answer answer;
        struct ledger_settled settled;
        struct ledger_turned turned;
    } unheard; /* where what nobody waits for is answered */
    struct outage_log outage_log;
    struct call_id_key own_key;
    ledger_gave_up *on_gave_up; /* NULL: none */
    void *gave_up_owner;
};

/* ---- apply.c ---- */

/* Applies it to the entry's session and parts, collects what has to be written in `commit`, fills in the
 * answer. */
void apply_request(struct commit *commit, struct session_request *request, int64_t now_ms,
                   const char *engine);
/* Whether it may only look: nothing is committed for it. */
bool request_only_looks(enum request_kind kind);
/* The answer is that there is none, for this reason. */
void request_fail(const struct session_request *request, enum err error, const char *why);
/* The session does not exist, and the request does not begin it. */
void request_not_found(const struct session_request *request);
/* The line of a chain that nobody went on with, and the hook for it. */
void log_gave_up(const struct ledger *ledger, const struct session_chain *chain);

/* ---- transaction.c ---- */

/* Whatever must be done is done in this call (LEDGER_DONE), or `done` fires later. */
enum ledger_state transaction_start(struct ledger *ledger, struct session_request *request);
/* Adds a request to its session's queue. One that nobody waits for is owned. */
void transaction_add(struct ledger *ledger, struct session_request *request);
/* Goes on with what waits in the session. */
void transaction_run(struct ledger_entry *entry);
void transaction_cancel(struct ledger *ledger, void *owner);
void transaction_drop(struct ledger_entry *entry);    /* the ledger is freed */
uint32_t transaction_sequence(struct ledger *ledger); /* of the next request */
void transaction_finish(struct ledger *ledger, struct session_request *request);
/* For outage.c: all that fly are answered, or wait again. */
void transaction_land(struct ledger_entry *entry);
void transaction_back_to_queue(struct ledger_entry *entry);

/* ---- outage.c ---- */

/* Whether the entry's requests can be served: by Redis, or by this daemon's memory while it stands in. Moves
 * what was kept for Redis ahead of them. */
bool outage_can_run(struct ledger_entry *entry);
/* Redis is away, or did not take what the entry had for it (`tried`): as on_outage has it. `applied`: the
 * requests in `flying` were applied to the session before the commit failed; `lost`: and may have been
 * committed. */
void outage_serve(struct ledger_entry *entry, bool tried, bool applied, bool lost);
/* A request that was counted here and that Redis has yet to be told. */
void outage_remember(struct ledger *ledger, const struct session_request *request);
/* A kept request has been committed, or has been given up. */
void outage_replayed(struct ledger_entry *entry, const struct session_request *request, bool taken);
/* Redis is back: what was kept goes to it, some sessions at a time. A timer's callback. */
void outage_replay(void *ledger);

#endif

/* What the files of the ledger share, which README.md draws. No other file includes this. */
#ifndef TOOLGATE_LEDGER_LEDGER_INTERNAL_H
#define TOOLGATE_LEDGER_LEDGER_INTERNAL_H

#include "base/lru.h"
#include "base/rate_limit.h"
#include "io/timer.h"
#include "ledger/session.h"
#include "ledger/record.h"

#include <sys/queue.h>

/* ---- a request to one session, from ledger_ask until its commit: it borrows what the caller gave it, or
 * owns a copy in one block ---- */

struct ledger_entry;
struct rate_wait;

struct session_request {
    enum ledger_kind kind;
    struct hash128 id;              /* of the session */
    const struct ledger_call *call; /* NULL: it asks no more than its kind says */
    struct ledger_answer *answer;   /* NULL: no caller waits for it */
    struct arena *arena;            /* of what the answer points to */
    ledger_done *done;
    void *owner;
    uint32_t sequence; /* of this daemon's requests: session_mark */
    uint32_t number;   /* of a turn or a reset, so that it is applied once */
    bool is_past;      /* it was answered during an outage, as `past` says */
    bool ends_outage;  /* the last of these: runs of identical calls start again behind it */
    bool is_fresh;     /* a look: what is stored was loaded for it */
    bool is_cancelled; /* an admit whose caller is gone: it is released once it is committed */
    bool is_owned;     /* in one block, with a copy of what it asks */
    size_t bytes;      /* of that block */
    struct session_past past;
    uint32_t rate_wait_ms;
    struct rate_wait *rate_wait; /* its rates are being asked; it is in no queue yet */
    int64_t rated_us;            /* monotonic: when they had room for it; 0: it took none */
    TAILQ_ENTRY(session_request) next;
    LIST_ENTRY(session_request) waiting; /* among all whose `done` is to fire */
};

TAILQ_HEAD(request_queue, session_request);

/* Takes the first out; NULL: it is empty. */
static inline struct session_request *request_pop(struct request_queue *queue)
{
    struct session_request *first = TAILQ_FIRST(queue);
    if (first)
        TAILQ_REMOVE(queue, first, next);
    return first;
}

/* It has happened, so it cannot be refused any more. */
static inline bool request_has_happened(enum ledger_kind kind)
{
    return kind == LEDGER_SETTLE || kind == LEDGER_RELEASE || kind == LEDGER_SEE;
}

/* A copy with everything it asks, in one block on the heap, for free(); no caller waits for it. */
struct session_request *request_copy(const struct session_request *request);
/* An owned request that gives the reservation of an admit back. */
struct session_request *request_release(const struct session_request *admit);

/* ---- a session that this daemon has in use or remembers (the cache), and the commit that is being made of
 * it. The cache keeps the sessions used last; one that has requests waiting stays ---- */

#define ENTRY_NAME_MAX_BYTES 160u /* of a session, for people; a longer one is cut */
#define ENTRY_TOOL_MAX_BYTES 64u  /* the same of a tool */

/* The commit that is being made: what requests did since the last one, as a store takes it. */
struct commit {
    struct store_request store;
    bool changed;
    bool grows; /* a part is written for the first time: it needs a time to live */
    bool journal_resized, details_changed;
    uint32_t journal_from; /* journal_count before */
    uint32_t ids_from;     /* bytes of ids before; 0: all are new */
    struct buf core;       /* the session */
    struct buf fields;     /* of the details, as store_request has them */
    struct buf gave_up;    /* struct session_chain each: logged once they are committed */
    char guard[CODEC_GUARD_BYTES];
};

struct ledger_entry {
    struct lru_node node; /* first; its id is the session's */
    bool loaded;          /* session and parts are what was stored, as far as we know */
    bool begun;           /* the session exists, stored or about to be */
    bool stored;
    bool busy;             /* a load or a commit is under way, or requests are being answered */
    bool local;            /* counted in this daemon's memory: Redis is away, or what it has is unreadable */
    bool paused;           /* between two tries */
    bool age_checked;      /* for the requests in its queue */
    uint8_t hopping;       /* commits to go until it counts as staying with this daemon */
    uint8_t conflicts;     /* in a row */
    bool unreadable;       /* what Redis has of it; then nothing is kept for Redis */
    int64_t away_until_us; /* monotonic. Redis refused it, or it is unreadable: not asked for before */
    uint32_t replays;      /* kept requests in its queue or flying */
    uint32_t refusals;     /* answered by this daemon since it remembers the session */
    uint8_t name_len;      /* 0: only its id is known so far */
    uint32_t user;         /* whose share of the memory it takes, once its name is known */
    uint8_t looped_len;    /* of the name of the tool that was repeated or refused last */
    bool looped_runs;      /* mode shadow: the last call ran, whatever was said to it */
    uint8_t format;        /* of the stored core */
    unsigned with;         /* PART_BITs to load with it */
    struct session_parts parts;
    struct request_queue queue, flying;
    struct commit commit; /* while busy */
    struct timer pause;
    struct ledger *ledger;
    struct session session; /* from here on nothing is cleared: see entries_get */
    char name[ENTRY_NAME_MAX_BYTES], looped[ENTRY_TOOL_MAX_BYTES];
};

/* Frees all; their requests are dropped. */
void entries_clear(struct ledger *ledger);
/* Made if it is new; then it is not loaded. Lets go of those used longest ago beyond ENTRIES_MAX. */
struct ledger_entry *entries_get(struct ledger *ledger, struct hash128 id);
/* Where it is stored now. */
struct session_store *entry_store(const struct ledger_entry *entry);
/* A new session, unless it has begun. */
void entry_begin(struct ledger_entry *entry, uint64_t version);
/* Forget what is known of it, so that it is loaded again. */
void entry_forget(struct ledger_entry *entry);

/* The load or the commit is over: the entry is not busy any more. */
void commit_end(struct ledger_entry *entry);
/* Completes `store`. The session gets its next version. `everything`: for a store that has nothing of it. */
void commit_finish(struct ledger_entry *entry, bool everything);

/* ---- the log: since when, how often, why. A Redis that comes and goes all the time gets a few lines, then
 * one in ten seconds that counts the others ---- */

#define OUTAGE_LOG_WHY_BYTES 512u

struct outage_log { /* embedded; all zero to begin with */
    bool is_away, is_said;
    int64_t since_ms;
    uint64_t unsaid; /* outages since the last line */
    uint32_t lines_used;
    int64_t refilled_ms;
    char why[OUTAGE_LOG_WHY_BYTES]; /* as it was said last */
};

/* ---- all of it ---- */

#define EVENTS_PER_S 2u /* of log lines that a session can cause */

struct call_id_key {
    uint8_t bytes[SIPHASH_KEY_BYTES];
};

struct ledger {
    struct lru entries; /* of struct ledger_entry */
    struct session_store *memory;
    struct session_store *redis; /* NULL: there is only the memory */
    struct lru kept; /* sessions whose requests Redis has yet to be told, kept longest first, nearly */
    size_t kept_requests, kept_bytes, kept_bytes_max; /* a call is about 1,200 bytes */
    struct lax_fleet lax;
    struct fleet fleet;        /* of Redis alone */
    uint32_t daemon, sequence; /* who this is in session_mark, and its last request */
    enum ledger_outage on_outage;
    uint32_t ttl_s, history;
    bool settles_unheard;
    bool has_evicted; /* logged */
    struct loop *loop;
    LIST_HEAD(, session_request) waiting[HASH_OWNERS];
    LIST_HEAD(, rate_wait) rate_waits;
    struct session_request *starting; /* inside ledger_ask */
    struct timer replay, lapsed;
    struct rate_limit refusals, unreadables, conflict_lines;
    struct ledger_status status; /* what it counts itself */
    uint64_t replayed_logged;
    uint32_t replaying;             /* sessions */
    bool has_lost;                  /* logged */
    struct ledger_answer unheard;   /* where what no caller waits for is answered */
    struct session_changes changes; /* by the request applied last */
    struct outage_log outage_log;
    struct call_id_key own_key;
    ledger_gave_up *on_gave_up; /* NULL: none */
    void *gave_up_owner;
};

/* By the clock of Redis, whose distance from this host's goes on to count during an outage. */
static inline int64_t ledger_now_ms(const struct ledger *ledger)
{
    struct session_store *clock = ledger->redis ? ledger->redis : ledger->memory;
    return clock->kind->now_ms(clock);
}

/* ---- ledger.c ---- */

/* Without a NUL, and without '=' at the end. */
void base64url_write(const void *bytes, size_t len, char *out);

/* ---- apply.c ---- */

/* Applies those that wait to the entry's session and parts, fills in their answers, and collects what has to
 * be written in `commit`. */
void apply_batch(struct ledger_entry *entry, int64_t now_ms);
/* Whether it may only look: nothing is committed for it. */
bool request_only_looks(enum ledger_kind kind);
/* The answer is that none exists, for this reason. */
void request_fail(const struct session_request *request, enum err error, const char *why);
/* The line of a chain that no call continued, and the hook for it. */
void log_gave_up(const struct ledger *ledger, const struct session_chain *chain);
void log_all_gave_up(const struct ledger *ledger, const struct session *session); /* those that are open */

/* ---- transaction.c ---- */

/* Adds a request to its session's queue. One that no caller waits for is owned. */
void transaction_add(struct ledger *ledger, struct session_request *request);
/* Goes on with what waits in the session. */
void transaction_run(struct ledger_entry *entry);
uint32_t transaction_sequence(struct ledger *ledger); /* of the next request */
void transaction_finish(struct ledger *ledger, struct session_request *request);
void transaction_drop_rates(struct ledger *ledger); /* after the store was freed */
/* For outage.c: all that fly are answered, or wait again. */
void transaction_land(struct ledger_entry *entry);
void transaction_back_to_queue(struct ledger_entry *entry);

/* ---- outage.c ---- */

extern const char *const outage_names[]; /* of on_outage */

/* After each failure, also where it has been away; logged where an outage begins or its reason is another. */
void outage_redis_down(struct ledger *ledger, const char *why);
void outage_redis_up(struct ledger *ledger);

/* Whether the entry's requests can be served: by Redis, or by this daemon's memory while it stands in. Moves
 * what was kept for Redis ahead of them. */
bool outage_can_run(struct ledger_entry *entry);
/* Redis is away, or (`tried`) did not take the entry's load or commit: as on_outage has it. */
void outage_serve(struct ledger_entry *entry, bool tried);
/* Redis turned down what was to be done with the keys of this session or bucket. */
void outage_log_refused(struct ledger *ledger, struct hash128 id, const char *why);
/* A request that was counted here and that Redis has yet to be told. */
void outage_remember(struct ledger *ledger, const struct session_request *request);
/* A kept request has been committed, or has been given up. */
void outage_replayed(struct ledger_entry *entry);
/* The ledger is freed: Redis does not learn what was kept. */
void outage_drop(struct ledger *ledger);

#endif

/*
 * Where sessions are kept: a store loads a session, or commits its next value if no other daemon has
 * committed since, and nothing more. Two implementations: store_memory.h, store_redis.h. Neither knows what
 * the bytes mean, but for the guard that the core begins with. Other records (approvals, lax schemas) are
 * sessions of which there is only a core: record.h.
 *
 * load, commit and rate return true if the request has ended inside the call: then its result is filled in
 * and `ended` is not called. False: `ended` is called later, exactly once, never inside the call. There is no
 * cancel: the request must live until it has ended, or the store is freed, which ends none.
 */
#ifndef TOOLGATE_LEDGER_SESSION_STORE_H
#define TOOLGATE_LEDGER_SESSION_STORE_H

#include "base/buf.h"
#include "ledger/ledger.h"

/* Parts of a session. In Redis each is a key, and all are in one hash slot of a cluster. */
enum session_part {
    PART_CORE,    /* the session (codec.h) */
    PART_JOURNAL, /* a ring of notes */
    PART_IDS,     /* seen ids, 8 bytes each, oldest first */
    PART_DETAILS, /* goal, facts, names of tools, arguments of open calls; a hash in Redis */
    PART_COUNT
};
#define PART_BIT(part) (1u << (part))

/* What changed in a part. */
enum store_write_kind {
    WRITE_SET,     /* `value` from now on */
    WRITE_AT,      /* `value` at byte `at`, which is at most the part's length */
    WRITE_FIELD,   /* details: field `name` is `value` */
    WRITE_NO_FIELD /* details: no field `name` */
};
struct store_write {
    enum store_write_kind kind;
    enum session_part part;
    uint32_t at;
    struct str name, value;
};

enum store_result {
    STORE_DONE,     /* loaded, or committed */
    STORE_CONFLICT, /* another commit was first: `stored` is what is stored now */
    STORE_REFUSED,  /* the server turned it down for good; `why`. Nothing was written */
    STORE_UNDONE,   /* the store is away, nothing was written; `why` */
    STORE_LOST      /* the store is away, and it may have been written or not; `why` */
};

struct store_request {
    struct hash128 id; /* of the session */
    /* PART_BITs of the parts beside the core that exist or are written: no others are loaded or renewed.
     * While a cluster moves a slot, a request that names a key which is not there has to wait. */
    unsigned with;

    /* commit. What is named here is borrowed until the request has ended. */
    struct str guard;             /* what the stored core must begin with; empty: there must be none */
    struct str parts[PART_COUNT]; /* the new value of each part that changed; `at` NULL: as it is */
    /* what changed in the parts beside the core, for a store that sends no more than that */
    const struct store_write *writes;
    size_t write_count;
    /* > 0: from now on all parts of the session live this long; a new core must have it */
    uint32_t renew_ttl_s;
    uint32_t user; /* a new session takes of this user's share of a store's memory */
    bool forget;   /* delete all parts instead, whatever is stored: the guard is ignored */

    /* Where it ended: valid during `ended` only, or until the next request to the store. */
    enum store_result result;
    const char *why;
    struct str stored[PART_COUNT]; /* loaded, or after a conflict; empty: none exists */

    void (*ended)(struct store_request *request);
};

/* A bucket of rates (GCRA): takes one call if every rate has room, else none. Asked again with an admission
 * that it has taken, it takes nothing and says 0: it remembers the last STORE_RATE_ADMISSIONS. */
#define STORE_RATE_ADMISSIONS 64u
struct store_rate_request {
    struct hash128 bucket;
    uint32_t user; /* a new bucket takes of this user's share */
    uint64_t admission;
    uint64_t held_us; /* > 0: it did not run, so long after it was taken: give it back, if it is remembered */
    struct ledger_rate rates[LEDGER_RATES_MAX];
    uint32_t rate_count;

    enum store_result result; /* never STORE_CONFLICT */
    const char *why;
    uint32_t wait_ms; /* STORE_DONE: 0: taken; else when there is room again */
    void (*ended)(struct store_rate_request *request);
};

struct session_store {
    const struct session_store_kind *kind;
};

struct session_store_kind {
    const char *name; /* "local", "redis" */
    bool (*load)(struct session_store *store, struct store_request *request);
    bool (*commit)(struct session_store *store, struct store_request *request);
    bool (*rate)(struct session_store *store, struct store_rate_request *request);
    int64_t (*now_ms)(struct session_store *store); /* the server's clock */
    void (*free)(struct session_store *store);
};

#endif

/*
 * Where sessions are kept: a store loads a session, or commits its next value if no other daemon has
 * committed since, and nothing more. Neither knows what the bytes mean, but for the guard that the core
 * begins with. Other records (approvals, lax schemas) are sessions of which there is only a core: record.h.
 *
 * ask and rate return true if the request has ended inside the call: then its result is filled in and `ended`
 * is not called. False: `ended` is called later, exactly once, never inside the call. There is no
 * cancel: the request must live until it has ended, or the store is freed, which ends none.
 */
#ifndef TOOLGATE_LEDGER_STORE_H
#define TOOLGATE_LEDGER_STORE_H

#include "base/buf.h"
#include "ledger/ledger.h"

#include <sys/queue.h>

struct redisReply;
struct store_redis;

/* Parts of a session. In Redis each is a key, and all are in one hash slot of a cluster. */
enum session_part {
    PART_CORE,    /* the session (session.h) */
    PART_JOURNAL, /* a ring of notes */
    PART_IDS,     /* seen ids, 8 bytes each, oldest first */
    PART_DETAILS, /* goal, facts, names of tools, arguments of open calls; a hash in Redis */
    PART_COUNT
};
#define PART_BIT(part) (1u << (part))

enum store_result {
    STORE_DONE,     /* loaded, or committed */
    STORE_CONFLICT, /* another commit was first: `stored` is what is stored now */
    STORE_REFUSED,  /* the server turned it down for good; `why`. Nothing was written */
    STORE_UNDONE,   /* the store is away, nothing was written; `why` */
    STORE_LOST      /* the store is away, and it may have been written or not; `why` */
};

/* What a request is in Redis (redis.h). `reply` is the reply if STORE_DONE, else NULL, and valid during the
 * call. STORE_REFUSED: a permanent error, in the server's words. Never STORE_CONFLICT. */
struct redis_command {
    void (*ended)(struct redis_command *command, enum store_result how, const struct redisReply *reply,
                  const char *why);
    struct store_redis *store;
    struct buf bytes; /* must live until `ended` */
    STAILQ_ENTRY(redis_command) next;
    int64_t began_us;
    uint32_t key_at, key_len; /* of the key that decides about the slot; len 0: any node will do */
    uint16_t words;
    uint8_t script, hops;
    uint8_t skips;        /* replies that come before its own */
    bool asking, reloads; /* it is sent behind ASKING, or behind the scripts */
};

/* A commit if it has a core or forgets, else a load. */
struct store_request {
    struct redis_command command; /* first. Whoever frees the request after its store frees its bytes */
    struct hash128 id;            /* of the session */
    /* PART_BITs of the parts beside the core that exist or are written: no others are loaded or renewed.
     * While a cluster moves a slot, a request that names a key which is not there has to wait. */
    unsigned with;

    /* commit. What is named here is borrowed until the request has ended. */
    struct str guard;             /* what the stored core must begin with; empty: there must be none */
    struct str parts[PART_COUNT]; /* the new value of each part that changed; `at` NULL: as it is */
    /* for a store that sends no more than what changed: bytes [from, to) of a part; to 0: all of them */
    struct {
        uint32_t from, to;
    } changed[PART_COUNT];
    struct str fields; /* of the details, in their form; an empty value: there is no such field any more */
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

static inline bool store_request_loads(const struct store_request *request)
{
    return !request->parts[PART_CORE].at && !request->forget;
}

/* A bucket of rates (GCRA): takes one call if every rate has room, else none. Asked again with an admission
 * that it has taken, it takes nothing and says 0: it remembers the last STORE_RATE_ADMISSIONS. */
#define STORE_RATE_ADMISSIONS 64u
struct store_rate_request {
    struct redis_command command; /* first */
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
    bool (*ask)(struct session_store *store, struct store_request *request);
    bool (*rate)(struct session_store *store, struct store_rate_request *request);
    int64_t (*now_ms)(struct session_store *store); /* the server's clock */
    void (*free)(struct session_store *store);
};

/* ---- store_memory.c: a hash table with times to live and a bound in bytes. Where it is full, the user whose
 * sessions take most loses the one untouched for longest: a flood of sessions pushes out its own. It ends
 * each request inside the call. Used by one thread. ---- */

struct store_memory_options {
    size_t memory_bytes;     /* for sessions; an eighth of it for buckets of rates. 0: LEDGER_MEMORY_BYTES */
    int64_t (*now_ms)(void); /* NULL: the wall clock */
    /* A session's time is over, or (`evicted`) it had to go since the memory is full. Called inside ask,
     * before it is freed; may ask the store for its usage only. NULL: no caller asks. */
    void (*gone)(void *owner, struct hash128 id, struct str core, bool evicted);
    void *owner;
};
struct session_store *store_memory_new(const struct store_memory_options *options);

struct store_memory_usage {
    size_t sessions;
    size_t bytes;          /* as malloc counts them: sessions, buckets of rates, tables */
    uint64_t forgotten;    /* sessions whose time was not over, for want of memory */
    uint32_t largest_user; /* whose sessions take most */
    size_t largest_bytes;
};
void store_memory_usage(const struct session_store *store, struct store_memory_usage *out);

/* ---- store_redis.c: a Redis that many daemons share (README.md: Keys). A commit is one call of
 * lua/ledger/commit.lua. While Redis is away a request ends at once as STORE_UNDONE. ---- */

/* Begins to connect. From the loop's turn, never inside a call, outage_redis_up(ledger) is called when
 * requests are taken and the key for call ids is known (or could not be had, see store_redis_key), and
 * outage_redis_down(ledger) after each failure, also where it was never up. Not OK: the address is wrong. */
enum err store_redis_new(const struct ledger_options *options, struct ledger *ledger,
                         struct session_store **out, struct why *why);
struct str store_redis_address(const struct session_store *store); /* without user and password */
/* The first attempt to connect has ended, one way or the other. */
bool store_redis_is_settled(const struct session_store *store);
bool store_redis_is_up(const struct session_store *store);

/* The key that all daemons of this Redis share. It is stored by the first that connects, and again by those
 * that know it where Redis lost its data. False: it was never reached, or would not give it; it is asked
 * for again, five times a second. */
#define STORE_REDIS_KEY_BYTES 16u
bool store_redis_key(const struct session_store *store, unsigned char out[STORE_REDIS_KEY_BYTES]);

/* What the keys of a session have in common, "tg2:{B}", for messages. NUL-terminated. */
#define STORE_REDIS_STEM_BYTES 29u
void store_redis_stem(struct hash128 id, char out[STORE_REDIS_STEM_BYTES]);

/* Fills in what is known of Redis and of the connection. Borrowed until the loop's next turn. */
void store_redis_status(const struct session_store *store, struct ledger_status *out);

#endif

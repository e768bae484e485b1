/*
 * A session that this daemon has in use or remembers (the cache), and the commit that is being made of it.
 * The cache keeps the sessions used last; one that has requests waiting stays.
 */
#ifndef TOOLGATE_LEDGER_ENTRY_H
#define TOOLGATE_LEDGER_ENTRY_H

#include "base/lru.h"
#include "io/timer.h"
#include "ledger/codec.h"
#include "ledger/request.h"
#include "ledger/session_parts.h"

#define ENTRIES_MAX          1024u /* sessions remembered beside those with requests; about 8 KB each */
#define ENTRY_NAME_MAX_BYTES 160u  /* of a session, for people; a longer one is cut */
#define ENTRY_TOOL_MAX_BYTES 64u   /* likewise of a tool */
#define COMMIT_BATCH_MAX                                                                                     \
    16u /* requests of one commit: fewer than the window holds, so that a commit sent again is recognised */

/* What requests did to a session since its last commit, as a store takes it. */
struct commit {
    struct store_request store;
    struct ledger *ledger;
    struct ledger_entry *entry;
    struct session_changes changes; /* of the request applied last */
    uint32_t calls;                 /* bit i: calls[i] changed */
    bool loads;                     /* it is a load */
    bool changed;
    bool grows; /* a part is written for the first time: it needs a time to live */
    bool journal_resized, ids_dropped;
    uint32_t journal_from; /* journal_count before */
    size_t ids_from;       /* bytes of ids before */
    struct buf writes;     /* struct store_write each; of details `at` is where the name stands in `bytes` */
    struct buf bytes;      /* names and values of details */
    struct buf gave_up;    /* struct session_chain each: logged once they are committed */
    char guard[CODEC_GUARD_BYTES];
    struct commit *spare;
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
    uint8_t format;        /* of the stored core */
    unsigned with;         /* PART_BITs to load with it */
    size_t head_len;       /* of `core` */
    struct buf core;       /* as it was committed last; empty: not known */
    struct session_parts parts;
    struct request_queue queue, flying;
    struct commit *commit; /* while busy */
    struct timer pause;
    struct ledger *ledger;
    struct session session; /* from here on nothing is cleared: see entries_get */
    char name[ENTRY_NAME_MAX_BYTES], looped[ENTRY_TOOL_MAX_BYTES];
};

struct entries {
    struct lru table;
    struct commit *spare_commits;
};

void entries_init(struct entries *entries);
void entries_clear(struct entries *entries, void (*drop)(struct ledger_entry *entry));

/* Made if it is new; then it is not loaded. Lets go of those used longest ago beyond ENTRIES_MAX. */
struct ledger_entry *entries_get(struct entries *entries, struct ledger *ledger, struct hash128 id);
/* NULL: not remembered. */
struct ledger_entry *entries_find(struct entries *entries, struct hash128 id);
/* What people see of it: its name, and the tool of a call that was repeated or refused. */
void entry_set_name(struct ledger_entry *entry, struct str name);
void entry_set_looped(struct ledger_entry *entry, struct str tool);
/* Forget what is known of it, so that it is loaded anew. */
void entry_forget(struct ledger_entry *entry);

struct commit *entries_commit(struct entries *entries, struct ledger_entry *entry);
void entries_return_commit(struct entries *entries, struct commit *commit);

/* ---- commit.c ---- */

void commit_begin(struct commit *commit);
/* Takes over `changes` of the request applied last. */
void commit_take_changes(struct commit *commit);
/* A field of the details; `value` at NULL: it goes. */
void commit_set_field(struct commit *commit, struct str name, struct str value);
void commit_add_ids(struct commit *commit, const struct hash128 *ids, size_t count);
/* Another configuration wants another number of notes than the session was begun with. */
void commit_resize_journal(struct commit *commit, uint16_t max);
/* Completes `store`. The session gets its next version. `everything`: for a store that has nothing of it. */
void commit_finish(struct commit *commit, uint32_t ttl_s, bool everything);

#endif

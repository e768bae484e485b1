/*
 * A session that this daemon has in use or remembers (the cache), and the commit that is being made of it.
 * The cache keeps the sessions used last; one that has requests waiting stays.
 */
#ifndef TOOLGATE_LEDGER_ENTRY_H
#define TOOLGATE_LEDGER_ENTRY_H

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
    bool changed, whole;
    uint32_t journal_from; /* journal_count before */
    bool window_fills;     /* the window had room before */
    unsigned parts;        /* PART_BITs of the parts that are written */
    bool grows;            /* a part is written for the first time: it needs a time to live */
    struct buf notes;      /* CODEC_NOTE_BYTES each */
    struct buf bytes;      /* what the writes' names and values stand in */
    struct store_write writes[STORE_WRITES_MAX];
    uint32_t from[STORE_WRITES_MAX]; /* where in `bytes` a write's name begins; its value follows */
    char guard[CODEC_GUARD_BYTES];
    size_t write_count;
    struct buf gave_up; /* struct session_gave_up each: logged once they are committed */
    struct commit *spare;
};

struct ledger_entry {
    struct hash128 id;
    bool loaded; /* `session` is what was stored, as far as we know */
    bool begun;  /* the session exists, stored or about to be */
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
    size_t head_len;       /* of it */
    struct buf head;       /* those bytes, if they are known: only what differs is sent to Redis */
    struct session_parts parts;
    struct request_queue queue, flying;
    struct commit *commit; /* while busy */
    struct timer pause;
    struct ledger *ledger;
    struct ledger_entry *alike;
    TAILQ_ENTRY(ledger_entry) recent;
    struct session session; /* from here on nothing is cleared: see clear_entry */
    char name[ENTRY_NAME_MAX_BYTES], looped[ENTRY_TOOL_MAX_BYTES];
};

TAILQ_HEAD(entry_list, ledger_entry);

struct entries {
    struct ledger_entry **table; /* by id; the table grows with the count */
    size_t size, count;
    struct entry_list recent; /* the one used last at the end */
    struct commit *spare_commits;
};

void entries_init(struct entries *entries);
void entries_clear(struct entries *entries, void (*drop)(struct ledger_entry *entry));

/* Made if it is new; then it is not loaded. Lets go of those used longest ago beyond ENTRIES_MAX. */
struct ledger_entry *entries_get(struct entries *entries, struct ledger *ledger, struct hash128 id);
struct ledger_entry *entries_find(const struct entries *entries,
                                  struct hash128 id); /* NULL: not remembered */
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
void commit_write(struct commit *commit, enum store_write_kind kind, enum session_part part, size_t at,
                  struct str name, struct str value);
/* A field of the details, also in the cached part. */
void commit_set_field(struct commit *commit, struct str name, struct str value);
void commit_drop_field(struct commit *commit, struct str name);
/* A field that no cached part needs to be current for: arguments of open calls. */
void commit_set_open(struct commit *commit, struct str name, struct str value);
void commit_add_ids(struct commit *commit, const struct hash128 *ids, size_t count);
/* Another configuration wants another number of notes than the session was begun with. */
void commit_resize_journal(struct commit *commit, uint16_t max);
/* Completes `store`: guard, core, journal. The session gets its next version. */
void commit_finish(struct commit *commit, uint32_t ttl_s);
/* The same for a store that has nothing of the session: the core and all known parts. */
void commit_finish_everything(struct commit *commit, uint32_t ttl_s);

#endif

/*
 * A small table that the fleet shares, as one record of the ledger's store beside the sessions: loaded,
 * changed, and committed if no other daemon has committed since; else what is stored by then is changed
 * again. Its first byte is a format, the eight behind it a version that each commit changes.
 */
#ifndef TOOLGATE_LEDGER_RECORD_H
#define TOOLGATE_LEDGER_RECORD_H

#include "io/timer.h"
#include "ledger/session.h"
#include "ledger/store.h"

struct record_coder;

struct record_kind {
    const char *name; /* no session has the id that is made of it */
    uint32_t ttl_s;   /* from the last commit */
    uint8_t format;   /* the first byte, where sessions have their format */
    uint32_t bytes_max;
    const char *unreadable, *why; /* the event of a record that cannot be read, and its text */
    /* Reads or writes the table behind format and version. An empty record reads as bad, and leaves the table
     * empty. */
    void (*code)(void *owner, struct record_coder *coder);
    /* Makes all pending changes; false: the table is as it was. Called again after a conflict. */
    bool (*apply)(void *owner);
    /* The round is over: what was applied last is stored. `why`: it is not. May begin another. */
    void (*ended)(void *owner, const char *why);
};

struct record {                 /* embedded */
    struct store_request store; /* first: its callback casts it back */
    const struct record_kind *kind;
    void *owner;
    struct session_store *in;
    struct arena *arena; /* of the table's texts; a new one each time that the record is read */
    uint64_t version;    /* 0: none exists yet */
    bool busy;
    bool is_unreadable; /* logged; it is left as it is until it expires */
    unsigned conflicts;
    struct buf bytes;
    char guard[CODEC_GUARD_BYTES];
};

extern const char record_unreadable[]; /* a reason by its address */

void record_init(struct record *record, const struct record_kind *kind, void *owner,
                 struct session_store *in);
void record_clear(struct record *record); /* after the store was freed */
/* Begins a round unless one is under way. It may end inside this call. */
void record_run(struct record *record);
int64_t record_now_ms(const struct record *record); /* by the clock of the store */
static inline uint32_t record_now_s(const struct record *record)
{
    return (uint32_t)(record_now_ms(record) / 1000);
}

/* Reads or writes a record: the same calls in the same order do either. */
struct record_coder {
    struct buf *out;     /* NULL: it reads */
    struct str rest;     /* to read */
    struct arena *arena; /* of texts that are read */
    bool bad;            /* too few bytes, or a text that is too long: all that follows reads as 0 */
};
/* Little-endian. Returns `n`, or what was read. */
uint64_t record_number(struct record_coder *coder, uint64_t n, unsigned bytes);
#define RECORD_NUMBER(coder, field, bytes)                                                                   \
    ((field) = (__typeof__(field))record_number(coder, (uint64_t)(field), bytes))
/* Numbers as they are in memory. */
void record_bytes(struct record_coder *coder, void *bytes, size_t len);
/* The beginning of a struct, up to this member. */
#define RECORD_UP_TO(coder, object, last)                                                                    \
    record_bytes(coder, object, offsetof(__typeof__(*(object)), last) + sizeof((object)->last))
/* The length in this many bytes, then the text. */
void record_text(struct record_coder *coder, struct str *text, unsigned length_bytes, size_t max);

/* ---- which daemons share a Redis, and by which policies they judge. Daemons with different policies give
 * one session different verdicts: each of them warns, until they are alike again. ---- */

#define FLEET_GONE_S        65u
#define FLEET_DAEMONS_MAX   128u /* the one heard of longest ago goes */
#define FLEET_NAME_BYTES    80u  /* "host/1234" */
#define FLEET_WARNING_BYTES 512u

struct fleet_daemon {      /* up to the name as it is stored */
    uint64_t id, policies; /* random; a hash */
    uint32_t seen_s;
    struct str name;
};

struct fleet { /* embedded in the ledger */
    struct loop *loop;
    struct record record;
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
void fleet_code(void *fleet, struct record_coder *coder);

/* ---- lax.c: what is known of schemas that their servers do not keep: three sessions of two users make a
 * problem known for 30 days, three of one user where the daemon serves no other. All changes are idempotent,
 * so they are applied again after a conflict or an outage. ---- */

#define LAX_ENTRIES_MAX  128u     /* the one touched longest ago goes */
#define LAX_PENDING_MAX  64u      /* changes that Redis does not have yet */
#define LAX_SESSIONS     3u       /* that make a problem known */
#define LAX_KNOWN_S      2592000u /* 30 days */
#define LAX_PATH_BYTES   120u     /* of a problem; a longer one is never known */
#define LAX_RECORD_BYTES 65536u

struct lax_table {
    uint64_t spare[2]; /* of older versions */
    unsigned count;
    struct lax_entry {
        uint64_t schema;
        uint32_t touched_s, known_s; /* known_s 0: not yet */
        uint8_t count;
        struct {
            uint64_t session, user;
        } by[LAX_SESSIONS]; /* who has found it out */
        struct str tool, path, code;
    } list[LAX_ENTRIES_MAX]; /* the one touched last at the end */
};

void lax_table_code(void *table, struct record_coder *coder);
/* True: it changed. New texts are copied into the arena. */
bool lax_table_apply(struct lax_table *table, const struct ledger_lax *finding, uint32_t now_s,
                     struct arena *arena);

struct lax_fleet {          /* embedded in the ledger */
    struct lax_table table; /* first: as stored, with what is pending */
    struct record record;
    int64_t read_us; /* when it was read; 0: never */
    bool has_dropped;
    struct ledger_lax pending[LAX_PENDING_MAX];
    unsigned pending_count, applied; /* the first ones are in the table that is committed */
    struct arena *arena;             /* of their texts */
};
/* Borrows the store: that of Redis, or else of this process. */
void lax_fleet_init(struct lax_fleet *fleet, struct session_store *store);
void lax_fleet_clear(struct lax_fleet *fleet); /* after the store: it ends no request any more */

#endif

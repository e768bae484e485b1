/*
 * A small table that the fleet shares, as one record of the ledger's store beside the sessions: loaded,
 * changed, and committed if no other daemon has committed since; else what is stored by then is changed
 * again. Its first byte is a format, the eight behind it a version that each commit changes.
 */
#ifndef TOOLGATE_LEDGER_RECORD_H
#define TOOLGATE_LEDGER_RECORD_H

#include "ledger/codec.h"
#include "ledger/session_store.h"

#define RECORD_CONFLICTS_MAX 16u /* of one round; then it ends without its commit */

struct record_coder;

struct record_kind {
    const char *name; /* no session has the id that is made of it */
    uint32_t ttl_s;   /* from the last commit */
    uint8_t format;   /* the first byte, where sessions have their format */
    uint32_t bytes_max;
    const char *unreadable, *why; /* the event of a record that cannot be read, and its text */
    /* Reads or writes the table behind format and version. An empty record reads as bad: then the table is
     * to be empty. */
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
    bool busy, is_committing;
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
/* The length in this many bytes, then the text. */
void record_text(struct record_coder *coder, struct str *text, unsigned length_bytes, size_t max);

#endif

/*
 * The questions of policies that wait for an answer, or have one, as arithmetic on a plain struct:
 *
 *   pending ──▶ approved ──▶ spent      by the call that was approved, when it comes again
 *      └──────▶ denied                  each lives APPROVAL_MS from its last change
 *
 * One table for the fleet, kept as a record (record.h): an approval that two daemons would spend is spent
 * once. `binding` is a SHA-256 of session, user, tool, arguments, policies and question, so a call that was
 * changed since does not match it. Operators do not see questions that a client puts to its own user
 * (`of_client`), nor answer them. While Redis is away nothing is approved or spent: nothing stands in for a
 * person's yes.
 */
#ifndef TOOLGATE_LEDGER_APPROVALS_H
#define TOOLGATE_LEDGER_APPROVALS_H

#include "base/buf.h"
#include "base/hash.h"

#include <stdbool.h>
#include <sys/queue.h>

struct approvals;
struct arena;
struct ledger;
struct record_coder;

#define APPROVAL_MS            300000 /* to answer the question, and again to make the approved call */
#define APPROVALS_MAX          256u   /* of the fleet */
#define APPROVALS_USER_MAX     32u    /* of the calls of one uid */
#define APPROVALS_SESSION_MAX  8u
#define APPROVAL_ARGUMENTS_MAX 2048u /* bytes shown to the operator */
#define APPROVAL_QUESTION_MAX  1024u
#define APPROVAL_NAME_MAX      256u /* of a session, a tool, a user */
#define APPROVAL_RECORD_BYTES  2097152u
#define APPROVAL_SPENDS_MAX    8u  /* questions of one call */
#define APPROVAL_ID_CHARS      16u /* hexadecimal digits */

enum approval_state {
    APPROVAL_NONE, /* the binding or the id is unknown, or its time is over */
    APPROVAL_PENDING,
    APPROVAL_APPROVED,
    APPROVAL_DENIED,
    APPROVAL_SPENT
};

/* A process on a host, to tell who asked from who answers. */
struct __attribute__((packed)) approval_process {
    uint64_t host;
    uint32_t pid;
};

struct approval {
    struct __attribute__((packed)) { /* as it is stored, little-endian */
        uint64_t id;                 /* random, never 0 */
        enum approval_state state : 8;
        bool of_client : 1; /* its own client answers, with the call; no operator */
        bool is_cut : 1;    /* `arguments` is only their beginning */
        uint8_t unused : 6; /* 0 */
        uint8_t binding[SHA256_BYTES];
        uint64_t session_hash;
        uint32_t uid, answered_uid;
        struct approval_process process; /* whose call it is */
        int64_t made_ms, expires_ms;
    };
    struct str session, user, tool, arguments, question, answered_by;
};

struct approval_table {
    unsigned count;
    struct approval list[APPROVALS_MAX]; /* the oldest first */
};

enum approval_kind {
    APPROVAL_ASK,    /* what has become of this question; it is entered if it is new */
    APPROVAL_SPEND,  /* all of `ids`, or none */
    APPROVAL_REOPEN, /* `ids` are approved again: what they were spent on has not run yet */
    APPROVAL_DECIDE, /* an operator approves or denies */
    APPROVAL_LIST
};

/* What of a table is asked for, and the answer. */
struct approval_request {
    enum approval_kind kind;
    struct approval asked; /* ASK: all of it but the times; DECIDE: id, process, answered_uid, answered_by */
    uint64_t answers;      /* ASK, of a client: the id that it answers; 0: none */
    bool given;            /* ASK with an answer, DECIDE */
    uint64_t ids[APPROVAL_SPENDS_MAX];
    unsigned id_count;
    struct arena *arena; /* of the answer */

    enum approval_state found; /* ASK: its state now; DECIDE: before; SPEND: SPENT, or NONE */
    bool is_new;               /* ASK: this request has entered it */
    bool is_full;              /* ASK: there was no room for it */
    bool is_own;               /* DECIDE: refused, since the same process has asked */
    struct approval entry;     /* ASK, DECIDE: as it is now */
    const struct approval *list;
    unsigned list_count;

    const char *unavailable; /* why there is no answer; NULL: there is one. Set by approvals.c */
    void (*done)(void *owner);
    void *owner;
    TAILQ_ENTRY(approval_request) next;
    bool is_applied, is_inside, is_ended, is_owned;
};

/* Texts of what is entered are kept in `arena`, which lives as long as the table. True: the table changed. */
bool approval_table_apply(struct approval_table *table, struct approval_request *request, int64_t now_ms,
                          struct arena *arena);

void approval_table_code(void *table, struct record_coder *coder); /* record.h */

/* ---- the fleet's table ---- */

/* Borrows the ledger's store. */
struct approvals *approvals_new(struct ledger *ledger);
/* After the ledger: its stores end no request any more. */
void approvals_free(struct approvals *approvals);

/* True: it has ended, and `done` is not called. False: `done` is called later, exactly once; the request, and
 * what it borrows, lives until then. Without `done` it has no texts, and a copy of it is made. */
bool approvals_do(struct approvals *approvals, struct approval_request *request);
/* Forgets the owner's requests; what they change may be committed all the same. */
void approvals_cancel(struct approvals *approvals, const void *owner);

/* Now, by the clock of the store. */
int64_t approvals_now_ms(const struct approvals *approvals);
/* A process of this host. */
struct approval_process approvals_process(uint32_t pid);

void approvals_write_id(uint64_t id, char out[APPROVAL_ID_CHARS + 1]);
/* 0: no id. */
uint64_t approvals_read_id(struct str text);

#endif

/*
 * A request to one session, from ledger.h's call until its commit. It borrows what the caller gave it; one
 * that nobody waits for, or that Redis has yet to be told, owns a copy in one block.
 */
#ifndef TOOLGATE_LEDGER_REQUEST_H
#define TOOLGATE_LEDGER_REQUEST_H

#include "ledger/ledger.h"
#include "ledger/rules.h"
#include "ledger/session_store.h"

#include <sys/queue.h>

struct ledger_entry;
struct rate_wait;

enum request_kind {
    REQUEST_ADMIT,
    REQUEST_SETTLE,
    REQUEST_RELEASE, /* a settle of an admit whose caller is gone: only if it was let run and is open */
    REQUEST_TURN,
    REQUEST_SEE,
    REQUEST_RESET,  /* of one tool */
    REQUEST_FORGET, /* of the session */
    REQUEST_BOUNDARY,
    REQUEST_LOOK,
    REQUEST_VIEW,
    REQUEST_LAPSED /* whether a session with open chains has ended with its time to live */
};

struct see_request {
    const struct hash128 *ids;
    size_t count;
};

struct session_request {
    enum request_kind kind;
    struct hash128 id; /* of the session */
    union {
        const void *any;
        const struct ledger_admit *admit;
        const struct ledger_settle *settle; /* REQUEST_RELEASE, too */
        const struct ledger_turn *turn;
        const struct see_request *see;
        const struct str *tool; /* REQUEST_RESET */
        const struct ledger_look *look;
        const struct lapsed_request *lapsed;
        const struct str *session; /* REQUEST_VIEW: its name */
    } of;
    void *answer;        /* NULL: nobody waits for it */
    struct arena *arena; /* of what the answer points to */
    ledger_done *done;
    void *owner;
    uint32_t sequence; /* of this daemon's requests: session_mark */
    uint32_t number;   /* of a turn or a reset, so that it is applied once */
    bool is_past;      /* it was answered during an outage, as `past` says */
    bool is_fresh;     /* a look: what is stored was loaded for it */
    bool is_cancelled; /* an admit whose caller is gone: it is released once it is committed */
    bool is_owned;     /* in one block, with a copy of what it asks */
    size_t bytes;      /* of that block */
    struct session_past past;
    uint32_t rate_wait_ms;
    struct rate_wait *rate_wait; /* its rates are being asked; it is in no queue yet */
    struct ledger *ledger;
    STAILQ_ENTRY(session_request) next;
    LIST_ENTRY(session_request) waiting; /* among all whose `done` is to fire */
    bool is_waiting;
};

/* Of REQUEST_LAPSED: what is logged if the session is gone. */
struct lapsed_request {
    uint32_t count;
    struct session_chain chains[SESSION_CHAINS_MAX];
};

STAILQ_HEAD(request_queue, session_request);

/* A copy with everything it asks, in one block on the heap, for free(); nobody waits for it. */
struct session_request *request_copy(const struct session_request *request);
/* An owned request that gives the reservation of an admit back. */
struct session_request *request_release(const struct session_request *admit);

#endif

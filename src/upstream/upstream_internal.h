/*
 * The set of upstreams and its calls in memory. Included by upstream.c (the
 * set) and dispatch.c (the calls) only.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H
#define TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H

#include "base/hash.h"
#include "upstream/mcp/mcp_client.h"
#include "upstream/upstream_call.h"

#define LAST_ERROR_MAX_BYTES 256u
#define UPSTREAM_USERS_MAX   256u /* instances of one upstream */

/*
 * A circuit breaker: when to send no calls to an upstream that fails.
 *
 *   closed ─▶ BREAKER_OPENS_AFTER failures in a row ─▶ open ◀─────────────┐
 *     ▲                                                 │ its time is over │ the probe fails:
 *     │                                                 ▼                  │ twice as long
 *     └── any call succeeds ◀────────────────── probing: one call goes ────┘
 *
 * Has no clock of its own: the caller passes monotonic milliseconds.
 */
#define BREAKER_OPENS_AFTER 5u    /* failures in a row */
#define BREAKER_OPEN_MS     1000u /* the first time; doubled with each failed probe */
#define BREAKER_OPEN_MAX_MS 60000u

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };

/* Embedded; all zero is closed. */
struct breaker {
    enum breaker_state state;
    uint32_t failures; /* in a row */
    uint32_t open_ms;  /* length of this opening */
    int64_t until_ms;  /* its end */
};

enum breaker_decision { BREAKER_ALLOW, BREAKER_PROBE, BREAKER_REJECT };
enum breaker_decision breaker_admit(struct breaker *breaker, int64_t now_ms);

/* The outcome of an admitted call; `probe`: breaker_admit returned BREAKER_PROBE for it. True: the state has
 * changed. */
bool breaker_success(struct breaker *breaker);
/* `at_once`: it opens, however few failures came before. */
bool breaker_failure(struct breaker *breaker, bool probe, bool at_once, int64_t now_ms);
/* It was cancelled, which proves nothing: the next call may probe. */
bool breaker_cancelled(struct breaker *breaker, bool probe, int64_t now_ms);

/* Whole seconds until a call can be admitted, at least 1; 0: now. */
int64_t breaker_after_s(const struct breaker *breaker, int64_t now_ms);

struct upstream {
    struct upstreams *set;
    TAILQ_ENTRY(upstream) entry;
    struct arena *arena;              /* of the spec */
    struct upstream_spec *configured; /* as the configuration has it */
    struct upstream_spec *spec;       /* the same, with the user's name filled in */
    struct mcp_client *mcp;           /* NULL: an address for the http = {…} of policies */
    /* cached, or of the upstream it replaces, until mcp has its own */
    struct tool_list *last[UPSTREAM_LISTS];
    struct breaker breaker;
    struct call_queue queue; /* of calls that have no room beside spec.in_flight others */
    struct upstream *base;   /* of a user's instance: the upstream itself; NULL: this is no instance */
    uid_t uid;               /* of the instance's user */
    struct timer idle;       /* of an instance: it ends */
    struct timer turn;
    uint32_t in_flight;
    uint64_t calls, failures;
    int64_t crashed_ms; /* when a call last ended by a crash */
    char last_error[LAST_ERROR_MAX_BYTES];
    int64_t error_ms;
    bool leaving; /* not configured any more: mcp_client_stop after its calls are answered */
    bool stopped; /* and its process has exited */
};

TAILQ_HEAD(upstream_head, upstream);

struct upstreams {
    struct loop *loop;
    const char *state;
    struct upstreams_hooks hooks;
    void *owner;
    struct upstream_head all; /* in the order of the configuration; leaving ones at the end */
    LIST_HEAD(, upstream_call) calls[HASH_OWNERS]; /* of all that are pending or queued, by their owners */
    int log_level;                                 /* see upstreams_set_log_level; -1: not set */
    uint32_t files, files_max;                     /* open for calls; at most (0: unlimited) */
};

/* upstream.c */
struct upstream *upstream_find(const struct upstreams *set, struct str name); /* NULL: none, or it leaves */
/* In the next turn: starts queued calls if there is room, and ends an upstream that leaves. */
void upstream_schedule(struct upstream *upstream);
/* The instance that serves this user, made at its first call; `upstream` itself if it is for all users, or
 * the user is the daemon's. NULL, with the answer: there is no such user, or there are too many. */
struct upstream *upstream_of_user(struct upstream *upstream, struct upstream_call *call);
void upstream_user_called(struct upstream *instance); /* a call of it has ended */
int64_t upstream_now_ms(void);                        /* the breakers' clock */

/* dispatch.c: starts queued calls if there is room. The circuit breaker is there, too. */
void upstream_start_queued(struct upstream *upstream);

#endif

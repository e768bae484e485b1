/*
 * The set of upstreams and its calls in memory. Included by upstream.c (the
 * set) and dispatch.c (the calls) only.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H
#define TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H

#include "base/hash.h"
#include "upstream/circuit_breaker.h"
#include "upstream/mcp/mcp_client.h"
#include "upstream/upstream_call.h"

#define LAST_ERROR_MAX_BYTES 256u
#define UPSTREAM_USERS_MAX   256u /* instances of one upstream */

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

/* dispatch.c: starts queued calls if there is room. */
void upstream_start_queued(struct upstream *upstream);

#endif

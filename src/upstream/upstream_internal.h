/*
 * The set of upstreams and its calls in memory. Included by upstream.c (the
 * set), dispatch.c (the calls) and upstream_call.c (what both use) only.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H
#define TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H

#include "upstream/circuit_breaker.h"
#include "upstream/mcp/mcp_client.h"
#include "upstream/upstream_call.h"

#define LAST_ERROR_MAX_BYTES 256u
#define UPSTREAM_USERS_MAX   256u /* instances of one upstream */

/* A call under way, or queued because its upstream has spec.in_flight calls already. */
struct queued_call {
    struct upstream_call call; /* first: cast from it */
    TAILQ_ENTRY(queued_call) entry;
    struct timer deadline; /* of queueing */
    int64_t began_ms;
    uint32_t files; /* that it holds open */
    bool queued, probe;
};

struct upstream {
    struct upstreams *set;
    struct upstream *next;
    struct arena *arena;              /* of the spec */
    struct upstream_spec *configured; /* as the configuration has it */
    struct upstream_spec *spec;       /* the same, with the user's name filled in */
    struct mcp_client *mcp;           /* NULL: an address for the http = {…} of policies */
    /* cached, or of the upstream it replaces, until mcp has its own */
    struct tool_list *last[UPSTREAM_LISTS];
    struct breaker breaker;
    TAILQ_HEAD(, queued_call) queue;
    struct upstream *base; /* of a user's instance: the upstream itself; NULL: this is none */
    uid_t uid;             /* of the instance's user */
    struct timer idle;     /* of an instance: it ends */
    struct timer turn;
    void (*on_turn)(void *upstream); /* starts queued calls if there is room; ends an upstream that leaves */
    uint32_t in_flight, queued;
    uid_t last_user; /* whose call was taken from the queue last */
    uint64_t calls, failures;
    int64_t crashed_ms; /* when a call last ended by a crash */
    char last_error[LAST_ERROR_MAX_BYTES];
    int64_t error_ms;
    bool leaving;  /* not configured any more: ends after its calls are answered */
    bool stopping; /* mcp_client_stop was called */
    bool stopped;  /* and its process has exited */
};

struct delay {
    LIST_ENTRY(delay) entry;
    struct timer timer;
    upstream_done *done;
    void *owner;
};

struct upstreams {
    struct loop *loop;
    const char *state;
    struct upstreams_hooks hooks;
    void *owner;
    struct upstream *first; /* in the order of the configuration; leaving ones at the end */
    LIST_HEAD(, upstream_call) calls;
    LIST_HEAD(, delay) delays;
    int log_level;             /* see upstreams_set_log_level; -1: nobody has said */
    uint32_t files, files_max; /* open for calls; at most (0: unlimited) */
};

/* upstream.c. `base`: of an instance for `user` */
struct upstream *upstream_new(struct upstreams *set, const struct upstream_spec *spec,
                              struct upstream *before);
void upstream_leave(struct upstream *upstream); /* ends after its calls are answered */

/* per_user.c. The instance that serves this user, made if there is none; `upstream` itself if it is for all
 * users, or the user is the daemon's. NULL, with the answer: there is no such user, or there are too many. */
struct upstream *upstream_of_user(struct upstream *upstream, struct upstream_call *call);
void upstream_user_called(struct upstream *instance); /* a call of it has ended */
struct upstream_spec *upstream_own_spec(struct arena *arena,
                                        const struct upstream_spec *spec); /* the daemon's own */

/* upstream_call.c */
struct upstream *upstream_find(const struct upstreams *set, struct str name); /* NULL: none, or it leaves */
void upstream_schedule(struct upstream *upstream);                            /* on_turn, in the next turn */
void upstream_remember_error(struct upstream *upstream, struct str why);
int64_t upstream_now_ms(void); /* the breakers' clock */

/* dispatch.c: starts queued calls if there is room. */
void upstream_start_queued(struct upstream *upstream);

#endif

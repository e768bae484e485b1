/*
 * The set and its calls as they stand in memory: who is there (upstream.c),
 * what is under way (dispatch.c), how both are shown (show.c). Only these
 * three include this header.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H
#define TOOLGATE_UPSTREAM_UPSTREAM_INTERNAL_H

#include "upstream/circuit_breaker.h"
#include "upstream/mcp/mcp_client.h"
#include "upstream/upstream_call.h"

#define LAST_ERROR_MAX_BYTES 256u

struct upstream {
    struct upstreams *set;
    struct upstream *next;
    struct arena *arena; /* of the spec */
    struct upstream_spec *spec;
    struct mcp_client *mcp; /* NULL: an address for others' requests */
    struct tool_list *kept; /* what it offered before it was there; NULL: not known */
    struct breaker breaker;
    struct queued_call *queue, **queue_end; /* until there is room for them: spec.in_flight */
    struct timer turn;                      /* the next in the queue, or its own end */
    uint32_t in_flight, queued;
    uint64_t calls, failures;
    int64_t died_ms; /* when a call last told of its process's death */
    char last_error[LAST_ERROR_MAX_BYTES];
    int64_t error_ms; /* when that was */
    bool leaving;     /* not configured any more: ended once its calls are answered */
    bool stopping;    /* they are */
    bool over;        /* and its process is gone */
};

/* A call under way, or waiting for its turn. */
struct queued_call {
    struct upstream_call run;   /* first: the kinds know it by this */
    struct queued_call *behind; /* in the queue */
    struct timer deadline;      /* of waiting in the queue */
    int64_t began_ms;
    bool queued, probe;
};

struct pause {
    struct upstreams *set;
    struct pause *next, *previous;
    struct timer timer;
    upstream_done *done;
    void *owner;
};

struct upstreams {
    struct loop *loop;
    const char *state;
    struct upstreams_hooks hooks;
    void *owner;
    struct upstream *first; /* in the order of the configuration, those that leave at the end */
    struct upstream_call *runs;
    struct pause *pauses;
};

struct upstream *upstream_find(const struct upstreams *set, struct str name); /* NULL: none, or it leaves */
void upstream_unlink(struct upstreams *set, struct upstream *upstream);
void upstream_free(struct upstream *upstream); /* at once */

/* With the loop's next turn: those that wait are let in where there is room, one that leaves is ended. */
void upstream_schedule(struct upstream *upstream);

int64_t upstream_now_ms(void); /* of the breakers' clock */

#endif

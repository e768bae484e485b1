/*
 * What the files of the MCP client share: mcp.c (its life), mcp_handshake.c (the
 * handshake, its tools), mcp_call.c (calls), mcp_notifications.c (what it says unasked),
 * mcp_pending.c (what awaits an answer). Nobody else includes this.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_INTERNAL_H
#define TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_INTERNAL_H

#include "base/buf.h"
#include "upstream/mcp/mcp_client.h"
#include "upstream/mcp/mcp_message.h"
#include "upstream/tool_list.h"
#include "base/rate_limit.h"

#define MCP_QUOTE_MAX_BYTES 4096u /* of what a server says, inside an answer of ours */
#define MCP_ERROR_MAX_BYTES 1024u /* kept to tell why it is not up */
#define MCP_NOISE_PER_S     5u    /* log lines about messages of one server that nobody could use */
#define MCP_SCRATCH_KEEP    65536u
#define MCP_RELAYED_PER_S   100u /* notices of progress a call, of messages a server */

/* ---- what awaits an answer -------------------------------------------------- */

struct pending;
typedef void mcp_heard(struct mcp *mcp, struct pending *pending, const struct line *line);

struct pending {
    uint64_t id;
    struct upstream_run *run;               /* NULL: a question of our own */
    struct mcp *mcp;                        /* of a run */
    mcp_heard *heard;                       /* its answer is there: takes it off first, finishes last */
    int64_t since_us, deadline_us, last_us; /* asked; until when; the same with all progress. 0: for ever */
    int64_t time_us;                        /* that progress gives it anew */
    double progress;                        /* the last that was told */
    bool told;                              /* one was */
    struct trickle tells;                   /* how often */
    bool sent;
    uint32_t slot, questions;        /* questions: that it put to the user */
    struct pending *next, *previous; /* among those that are sent, or that wait, oldest first */
};

struct pending_list {
    struct pending *first, *last;
    uint32_t count;
};

/* An id holds the number of its slot: found at once, and one that was given out before is known to be over.
 */
struct pendings {
    struct pending **slots;
    uint32_t room, used, spare; /* slots there are; ever used; first of the free ones, +1 */
    uint32_t *next_spare;
    uint64_t serial;
    struct pending_list sent, waiting;
};

struct pending *pending_add(struct pendings *all); /* in `waiting`; NULL: MCP_CALLS_MAX are there already */
void pending_send(struct pendings *all, struct pending *pending); /* to `sent` */
void pending_remove(struct pendings *all, struct pending *pending);
struct pending *pending_find(const struct pendings *all, uint64_t id); /* sent ones only; NULL: none */
void pendings_clear(struct pendings *all);

/* Calls that were sent and that nobody waits for any more: for a time, or until they are answered after all,
 * what the server says without saying of which call may be about them. */
#define MCP_GIVEN_UP_MAX 16u
#define MCP_GIVEN_UP_MS  600000u

struct given_up {
    uint64_t id, caller; /* caller 0: of several */
    int64_t until_us;
};

struct given_ups {
    struct given_up list[MCP_GIVEN_UP_MAX];
};

void given_up_add(struct given_ups *all, uint64_t id, uint64_t caller, int64_t now_us);
void given_up_forget(struct given_ups *all, uint64_t id); /* it was answered */
bool given_up_by_others(const struct given_ups *all, uint64_t caller, int64_t now_us);

/* ---- one server ------------------------------------------------------------- */

struct listing { /* tools/list under way, page after page */
    struct arena *arena;
    struct json *tools;
    uint32_t count, pages;
    size_t bytes;
    struct str cursors[MCP_PAGES_MAX];
    bool on, again;  /* it is asked for; it has changed meanwhile */
    const char *cut; /* why it was not read to its end; NULL: it was */
};

struct mcp {
    struct loop *loop;
    const struct upstream_spec *spec;
    const struct mcp_hooks *hooks;
    void *owner;
    const struct transport_kind *kind;
    struct transport *transport, *dying; /* dying: over, freed in the next turn */
    enum mcp_state state, told;          /* told: to the owner */
    bool open;                           /* messages may be sent */
    bool ready;                          /* greeted and listed: calls may be sent */
    bool modern;                         /* 2026-07-28: no handshake, each request says who we are */
    bool wanted;                         /* to be started in the next turn */
    bool stopping;                       /* takes no more calls */
    bool settled;
    struct pendings pendings;
    struct given_ups given_ups;
    struct timer deadline, starting, again, soon, relist, relisten;
    int64_t armed_us; /* what `deadline` is set for; 0: it is not */
    int64_t up_us, next_us, relist_us;
    uint32_t failures, relist_ms;
    uint64_t ignored, starts;
    struct buf out;
    struct arena *scratch;
    struct listing listing;
    struct upstream_offer *offer;
    struct trickle noise, messages;
    char version[32], server[128], error[MCP_ERROR_MAX_BYTES];
};

/* mcp.c */
void mcp_set_state(struct mcp *mcp, enum mcp_state state);
void mcp_up(struct mcp *mcp); /* greeted, and its tools are known */
void mcp_give_up(struct mcp *mcp, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t mcp_start_ms(const struct mcp *mcp); /* in which it is to be ready, and each page of a later list */
void mcp_later(struct mcp *mcp);              /* something is to be done in the next turn */
void mcp_watch(struct mcp *mcp, int64_t us);  /* a deadline */
/* Counts and logs what nobody could use. `text`: what is shown of it, empty for all that may hold a result.
 */
void mcp_noise(struct mcp *mcp, const char *what, struct str text);
/* For what it says in errors and beside its messages, before it is cut: secrets of its settings are hidden.
 */
struct str mcp_mask(const struct mcp *mcp, struct arena *arena, struct str text);
struct arena *mcp_scratch(struct mcp *mcp); /* empty, until the next call of this */

/* A question of our own: its begin, up to and with `"params":{`; the caller closes it and sends it. */
struct pending *mcp_ask(struct mcp *mcp, const char *method, mcp_heard *heard, uint32_t ms);
void mcp_begin(struct mcp *mcp, uint64_t id, const char *method);
void mcp_meta(struct mcp *mcp, uint64_t progress_token); /* `"_meta":{…}`, where there is something to say */
bool mcp_has_meta(const struct mcp *mcp, uint64_t progress_token);
void mcp_send(struct mcp *mcp, uint64_t id, const char *method, struct str name); /* what is in `out` */

/* mcp_handshake.c */
void mcp_greet(struct mcp *mcp);
void mcp_list_changed(struct mcp *mcp);
void mcp_relist(void *owner);
void mcp_relisten(void *owner);
void listing_clear(struct listing *listing);

/* mcp_call.c */
void mcp_pump(struct mcp *mcp); /* sends what waits, as far as it may be sent */
/* Takes it off and fills its answer in; `reached` by whether it was sent. run_finish is the caller's. */
struct upstream_run *mcp_end_call(struct mcp *mcp, struct pending *pending);
void mcp_call_timed_out(struct mcp *mcp, struct pending *pending);
void mcp_call_died(struct mcp *mcp, struct pending *pending, const char *why, struct str quoted);
void mcp_call_unavailable(struct mcp *mcp, struct pending *pending);
void mcp_call_broken(struct mcp *mcp, struct pending *pending, const char *code, const char *detail);
void mcp_call_failed(struct mcp *mcp, struct pending *pending, enum upstream_ended how, const char *code,
                     const char *why, struct str quoted, int64_t after_s);
/* NULL: it may be sent to; else why not, in words that follow "the server '…', which runs this tool, ". */
const char *mcp_what_holds(const struct mcp *mcp);
void mcp_tell_cancelled(struct mcp *mcp, uint64_t id, const char *reason);

/* mcp_elicitation.c: what it wants to know of the user. False: it does not ask. */
void mcp_elicited(struct mcp *mcp, uint64_t about, const struct line *line);
bool mcp_call_asks(struct mcp *mcp, struct pending *pending, const struct json *result);
bool mcp_error_asks(struct mcp *mcp, struct pending *pending, const struct json *error);

/* mcp_notifications.c */
void mcp_hear_request(struct mcp *mcp, uint64_t about, const struct line *line);
void mcp_hear_notice(struct mcp *mcp, uint64_t about, const struct line *line);
void mcp_answer(struct mcp *mcp, struct str id, struct str result); /* to a request of its own */
void mcp_refuse(struct mcp *mcp, struct str id, int code, const char *message);
/* The call that a message must be about: that of `about`, or the only one under way. NULL: nobody knows. */
struct pending *mcp_only_call(struct mcp *mcp, uint64_t about);

#endif

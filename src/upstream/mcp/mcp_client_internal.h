/*
 * What the files of the MCP client share: mcp.c (its life), mcp_handshake.c (the
 * handshake, its tools), mcp_client_call.c (calls), mcp_notifications.c (what it says unasked),
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
typedef void mcp_response_handler(struct mcp_client *mcp, struct pending *pending,
                                  const struct mcp_message *line);

struct pending {
    uint64_t id;
    struct upstream_call *run;              /* NULL: a question of our own */
    struct mcp_client *mcp;                 /* of a run */
    mcp_response_handler *heard;            /* its answer is there: takes it off first, finishes last */
    int64_t since_us, deadline_us, last_us; /* asked; until when; the same with all progress. 0: for ever */
    int64_t time_us;                        /* that progress gives it anew */
    double progress;                        /* the last that was told */
    bool told;                              /* one was */
    struct rate_limit tells;                /* how often */
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
#define MCP_ABANDONED_MAX 16u
#define MCP_ABANDONED_MS  600000u

struct abandoned_call {
    uint64_t id, caller; /* caller 0: of several */
    int64_t until_us;
};

struct abandoned_calls {
    struct abandoned_call list[MCP_ABANDONED_MAX];
};

void abandoned_calls_add(struct abandoned_calls *all, uint64_t id, uint64_t caller, int64_t now_us);
void abandoned_calls_remove(struct abandoned_calls *all, uint64_t id); /* it was answered */
bool abandoned_calls_by_others(const struct abandoned_calls *all, uint64_t caller, int64_t now_us);

/* ---- one server ------------------------------------------------------------- */

struct tools_listing { /* tools/list under way, page after page */
    struct arena *arena;
    struct json *tools;
    uint32_t count, pages;
    size_t bytes;
    struct str cursors[MCP_PAGES_MAX];
    bool on, again;  /* it is asked for; it has changed meanwhile */
    const char *cut; /* why it was not read to its end; NULL: it was */
};

struct mcp_client {
    struct loop *loop;
    const struct upstream_spec *spec;
    const struct mcp_client_hooks *hooks;
    void *owner;
    const struct mcp_transport_kind *kind;
    struct mcp_transport *transport, *dying; /* dying: over, freed in the next turn */
    enum mcp_client_state state, told;       /* told: to the owner */
    bool open;                               /* messages may be sent */
    bool ready;                              /* greeted and listed: calls may be sent */
    bool modern;                             /* 2026-07-28: no handshake, each request says who we are */
    bool wanted;                             /* to be started in the next turn */
    bool stopping;                           /* takes no more calls */
    bool settled;
    struct pendings pendings;
    struct abandoned_calls abandoned_calls;
    struct timer deadline, starting, again, soon, relist, relisten;
    int64_t armed_us; /* what `deadline` is set for; 0: it is not */
    int64_t up_us, next_us, relist_us;
    uint32_t failures, relist_ms;
    uint64_t ignored, starts;
    struct buf out;
    struct arena *scratch;
    struct tools_listing listing;
    struct tool_list *offer;
    struct rate_limit noise, messages;
    char version[32], server[128], error[MCP_ERROR_MAX_BYTES];
};

/* mcp.c */
void mcp_client_set_state(struct mcp_client *mcp, enum mcp_client_state state);
void mcp_client_up(struct mcp_client *mcp); /* greeted, and its tools are known */
void mcp_client_fail(struct mcp_client *mcp, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t mcp_client_start_ms(
    const struct mcp_client *mcp); /* in which it is to be ready, and each page of a later list */
void mcp_client_schedule(struct mcp_client *mcp); /* something is to be done in the next turn */
void mcp_client_watch_deadline(struct mcp_client *mcp, int64_t us); /* a deadline */
/* Counts and logs what nobody could use. `text`: what is shown of it, empty for all that may hold a result.
 */
void mcp_client_ignore(struct mcp_client *mcp, const char *what, struct str text);
/* For what it says in errors and beside its messages, before it is cut: secrets of its settings are hidden.
 */
struct str mcp_client_redact(const struct mcp_client *mcp, struct arena *arena, struct str text);
struct arena *mcp_client_scratch(struct mcp_client *mcp); /* empty, until the next call of this */

/* A question of our own: its begin, up to and with `"params":{`; the caller closes it and sends it. */
struct pending *mcp_client_request(struct mcp_client *mcp, const char *method, mcp_response_handler *heard,
                                   uint32_t ms);
void mcp_client_begin_message(struct mcp_client *mcp, uint64_t id, const char *method);
void mcp_client_write_meta(struct mcp_client *mcp,
                           uint64_t progress_token); /* `"_meta":{…}`, where there is something to say */
bool mcp_client_has_meta(const struct mcp_client *mcp, uint64_t progress_token);
void mcp_client_send(struct mcp_client *mcp, uint64_t id, const char *method,
                     struct str name); /* what is in `out` */

/* mcp_handshake.c */
void mcp_handshake_start(struct mcp_client *mcp);
void mcp_tools_changed(struct mcp_client *mcp);
void mcp_relist(void *owner);
void mcp_relisten(void *owner);
void mcp_tools_clear(struct tools_listing *listing);

/* mcp_client_call.c */
void mcp_call_send_waiting(struct mcp_client *mcp); /* sends what waits, as far as it may be sent */
/* Takes it off and fills its answer in; `reached` by whether it was sent. upstream_call_finish is the
 * caller's. */
struct upstream_call *mcp_call_end(struct mcp_client *mcp, struct pending *pending);
void mcp_call_timed_out(struct mcp_client *mcp, struct pending *pending);
void mcp_call_died(struct mcp_client *mcp, struct pending *pending, const char *why, struct str quoted);
void mcp_call_unavailable(struct mcp_client *mcp, struct pending *pending);
void mcp_call_broken(struct mcp_client *mcp, struct pending *pending, const char *code, const char *detail);
void mcp_call_failed(struct mcp_client *mcp, struct pending *pending, enum upstream_outcome how,
                     const char *code, const char *why, struct str quoted, int64_t after_s);
/* NULL: it may be sent to; else why not, in words that follow "the server '…', which runs this tool, ". */
const char *mcp_call_blocked(const struct mcp_client *mcp);
void mcp_call_notify_cancelled(struct mcp_client *mcp, uint64_t id, const char *reason);

/* mcp_elicitation.c: what it wants to know of the user. False: it does not ask. */
void mcp_elicitation_request(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line);
bool mcp_elicitation_from_result(struct mcp_client *mcp, struct pending *pending, const struct json *result);
bool mcp_elicitation_from_error(struct mcp_client *mcp, struct pending *pending, const struct json *error);

/* mcp_notifications.c */
void mcp_notifications_request(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line);
void mcp_notifications_notify(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line);
void mcp_client_respond(struct mcp_client *mcp, struct str id,
                        struct str result); /* to a request of its own */
void mcp_client_respond_error(struct mcp_client *mcp, struct str id, int code, const char *message);
/* The call that a message must be about: that of `about`, or the only one under way. NULL: nobody knows. */
struct pending *mcp_notifications_subject(struct mcp_client *mcp, uint64_t about);

#endif

/*
 * What the files of the MCP client share. No other file includes this header.
 * README.md lists which file handles which message.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_INTERNAL_H
#define TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_INTERNAL_H

#include "base/buf.h"
#include "base/rate_limit.h"
#include "base/version.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client.h"
#include "upstream/mcp/mcp_message.h"
#include "upstream/mcp/mcp_transport.h"

#define MCP_QUOTE_MAX_BYTES 4096u /* of a server's words in an answer */
#define MCP_ERROR_MAX_BYTES 1024u
#define MCP_IGNORED_PER_S   5u /* log lines about unusable messages, each server */
#define MCP_SCRATCH_KEEP    65536u
#define MCP_RELAYED_PER_S   100u /* progress notifications of a call, log messages of a server */

#define MCP_RELISTEN_MS 10000u /* from the end of a subscription to the next, by default */

#define MCP_MODERN       "2026-07-28" /* no handshake: each request carries version and client */
#define MCP_CAPABILITIES "{\"elicitation\":{}}"
#define MCP_CLIENT_INFO  "{\"name\":\"toolgate\",\"version\":\"" TOOLGATE_VERSION "\"}"

struct json_error;
struct mcp_subscription;

/* ---- pending requests (mcp_request.c) ----------------------------------------- */

struct pending_request;
/* Removes the request first, and finishes its call last. */
typedef void mcp_response_handler(struct pending_request *pending, const struct mcp_message *message);

struct pending_request {
    uint64_t id;
    struct upstream_call *call; /* NULL: a request of our own */
    struct mcp_client *client;
    mcp_response_handler *on_response;
    int64_t since_us;
    struct timer deadline;    /* of a call: progress sets it again to timeout_ms … */
    int64_t last_deadline_us; /* … up to this */
    uint32_t timeout_ms;
    double progress; /* the last that was relayed */
    bool has_progress, sent;
    struct rate_limit progress_rate;
    uint32_t elicitations;
    struct str question;   /* the id of the server's request that the user is answering; empty: none */
    struct mcp_list *list; /* whose page it asks for */
    struct mcp_subscription *subscription;
    TAILQ_ENTRY(pending_request) entry;
    LIST_ENTRY(pending_request) same_bucket;
};

TAILQ_HEAD(pending_list, pending_request);

#define MCP_OWN_REQUESTS_MAX 2048u /* beside MCP_CALLS_MAX: calls leave a server room to start */
#define PENDING_BUCKETS      256u  /* ids count up: of MCP_CALLS_MAX requests few share one */

struct pending_requests {
    LIST_HEAD(, pending_request) by_id[PENDING_BUCKETS];
    uint32_t count, waiting_count;
    uint64_t last_id;                  /* no id is reused: a late response matches nothing */
    struct pending_list sent, waiting; /* oldest first; waiting: calls, for the server's start */
};

struct pending_request *pending_add(struct mcp_client *client);       /* in `waiting` */
void pending_end_after(struct pending_request *pending, uint32_t ms); /* as timed out */
void pending_mark_sent(struct pending_request *pending);
void pending_remove(struct pending_request *pending);                               /* and frees it */
struct pending_request *pending_find(const struct mcp_client *client, uint64_t id); /* sent ones only */
/* The call that a message must be about: `about`, or the only one pending. NULL: unknown. */
struct pending_request *pending_subject(struct mcp_client *client, uint64_t about);

/* Calls that were sent and then cancelled: for some time, or until they are answered after all, a server
 * message that names no call may be about one of them. */
#define MCP_ABANDONED_MAX 16u
#define MCP_ABANDONED_MS  600000u

struct abandoned_call {
    uint64_t id, caller; /* caller 0: unknown */
    int64_t until_us;
};

/* ---- one server ------------------------------------------------------------- */

struct mcp_listing {     /* a list in progress */
    struct arena *arena; /* NULL: none is in progress */
    struct json *items;
    uint32_t count, pages;
    size_t bytes;
    struct str cursors[MCP_PAGES_MAX];
    bool changed;          /* a list_changed came in the middle of it */
    const char *truncated; /* why its end was not read; NULL: it was */
};

struct mcp_list {
    struct mcp_client *client;
    enum upstream_list which;
    struct mcp_listing listing;
    struct tool_list *list; /* the last one; NULL: none so far */
    struct timer relist;
    int64_t relist_us, listed_us;
    uint32_t relist_ms;
    uint32_t fresh_ms; /* of one that reports no changes */
    bool offered;      /* the server says that it has some */
    bool announces;    /* and that it reports changes */
};

struct mcp_client {
    struct loop *loop;
    const struct upstream_spec *spec;
    struct upstream *upstream; /* that it reports to */
    const struct mcp_transport_kind *kind;
    struct mcp_transport *transport, *closed_transport; /* the latter is freed in the next turn */
    enum mcp_client_state state, reported_state;
    bool open;     /* the transport accepts messages */
    bool ready;    /* handshake done, tools listed: calls may be sent */
    bool modern;   /* MCP_MODERN was agreed upon */
    bool was_slow; /* its last start took longer than start_timeout */
    bool stopping;
    bool has_started;
    bool listens; /* modern: to changes of its lists */
    struct pending_requests pending;
    struct abandoned_call abandoned[MCP_ABANDONED_MAX];
    uint64_t notified_before; /* the first id after our last notification; 0: a request since was answered */
    struct timer start_deadline, restart, soon, relisten;
    int64_t up_us, next_us;
    uint32_t failures;
    uint64_t ignored, starts;
    struct buf out;
    struct arena *scratch;
    struct mcp_list lists[UPSTREAM_LISTS];
    LIST_HEAD(, mcp_subscription) subscriptions;
    uint32_t subscription_count;
    bool has_subscriptions; /* to resources: the server says so */
    bool has_logging;
    int log_level; /* that the server is asked for; -1: not set */
    struct rate_limit ignored_rate, message_rate, update_rate;
    uint64_t not_logged; /* messages, before the one that is handled now */
    char version[32], server[128], error[MCP_ERROR_MAX_BYTES];
    char last_stderr[MCP_ERROR_MAX_BYTES]; /* of the process before */
};

/* mcp_client.c */
void mcp_client_up(struct mcp_client *client); /* handshake and tools/list are done */
/* Ends the transport and every sent call. */
void mcp_client_fail(struct mcp_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
uint32_t mcp_client_start_ms(const struct mcp_client *client);
/* Counts and logs an unusable message. `text`: what may be shown of it; empty if it may hold a result. */
void mcp_client_ignore(struct mcp_client *client, const char *why, struct str text);
/* For text of the server in errors and messages; call it before the text is cut. */
struct str mcp_client_redact(const struct mcp_client *client, struct arena *arena, struct str text);
struct arena *mcp_client_scratch(struct mcp_client *client); /* emptied by the next call of it */

/* mcp_request.c: what is written and read.
 * A request of our own. `ms`: until the handler gets a malformed response; 0: never. NULL: too many wait. */
#define MCP_PARAMS(...) ((const struct json_field[]){__VA_ARGS__, {.key = NULL}})
#define MCP_NO_PARAMS   ((const struct json_field[]){{.key = NULL}})
struct pending_request *mcp_request(struct mcp_client *client, const char *method,
                                    mcp_response_handler *on_response, uint32_t ms,
                                    const struct json_field *params);
void mcp_notify(struct mcp_client *client, const char *method, const struct json_field *params);
/* A message in parts: begun up to and with `"params":{`, filled in by the caller, and sent,
 * which adds `_meta` and closes it. The caller fills in all of `outgoing` but the message. progress_token 0:
 * none. */
struct json_out mcp_message_open(struct mcp_client *client, uint64_t id, const char *method);
void mcp_message_send(struct mcp_client *client, struct json_out *out, struct mcp_outgoing *outgoing,
                      uint64_t progress_token);
/* `member`: "result" or "error". */
void mcp_request_respond(struct mcp_client *client, struct str id, const char *member, struct str json);
/* Anything but the result of a call; a repair is logged. */
bool mcp_request_read(struct mcp_client *client, struct arena *arena, struct str text, struct json *value,
                      struct json_error *error);
/* The error of a response in a sentence; the server's words are quoted and cut. */
struct str mcp_request_error(struct mcp_client *client, struct arena *arena,
                             const struct mcp_message *message);
/* NULL: requests are accepted; else why not, as the end of "the server '…', which runs this tool, ". */
const char *mcp_request_blocked(const struct mcp_client *client);
void mcp_request_cancel(struct mcp_client *client, uint64_t id, const char *reason);
/* Cancels a call that was sent, and remembers whose it was. Its request stays pending. */
void mcp_request_abandon(struct pending_request *pending, const char *reason);

/* mcp_lists.c */
void mcp_lists_offered(struct mcp_client *client, const struct json *capabilities); /* by the handshake */
void mcp_list_fetch(struct mcp_list *list); /* all its pages; of the tools: ends the start */
void mcp_list_replace(struct mcp_list *list, const struct json *items); /* and reports it, if it differs */
void mcp_lists_lost(
    struct mcp_client *client); /* the server is down: nothing is being fetched or subscribed */
void mcp_lists_free(struct mcp_client *client);
void mcp_notification(struct mcp_client *client, uint64_t about, const struct mcp_message *message);

/* mcp_call.c: the ends of a call without a result; each removes the request and calls the call's `finish`. */
void mcp_call_timed_out(struct pending_request *pending);
void mcp_call_crashed(struct pending_request *pending, const char *why, struct str quoted);
void mcp_call_unavailable(struct pending_request *pending);
void mcp_call_broken(struct pending_request *pending, const char *code, const char *why);
void mcp_call_failed(struct pending_request *pending, const struct mcp_failure *failure);
/* `timeout_ms` from now, within the last deadline; up to that, while the user is asked. */
void mcp_call_set_deadline(struct pending_request *pending);
void mcp_call_send_waiting(struct mcp_client *client);
void mcp_elicitation_request(struct mcp_client *client, uint64_t about, const struct mcp_message *message);

#endif

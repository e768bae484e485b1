/*
 * What the two files of the HTTP transport share: the transport with its
 * settings and its GET stream (mcp_http.c), and one message with its response
 * and the session (mcp_http_exchange.c).
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_HTTP_INTERNAL_H
#define TOOLGATE_UPSTREAM_MCP_MCP_HTTP_INTERNAL_H

#include "base/buf.h"
#include "base/trace_context.h"
#include "io/timer.h"
#include "upstream/http/fetch.h"
#include "upstream/http/sse.h"
#include "upstream/mcp/mcp_header_mapping.h"
#include "upstream/mcp/mcp_transport.h"
#include "upstream/secrets.h"

#include <sys/queue.h>

#define MCP_HTTP_NOTIFICATION_MS 30000u /* timeout of a notification or a response */
#define MCP_HTTP_CLOSE_MS        2000u  /* timeout of DELETE */
#define MCP_HTTP_LINGER_MS       1000u  /* a stream may stay open this long after its response */
#define MCP_HTTP_RETRY_MS        1000u  /* before a broken stream is resumed … */
#define MCP_HTTP_RETRY_MAX_MS    60000u /* … doubled each time without an event, up to this */
#define MCP_HTTP_RETRY_DOUBLINGS 6u
#define MCP_HTTP_RESUMES_MAX     5u    /* in a row without an event */
#define MCP_HTTP_SESSION_BYTES   1024u /* of a session's id */
#define MCP_HTTP_QUOTED_BYTES    200u  /* of an error's body */
#define MCP_HTTP_REQUESTS_MAX    64u   /* of the server, within its answer to one of ours */
#define MCP_HTTP_REPLIES_MAX     256u  /* answers to its requests that wait to be posted */

/* One message to the server and its response. */
struct exchange {
    struct mcp_transport *transport;
    LIST_ENTRY(exchange) entry;
    struct arena *arena; /* of its strings */
    uint64_t id;         /* 0: no request */
    const char *method;  /* "": a response */
    struct str message;
    struct name_values headers; /* of the message */
    struct fetch *fetch;        /* NULL: waits for a session, for its next try, or to report a failure */
    struct timer timer;
    struct buf body;
    struct sse sse;
    int status;
    int64_t after_s;
    char type[64], redirect[256], failure[FETCH_WHY_MAX_BYTES];
    char quoted[MCP_HTTP_QUOTED_BYTES + 1]; /* of an error's body */
    unsigned resumes;                       /* in a row without an event */
    bool streams;                           /* the response comes as events */
    bool answered;
    bool challenged;   /* the answer has WWW-Authenticate: a 401 is about credentials */
    bool renewed;      /* it has already had its second session, or its second token */
    bool renews;       /* part of renewing the session: the client does not see it */
    unsigned requests; /* of the server, so far in this response */
    bool is_reply;     /* our answer to a request of the server: one after the other, see `replies` */
    TAILQ_ENTRY(exchange) reply;
};

/* The GET stream of messages that belong to no request. */
struct mcp_listener {
    struct fetch *fetch;
    struct timer timer;
    struct sse sse;
    unsigned failures; /* in a row without an event */
    bool on, streams, refused;
};

struct mcp_transport {
    struct loop *loop;
    const struct upstream_spec *spec;
    const struct mcp_transport_hooks *hooks;
    void *owner;
    struct arena *settings; /* of the expanded strings; NULL: not open */
    struct secrets secrets;
    const char *url, *ca_file;
    struct name_values headers;
    struct buf session, initialize; /* the session's id; the message that began it */
    uint64_t initialize_id;
    char version[32];
    bool modern, renewing;
    LIST_HEAD(, exchange) exchanges;
    TAILQ_HEAD(, exchange)
    replies; /* the first is being posted: a server that asks a lot gets one connection */
    unsigned reply_count;
    struct timer next_reply;
    struct exchange *delivering; /* NULL again if a hook has freed it */
    struct mcp_listener listener;
    struct fetch *closing; /* DELETE */
    struct timer later;
    char why[FETCH_WHY_MAX_BYTES], quoted[MCP_HTTP_QUOTED_BYTES + 1]; /* for `closed` */
};

/* mcp_http.c */
/* With the headers of the spec, the protocol and the session, and `more`. */
struct fetch_request mcp_http_request(struct mcp_transport *t, struct arena *arena, const char *method,
                                      struct name_values more);
/* Expands the headers again; true: a token was renewed, and the new one is used from now on. */
bool mcp_http_reload_headers(struct mcp_transport *t);
/* Passes a message to the client, with our secrets redacted. */
void mcp_http_deliver(struct mcp_transport *t, uint64_t about, struct str text);
/* `opened` fires in the next turn, or `closed` if there is a `why`; the first report wins. */
void mcp_http_report_later(struct mcp_transport *t, const char *why, const char *quoted);
/* Before a broken stream is resumed: what the server asked for, or MCP_HTTP_RETRY_MS, doubled. */
uint32_t mcp_http_retry_ms(const struct sse *sse, unsigned doublings);
void mcp_http_listen_start(struct mcp_transport *t);
void mcp_http_listen_stop(struct mcp_transport *t);

/* mcp_http_exchange.c */
struct exchange *exchange_new(struct mcp_transport *t, const struct mcp_outgoing *outgoing);
/* A reply waits for those before it, and everything for a session that is being renewed. */
void exchange_post_if_due(struct exchange *x);
void exchange_free(struct exchange *x);

#endif

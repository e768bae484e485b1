/* What mcp_http.c and mcp_exchange.c share. No other file includes this header. */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_HTTP_INTERNAL_H
#define TOOLGATE_UPSTREAM_MCP_MCP_HTTP_INTERNAL_H

#include "io/timer.h"
#include "upstream/http/fetch.h"
#include "upstream/http/sse.h"
#include "upstream/mcp/mcp_transport.h"
#include "upstream/secrets.h"

#include <sys/queue.h>

#define MCP_HTTP_QUOTED_BYTES 200u /* of an error's body */

/* One message to the server and its response, or the GET stream of messages that belong to no request: a
 * stream that is only ever resumed. */
struct exchange {
    struct mcp_transport *transport;
    LIST_ENTRY(exchange) entry;
    struct arena *arena; /* of its strings */
    uint64_t id;         /* 0: no request */
    const char *method;  /* "": a response, or the GET stream */
    bool listens;        /* it is the GET stream */
    struct str message;
    struct name_values headers; /* of the message */
    struct fetch *fetch;        /* NULL: waits for a session, for its next try, or to report a failure */
    struct timer timer;
    struct buf body;
    struct sse sse;
    int status;
    int64_t after_s;
    char type[64], redirect[FETCH_REDIRECT_BYTES + 1], failure[FETCH_WHY_MAX_BYTES];
    char quoted[MCP_HTTP_QUOTED_BYTES + 1]; /* of an error's body */
    unsigned resumes;                       /* in a row without an event */
    bool streams;                           /* the response comes as events */
    bool begun;                             /* some of its body has come */
    bool answered;
    bool challenged;   /* the answer has WWW-Authenticate: a 401 is about credentials */
    bool renewed;      /* it has already had its second session, or its second token */
    bool renews;       /* part of renewing the session: the client does not see it */
    unsigned requests; /* of the server, so far in this response */
    bool is_reply;     /* our answer to a request of the server: one after the other, see `replies` */
    bool is_notice;
    TAILQ_ENTRY(exchange) reply;
};

struct mcp_transport {
    struct loop *loop;
    const struct upstream_spec *spec;
    struct mcp_client *client;
    struct arena *settings; /* of the expanded strings */
    struct secrets secrets;
    const char *url, *ca_file;
    struct name_values headers;
    struct buf session, initialize; /* the session's id; the message that began it */
    uint64_t initialize_id;
    char version[32];
    bool modern, renewing, closed;
    LIST_HEAD(, exchange) exchanges;
    TAILQ_HEAD(, exchange)
    replies; /* the first is being posted: a server that asks a lot gets one connection */
    unsigned reply_count, notice_count;
    struct timer next_reply;
    struct exchange *delivering; /* NULL again if a hook has freed it */
    struct exchange *listener;   /* the GET stream; NULL: none */
    struct fetch *closing;       /* DELETE */
    struct timer later;
    char why[FETCH_WHY_MAX_BYTES], quoted[MCP_HTTP_QUOTED_BYTES + 1]; /* for `closed` */
};

/* mcp_exchange.c */
struct exchange *exchange_new(struct mcp_transport *transport, const struct mcp_outgoing *outgoing);
void exchange_post_if_due(struct exchange *exchange);
void exchange_free(struct exchange *exchange); /* reports nothing */

/* mcp_http.c */
bool mcp_http_reload_headers(struct mcp_transport *transport);
struct fetch *mcp_http_fetch(struct mcp_transport *transport, struct fetch_request request,
                             const struct fetch_hooks *hooks, void *owner, struct why *why);
void mcp_http_report_later(struct mcp_transport *transport, const char *why, const char *quoted);
void mcp_http_pass_on(struct mcp_transport *transport, uint64_t about, struct str text);

#endif

/*
 * What the files stream*.c share: the transport, one message on its way
 * (mcp_http_exchange.c), the stream of what the server says by itself
 * (mcp_http_listen.c). Only they include it.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_HTTP_INTERNAL_H
#define TOOLGATE_UPSTREAM_MCP_MCP_HTTP_INTERNAL_H

#include "base/buf.h"
#include "io/timer.h"
#include "upstream/http/fetch.h"
#include "upstream/mcp/mcp_header_mapping.h"
#include "upstream/secrets.h"
#include "upstream/http/sse.h"
#include "upstream/mcp/mcp_transport.h"

#define STREAM_NOTE_MS       30000u /* of a message that is no request */
#define STREAM_CLOSE_MS      2000u  /* of taking leave */
#define STREAM_LINGER_MS     1000u  /* a stream whose answer has come may stay open; then it is closed */
#define STREAM_RETRY_MS      1000u  /* before a stream that broke off is asked for again … */
#define STREAM_RETRY_MAX_MS  60000u /* … doubled with each that brought nothing, up to this */
#define STREAM_BARREN_MAX    6u     /* doublings; a server may ask for a longer pause from the beginning */
#define STREAM_RESUMES_MAX   5u     /* in a row without an event: the answer is given up */
#define STREAM_SESSION_BYTES 1024u  /* of a session's id */
#define STREAM_QUOTED_BYTES  200u   /* of what an error's body says */

/* One message to the server and what comes of it. */
struct exchange {
    struct mcp_transport *transport;
    struct exchange *next, *previous;
    uint64_t id; /* 0: no request */
    char method[48];
    struct buf name, message;
    struct fetch *fetch; /* NULL: waits for a session, for its next try, or to be told why not */
    struct timer timer;
    struct buf body;
    struct sse sse;
    int status;
    int64_t after_s;
    char type[64], redirect[256], trouble[FETCH_WHY_MAX_BYTES];
    char says[STREAM_QUOTED_BYTES + 1]; /* what an error's body says: the server's words */
    unsigned resumes;                   /* in a row without an event */
    bool streams;                       /* the answer comes as events */
    bool answered;
    bool renewed; /* it has had its second session, or its second token */
    bool ours;    /* of renewing the session: nobody else hears of it */
};

/* What the server says by itself: GET. */
struct mcp_listener {
    struct fetch *fetch;
    struct timer timer;
    struct sse sse;
    unsigned barren; /* in a row without an event */
    bool on, streams, refused;
};

struct mcp_transport {
    struct loop *loop;
    const struct upstream_spec *spec;
    const struct mcp_transport_hooks *hooks;
    void *owner;
    struct arena *settings; /* NULL: not open. What the spec's texts are, filled in */
    struct secrets secrets; /* of them */
    const char *url, *ca_file;
    struct name_values headers;
    struct buf session, initialize;
    uint64_t initialize_id;
    char version[32];
    struct header_mapping mirror; /* modern: which arguments go into headers */
    bool modern, renewing;
    struct exchange *exchanges;
    struct exchange *telling; /* NULL again where it was forgotten inside a hook */
    struct mcp_listener listening;
    struct fetch *leaving; /* DELETE */
    struct timer later;
    char why[FETCH_WHY_MAX_BYTES], says[STREAM_QUOTED_BYTES + 1]; /* for `later`: ours, the server's */
};

/* The request's headers: of the spec, the protocol and the session, beside `more`. mcp_http.c */
struct fetch_request mcp_http_request(struct mcp_transport *t, struct arena *arena, const char *method,
                                      struct name_values more);
/* Looks at variables and files of the headers again: true, and they are sent from now on, where they say
 * something else than before, as they do when a token was renewed. mcp_http.c */
bool mcp_http_reload_headers(struct mcp_transport *t);
/* Hands a text of the server to whoever waits, its echoes of our secrets hidden. mcp_http.c */
void mcp_http_deliver(struct mcp_transport *t, uint64_t about, struct str text);
/* It is over; `why`, and in its own words `says`, are told with the next turn. mcp_http.c */
void mcp_http_close_later(struct mcp_transport *t, const char *why, const char *says);

struct exchange *exchange_new(struct mcp_transport *t, uint64_t id, const char *method, struct str name,
                              struct str message);
void exchange_post(struct exchange *x);
void exchange_free(struct exchange *x);

/* The session is gone: begins another and then sends `x` again; all others wait. mcp_http_session.c */
void mcp_http_session_renew(struct exchange *x);
/* An answer to a question of our own while a session is renewed. mcp_http_session.c */
void mcp_http_session_response(struct exchange *x, struct str text);
/* The same for none. mcp_http_session.c */
void mcp_http_session_failed(struct mcp_transport *t, const char *why, const char *says);

/* Nobody will answer it: tells so, in our words, with its `says` beside them, and is gone.
 * mcp_http_exchange.c */
void exchange_fail(struct exchange *x, enum upstream_outcome how, const char *code, int64_t after_s,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

void mcp_http_listen_start(struct mcp_transport *t);
void mcp_http_listen_stop(struct mcp_transport *t);

#endif

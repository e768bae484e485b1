/*
 * A small HTTP server for operators: it answers each connection's first request and closes. On a Unix socket
 * or a loopback address, on the daemon's own loop, where each request waits for its turn (io/turn.h).
 *
 *   accept ─▶ head ─▶ body ─▶ handler ─▶ http_reply ─▶ sent ─▶ wait for the peer's end ─▶ close
 *             └───── HTTP_DEADLINE_MS ─────┘          └──── HTTP_DEADLINE_MS ────┘
 *
 * libevent's evhttp is not used: it closes a peer that is silent, not one that sends or reads a byte now and
 * then; it copies the reply for each connection; and it has no limit of connections before libevent 2.2.
 */
#ifndef TOOLGATE_IO_HTTP_LISTENER_H
#define TOOLGATE_IO_HTTP_LISTENER_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/socket.h>

struct http_exchange;
struct http_listener;
struct loop;

#define HTTP_CONNECTIONS_MAX 1024u  /* open at a time; one user alone gets half */
#define HTTP_BACKLOG         4096   /* of connections that wait */
#define HTTP_HEAD_MAX_BYTES  8192u  /* request line and headers of a request */
#define HTTP_BODY_MAX_BYTES  65536u /* of a request */
#define HTTP_DEADLINE_MS     5000u  /* to send a request; and to read the reply */
#define HTTP_LINGER_MS       1000u  /* from the reply until the peer closes, at most */
#define HTTP_SOCKET_MODE     0660

/* Where to listen. */
struct http_address {
    bool is_unix;
    char text[160]; /* as configured: "127.0.0.1:9464", "unix:/run/toolgate/metrics.sock" */
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
    } at; /* of TCP */
};

/* "unix:PATH", or ADDRESS:PORT with a loopback address (127.0.0.0/8, [::1], localhost). `why` has the fix. */
enum err http_address_parse(struct str text, struct http_address *out, struct why *why);

/* Bytes that several replies share; they are freed with the last reference. */
struct http_text;
struct http_text *http_text_new(struct buf *take); /* empties `take`, which is on the heap */
struct http_text *http_text_ref(struct http_text *text);
void http_text_unref(struct http_text *text); /* may be NULL */

struct http_reply {
    unsigned status;
    const char *content_type;
    const char *headers;    /* further ones, each with "\r\n"; NULL: none */
    struct http_text *text; /* the reference passes to the reply */
};

/* ---- requests, read without I/O or allocation ---- */

struct http_request {
    struct str method, path, query; /* of "/x?a=1": "/x", "a=1"; not decoded */
    unsigned minor;                 /* HTTP/1.minor */
    bool has_host, has_origin;
    struct str host, origin, authorization, content_type; /* empty: not sent */
    bool has_length;
    size_t length;   /* of the body */
    struct str body; /* set by the listener */
};

/* False: no whole number of at most `digits` digits. */
bool http_read_number(struct str text, size_t digits, size_t *out);

/* The length of the head with its empty line; 0: `bytes` do not have all of it yet. */
size_t http_head_length(struct str bytes);

/* Reads a head that http_head_length has measured, without unescaping anything. 0, or the status of the
 * refusal (400, 501, 505), and `why` says what is wrong. Borrows from `head`. */
unsigned http_request_parse(struct str head, struct http_request *out, const char **why);

/* Must call http_reply exactly once before it returns. The request is valid until then. */
typedef void http_handler(void *owner, struct http_exchange *exchange, const struct http_request *request);
void http_reply(struct http_exchange *exchange, const struct http_reply *reply);

/* The same with one line of plain text. */
void http_reply_text(struct http_exchange *exchange, unsigned status, const char *headers, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* `why` names the fix, for example of a port in use. */
enum err http_listener_new(struct loop *loop, const struct http_address *address, http_handler *handler,
                           void *owner, struct http_listener **out, struct why *why);

/* Requests from now on go to this handler. */
void http_listener_set_handler(struct http_listener *listener, http_handler *handler, void *owner);

/* Closes every connection, too. NULL is allowed. */
void http_listener_free(struct http_listener *listener);

const struct http_address *http_listener_address(const struct http_listener *listener);

struct http_listener_counts {
    size_t open;
    uint64_t accepted, refused, timed_out; /* refused: answered with a status from 400 on */
    uint64_t over_share; /* closed at once: their user has as many as leaves others theirs */
};
const struct http_listener_counts *http_listener_counts(const struct http_listener *listener);

#endif

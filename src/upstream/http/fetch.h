/*
 * An HTTP client on the loop: one request and its answer, over connections
 * that are kept and shared, with verified TLS and the proxies of the
 * environment. Its error sentences hold no header values and nothing of a URL
 * after its host.
 *
 * A redirect is followed only to the same scheme, host and port, at most
 * FETCH_REDIRECTS_MAX times (307 and 308 for any method, others for GET and
 * HEAD), since the request may hold secrets meant for one host. Any other
 * redirect is reported like an answer.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_FETCH_H
#define TOOLGATE_UPSTREAM_HTTP_FETCH_H

#include "base/err.h"
#include "upstream/upstream_spec.h"

struct fetch;
struct loop;

#define FETCH_CONNECT_MS        10000u /* until connected, TLS included */
#define FETCH_HEADERS_MAX       100u   /* of an answer … */
#define FETCH_HEADERS_MAX_BYTES 65536u /* … and their sum, with those of 1xx before it */
#define FETCH_REDIRECTS_MAX     3u
#define FETCH_REDIRECT_BYTES    200u /* of an address in an error */
#define FETCH_WHY_MAX_BYTES     512u
#define FETCH_IDLE_CONNECTIONS  32L /* kept open, to all hosts together */
#define FETCH_AFTER_MAX_S       86400

struct fetch_request { /* copied by fetch_start */
    const char *method;
    const char *url; /* http or https */
    struct name_values headers;
    struct str body;
    bool has_body;
    bool repeatable;     /* may be resent if a kept connection turns out to be closed: GET, PUT … */
    uint32_t total_ms;   /* 0: no timeout, for streams */
    const char *ca_file; /* NULL: the system's authorities */
    size_t body_max;     /* of the answer */
};

struct fetch_head {
    int status;
    const struct name_value *headers; /* names in lower case */
    size_t count;
    int64_t after_s;     /* Retry-After in seconds, at most FETCH_AFTER_MAX_S; -1: none */
    struct str redirect; /* where a redirect leads that is not followed, without query and uncut: it may
                          * repeat a secret of the address; else empty */
};
struct str fetch_header(const struct fetch_head *head, const char *name); /* STR_NONE: it was not sent */

enum fetch_outcome {
    FETCH_DONE,
    FETCH_UNREACHABLE,   /* no connection, no TLS, no such host: nothing was sent */
    FETCH_MISCONFIGURED, /* a certificate or an address that only the operator can fix: nothing was sent */
    FETCH_TIMEOUT,
    FETCH_DISCONNECTED, /* after it was sent: closed, reset, incomplete */
    FETCH_TOO_LARGE,    /* more than body_max, or too many headers */
    FETCH_NOT_HTTP
};

struct fetch_end {
    enum fetch_outcome how;
    bool sent;       /* the server may have seen the request */
    const char *why; /* a sentence without its full stop; empty if FETCH_DONE */
};

/* Each fires from the loop's turn, never inside a fetch_ function, with arguments valid during the call.
 * fetch_start and fetch_cancel may be called inside. `head` and `data` may be NULL. */
struct fetch_hooks {
    void (*head)(void *owner, const struct fetch_head *head);
    void (*data)(void *owner, struct str bytes);
    void (*done)(void *owner, const struct fetch_end *end); /* the last one: then the fetch is freed */
};

/* NULL: it could not start (libcurl is missing, the URL is invalid), see `why`; no hook fires. */
struct fetch *fetch_start(struct loop *loop, const struct fetch_request *request,
                          const struct fetch_hooks *hooks, void *owner, struct why *why);
/* Aborts and frees it; no hook fires any more. */
void fetch_cancel(struct fetch *fetch);

/* "https://api.example.com": scheme, host and port. STR_NONE: no http URL, or one with user and password. */
struct str fetch_origin(struct str url);

/* The name is a token, and the value holds no control character. */
bool fetch_header_is_safe(struct str name, struct str value);

/* ERR_UNAVAILABLE: libcurl is missing, and `why` names the package. */
enum err fetch_check_library(struct why *why);

#endif

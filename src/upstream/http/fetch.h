/*
 * One HTTP request and its answer, on the loop: connections kept and shared,
 * TLS verified, proxies as the environment says (libcurl's business). Knows
 * nothing of what is asked. Its errors are in words, and hold neither values
 * of headers nor anything of an address behind its path.
 *
 * A redirect is followed to the very same scheme, host and port (3 times at most;
 * 307 and 308 as they are, others for GET and HEAD only) and nowhere else: what
 * goes out may hold secrets that were given for one host. Other redirects come
 * as the answer that they are, with where they lead.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_FETCH_H
#define TOOLGATE_UPSTREAM_HTTP_FETCH_H

#include "base/err.h"
#include "upstream/upstream_spec.h"

struct fetch;
struct loop;

#define FETCH_CONNECT_MS        10000u /* until connected, TLS included */
#define FETCH_HEADERS_MAX       100u   /* of an answer … */
#define FETCH_HEADERS_MAX_BYTES 65536u /* … and their sum */
#define FETCH_REDIRECTS_MAX     3u
#define FETCH_WHY_MAX_BYTES     512u
#define FETCH_IDLE_CONNECTIONS  32L /* kept open for the next requests, all hosts together */

struct fetch_request { /* copied by fetch_start */
    const char *method;
    const char *url; /* http or https, nothing else */
    struct name_values headers;
    struct str body;
    bool has_body;
    bool repeatable;     /* may be sent again where a kept connection turns out to be gone: GET, PUT … */
    uint32_t total_ms;   /* all of it; 0: no end, for streams */
    uint32_t connect_ms; /* 0: FETCH_CONNECT_MS */
    const char *ca_file; /* NULL: the system's */
    size_t body_max;     /* of the answer */
};

#define FETCH_AFTER_MAX_S 86400

struct fetch_head {
    int status;
    const struct name_value *headers; /* names in lower case */
    size_t count;
    int64_t after_s;     /* Retry-After, in seconds, FETCH_AFTER_MAX_S at most; -1: not told */
    struct str redirect; /* a redirect that is not followed: where to, for messages: without query, and up to
                            the first sign that an address does not have; else empty */
};
struct str fetch_header(const struct fetch_head *head, const char *name); /* STR_NONE: there is none */

enum fetch_outcome {
    FETCH_DONE,        /* the answer is whole */
    FETCH_UNREACHABLE, /* no connection, no TLS, no such host: nothing was sent */
    FETCH_TIMEOUT,
    FETCH_DISCONNECTED, /* after it was sent: closed, reset, less than was announced */
    FETCH_TOO_LARGE,    /* more than body_max, or too many headers */
    FETCH_NOT_HTTP      /* what came is no HTTP */
};

struct fetch_end {
    enum fetch_outcome how;
    bool sent;       /* the request may have been seen there */
    const char *why; /* one sentence without an end, for people; empty where it is done */
};

/* Each fires from the loop's turn, never inside a fetch_ function, valid during the call; `done` is the last.
 * fetch_start and fetch_cancel may be called inside each. */
struct fetch_hooks {
    void (*head)(void *owner, const struct fetch_head *head);
    void (*data)(void *owner, struct str bytes);
    void (*done)(void *owner, const struct fetch_end *end); /* the fetch is freed when it returns */
};

/* NULL: it could not begin (libcurl is missing, the address is none), and `why` says so; no hook fires. */
struct fetch *fetch_start(struct loop *loop, const struct fetch_request *request,
                          const struct fetch_hooks *hooks, void *owner, struct why *why);
/* No hook fires any more; what is under way is broken off. */
void fetch_cancel(struct fetch *fetch);

/* scheme, host and port of an address, for messages: "https://api.example.com". Never user, path or query. */
struct str fetch_origin(struct str url);

/* Whether a name and a value may go into a header: no line breaks, no other control characters. */
bool fetch_header_is_safe(struct str name, struct str value);

#endif

/* What fetch.c (libcurl on our loop, reporting) and fetch_transfer.c (one request in libcurl) share. */
#ifndef TOOLGATE_UPSTREAM_HTTP_FETCH_INTERNAL_H
#define TOOLGATE_UPSTREAM_HTTP_FETCH_INTERNAL_H

#include "base/buf.h"
#include "io/timer.h"
#include "upstream/http/curl.h"
#include "upstream/http/fetch.h"

#include <sys/queue.h>

/* Of one loop. */
struct fetcher {
    struct loop *loop;
    const struct curl_library *curl;
    CURLM *multi;
    struct timer timer;
    LIST_HEAD(, fetch) all;
    TAILQ_HEAD(, fetch) pending; /* with something to report */
    struct fetch *reporting;     /* NULL again if its hook has cancelled it */
};

struct fetch {
    struct fetcher *fetcher;
    LIST_ENTRY(fetch) entry;
    TAILQ_ENTRY(fetch) pending_entry;
    struct arena *arena;
    CURL *easy;
    struct curl_slist *lines;
    const struct fetch_hooks *hooks;
    void *owner;
    struct fetch_request request;
    char error[CURL_ERROR_SIZE];
    /* of the answer */
    struct name_value headers[FETCH_HEADERS_MAX];
    size_t header_count, header_bytes, body_bytes;
    struct buf bytes; /* not reported yet */
    enum fetch_outcome how;
    char why[FETCH_WHY_MAX_BYTES];
    unsigned redirects;
    const char *redirect_to; /* followed at the end of this answer; NULL: none */
    bool is_pending, reported_head, has_head, over, sent, refused_repeat, too_large;
};

/* It has something to report, once libcurl has returned. */
void fetch_mark_pending(struct fetch *f);

/* Gives the request to libcurl, which begins with the next turn. False: it accepts no more. */
bool fetch_transfer_start(struct fetch *f);

#endif

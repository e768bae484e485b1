/* What http_client.c (libcurl on our loop, telling) and http_transfer.c (one request) share. Only they
 * include this.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_FETCH_INTERNAL_H
#define TOOLGATE_UPSTREAM_HTTP_FETCH_INTERNAL_H

#include "base/buf.h"
#include "io/timer.h"
#include "upstream/http/curl.h"
#include "upstream/http/fetch.h"

struct fetcher {
    struct loop *loop;
    const struct curl_library *curl;
    CURLM *multi;
    struct timer timer;
    struct fetch *all, *news; /* news: something to tell */
    struct fetch *telling;    /* NULL again where it was cancelled inside its hook */
};

struct fetch {
    struct fetcher *fetcher;
    struct fetch *next, *previous, *next_news;
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
    struct buf bytes; /* not told yet */
    enum fetch_outcome how;
    char why[FETCH_WHY_MAX_BYTES];
    unsigned redirects;
    const char *follows; /* where the redirect that has come leads to; NULL: there is none */
    bool repeatable, is_news, told_head, has_head, over, sent, refused_repeat, too_large;
};

/* It has something to tell, once libcurl has returned. */
void fetch_mark_pending(struct fetch *f);

/* What it is to ask goes to libcurl, which begins with the next turn. False: it took no more. */
bool fetch_transfer_start(struct fetch *f);

#endif

/*
 * The head of one HTTP/1 request, as far as a read-only endpoint needs it. Pure: no I/O, nothing is
 * allocated.
 */
#ifndef TOOLGATE_IO_HTTP_REQUEST_H
#define TOOLGATE_IO_HTTP_REQUEST_H

#include "base/str.h"

#define HTTP_HEAD_MAX_BYTES 8192u /* request line and headers */

struct http_request {
    struct str method, path, query; /* of "/x?a=1": "/x", "a=1"; not decoded */
    unsigned minor;                 /* HTTP/1.minor */
    bool has_host, has_origin;
    struct str host, origin, authorization, content_type; /* empty: not sent */
    bool has_length;
    size_t length;   /* of the body */
    struct str body; /* set by http_listener.c */
};

/* The length of the head with its empty line; 0: `bytes` do not have all of it yet. */
size_t http_head_length(struct str bytes);

/* Reads a head that http_head_length has measured, without unescaping anything. 0, or the status of the
 * refusal (400, 411, 501, 505), and `why` says what is wrong. Borrows from `head`. */
unsigned http_request_parse(struct str head, struct http_request *out, const char **why);

#endif

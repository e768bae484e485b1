/*
 * Server-sent events, parsed as the bytes arrive: the WHATWG event stream (CR,
 * LF and CRLF, comments, data of several lines, id, retry, byte order mark),
 * bounded. Knows nothing of what the events mean.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_SSE_H
#define TOOLGATE_UPSTREAM_HTTP_SSE_H

#include "base/buf.h"

#define SSE_ID_MAX_BYTES   1024u  /* a longer id is ignored: it has to go into a header */
#define SSE_TYPE_MAX_BYTES 64u    /* a longer type is ignored */
#define SSE_RETRY_MAX_MS   60000u /* upper bound of the delay that a server may ask for */

struct sse_event {
    struct str type; /* "message" by default */
    struct str data; /* may be empty */
};

struct sse {
    size_t max;            /* bytes of one line, and of one event's data */
    struct buf line, data; /* not complete yet */
    struct buf type, id;   /* id: the last one, perhaps of an incomplete event */
    struct buf last_id;    /* of complete events */
    bool has_data, ended;  /* ended: the event in `data` was returned */
    bool after_cr;         /* a LF that follows belongs to it */
    bool has_begun;        /* the first line, which may begin with a byte order mark, is complete */
    bool too_long;
    uint32_t retry_ms; /* that the server asked for; 0: none */
};

enum sse_result { SSE_EVENT, SSE_MORE, SSE_TOO_LONG };

/* `max`: bytes of one line and of one event's data. */
void sse_init(struct sse *sse, size_t max);
void sse_clear(struct sse *sse);
/* The stream goes on over a new connection: drops an incomplete event, keeps last id and retry. */
void sse_restart(struct sse *sse);

/* Takes from the front of *bytes up to the end of an event, which is valid until the next call. SSE_MORE: all
 * bytes are taken. SSE_TOO_LONG: the stream is unusable from now on. */
enum sse_result sse_next(struct sse *sse, struct str *bytes, struct sse_event *event);

/* For Last-Event-ID; empty: the server gave none. */
struct str sse_last_id(const struct sse *sse);

#endif

/*
 * Server-sent events, taken apart as the bytes come: the WHATWG's event
 * stream (CR, LF and CRLF, comments, data of several lines, id, retry, a byte
 * order mark), bounded. Knows nothing of what the events say.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_SSE_H
#define TOOLGATE_UPSTREAM_HTTP_SSE_H

#include "base/buf.h"

#define SSE_ID_MAX_BYTES   1024u  /* a longer id is as none: it is to go into a header */
#define SSE_TYPE_MAX_BYTES 64u    /* a longer type is as none */
#define SSE_RETRY_MAX_MS   60000u /* at most so long a server may have us wait before we come again */

struct sse_event {
    struct str type; /* "message" where none is named */
    struct str data; /* may be empty */
};

struct sse {
    size_t max;            /* bytes of one line, and of one event's data */
    struct buf line, data; /* as far as they have come */
    struct buf type, id;   /* id: the last that was given, also by an event that is still coming */
    struct buf last_id;    /* of events that have ended */
    bool has_data, ended;  /* ended: the event in `data` was handed out */
    bool after_cr;         /* a LF that follows belongs to it */
    bool begun;            /* the first line is behind us, and with it the mark it may begin with */
    bool bad;
    uint32_t retry_ms; /* what the server asked for; 0: nothing */
};

enum sse_result { SSE_EVENT, SSE_MORE, SSE_TOO_LONG };

/* `max`: bytes of one line and of one event's data. */
void sse_init(struct sse *sse, size_t max);
void sse_clear(struct sse *sse);
/* The same stream on a new connection: half an event is forgotten; last id and retry stay. */
void sse_restart(struct sse *sse);

/* Takes from the front of *bytes up to the end of an event, which is valid until the next call; SSE_MORE: all
 * are taken and none has ended. After SSE_TOO_LONG the stream is of no more use. */
enum sse_result sse_next(struct sse *sse, struct str *bytes, struct sse_event *event);

/* Where to go on from (Last-Event-ID); empty: the server gave none. */
struct str sse_last_id(const struct sse *sse);

#endif

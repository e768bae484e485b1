/*
 * One span as OTLP's JSON: ids in hex, times as strings of nanoseconds, enums as numbers. It is written
 * straight into the batch that will be sent; nothing keeps a span.
 */
#ifndef TOOLGATE_TRACES_SPAN_H
#define TOOLGATE_TRACES_SPAN_H

#include "base/trace_context.h"
#include "json/write.h"

/* OTLP's numbers. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 };

#define SPAN_TEXT_MAX_BYTES 256u /* of a name or an attribute's value; longer ones are cut */

struct span_id {
    char digits[TRACE_SPAN_ID_DIGITS]; /* lower case; the first is NUL: none */
};

static inline struct str span_id_str(const struct span_id *id)
{
    return id->digits[0] ? (struct str){id->digits, sizeof(id->digits)} : STR_NONE;
}

struct span {
    struct str trace_id; /* TRACE_ID_DIGITS */
    struct span_id id;
    struct str parent; /* a span's id; empty: this is the trace's first one */
    struct str trace_state;
    uint8_t flags;         /* of the trace */
    bool parent_is_remote; /* it came with the request */
    struct str name;
    enum span_kind kind;
    int64_t start_ns, end_ns; /* since 1970 */
    struct str error;         /* the attribute error.type, and the status; empty: no error */
};

/* Attributes go between the two; the error is written by the second. */
void span_open(struct json_out *out, const struct span *span);
void span_put_str(struct json_out *out, const char *key, struct str value); /* empty: left out */
void span_put_int(struct json_out *out, const char *key, int64_t value);
void span_close(struct json_out *out, const struct span *span);

#endif

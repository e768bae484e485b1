/* Sends spans to an OpenTelemetry collector: OTLP over HTTP as JSON, in batches (README.md). */
#ifndef TOOLGATE_TRACES_SPAN_EXPORTER_H
#define TOOLGATE_TRACES_SPAN_EXPORTER_H

#include "base/trace_context.h"
#include "json/write.h"
#include "upstream/upstream_spec.h"

struct loop;
struct span_exporter;

/* ---- one span, written straight into the batch that will be sent; nothing keeps it ---- */

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
void span_put_double(struct json_out *out, const char *key, double value);
void span_close(struct json_out *out, const struct span *span);

/* ---- the exporter ---- */

#define SPANS_BATCH_BYTES   524288u /* a batch is sent when it has this many … */
#define SPANS_BATCH_MS      1000u   /* … or is so old, if the configuration has no traces.batch */
#define SPANS_BATCH_MIN_MS  10u     /* of traces.batch */
#define SPANS_BATCH_MAX_MS  60000u
#define SPANS_QUEUE_BATCHES 16u    /* beside the one that is being filled: 8 MiB in all */
#define SPANS_TIMEOUT_MS    10000u /* of one request */
#define SPANS_RETRY_MS      1000u  /* after a failure, doubled each time … */
#define SPANS_RETRY_MAX_MS  60000u /* … up to this */
#define SPANS_FLUSH_MS      2000u  /* at the end of the daemon */

/* Borrowed from the configuration. */
struct span_export {
    struct str endpoint; /* empty: no spans are made. Secrets in it and in the headers are expanded
                            whenever a batch is sent */
    struct name_values headers;
    struct str ca_file; /* empty: the system's authorities */
    struct str service_name;
    double sample;     /* of the traces that begin here, 0 to 1 */
    uint32_t batch_ms; /* a batch is sent at this age; 0: SPANS_BATCH_MS */
};

struct span_exporter *span_exporter_new(struct loop *loop);
/* After each load of a configuration; copies what it needs. */
void span_exporter_configure(struct span_exporter *exporter, const struct span_export *export);
void span_exporter_free(struct span_exporter *exporter);

bool span_exporter_is_on(const struct span_exporter *exporter);

/* Whether to record a call, by the flags of the client's traceparent (empty: it sent none) or by chance. What
 * follows from `call`, the number that a check and its report share, is the same for both, in any daemon. */
bool span_exporter_samples(const struct span_exporter *exporter, struct str traceparent, uint64_t call);
/* The ids of a trace that begins with the call, and of its first span. */
void span_ids_of_call(uint64_t call, char trace_id[TRACE_ID_DIGITS], struct span_id *id);
struct span_id span_exporter_new_id(struct span_exporter *exporter);

/* Where the `count` spans of one call are written, as values of an array; NULL: they are dropped, and
 * counted. span_exporter_end follows. */
struct json_out *span_exporter_begin(struct span_exporter *exporter, size_t count);
void span_exporter_end(struct span_exporter *exporter);

/* Sends what there is without waiting for more; true: nothing is left, or the last try has failed. */
bool span_exporter_flush(struct span_exporter *exporter);

/* "traces":{…} for toolgate/status; nothing if it is off. */
void span_exporter_write_status(struct json_out *out, const struct span_exporter *exporter);

#endif

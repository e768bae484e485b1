/* The field names of opentelemetry/proto/trace/v1/trace.proto in their JSON form. */
#include "traces/span.h"

#include <inttypes.h>
#include <stdio.h>

#define FLAGS_REMOTE_KNOWN 0x100 /* SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK */
#define FLAGS_REMOTE       0x200 /* SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK */
#define STATUS_ERROR       2

static void put_digits(struct json_out *out, const char *key, int64_t ns)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRId64, ns);
    json_field_text(out, key, digits);
}

void span_open(struct json_out *out, const struct span *span)
{
    int64_t flags = span->flags | (span->parent.len ? FLAGS_REMOTE_KNOWN : 0) |
                    (span->parent_is_remote ? FLAGS_REMOTE : 0);
    json_open(out, '{');
    json_field_str(out, "traceId", span->trace_id);
    json_field_str(out, "spanId", span_id_str(&span->id));
    json_field_optional_str(out, "traceState", span->trace_state);
    json_field_optional_str(out, "parentSpanId", span->parent);
    json_field_int(out, "flags", flags);
    json_field_str(out, "name", str_cut(span->name, SPAN_TEXT_MAX_BYTES));
    json_field_int(out, "kind", span->kind);
    put_digits(out, "startTimeUnixNano", span->start_ns);
    put_digits(out, "endTimeUnixNano", span->end_ns < span->start_ns ? span->start_ns : span->end_ns);
    json_field_open(out, "attributes", '[');
}

static void open_attribute(struct json_out *out, const char *key)
{
    json_open(out, '{');
    json_field_text(out, "key", key);
    json_field_open(out, "value", '{');
}

static void close_attribute(struct json_out *out)
{
    json_close(out, '}');
    json_close(out, '}');
}

void span_put_str(struct json_out *out, const char *key, struct str value)
{
    if (!value.len)
        return;
    open_attribute(out, key);
    json_field_str(out, "stringValue", str_cut(value, SPAN_TEXT_MAX_BYTES));
    close_attribute(out);
}

void span_put_int(struct json_out *out, const char *key, int64_t value)
{
    open_attribute(out, key);
    put_digits(out, "intValue", value); /* 64 bits are strings in protobuf's JSON */
    close_attribute(out);
}

void span_close(struct json_out *out, const struct span *span)
{
    span_put_str(out, "error.type", span->error);
    json_close(out, ']');
    json_field_open(out, "status", '{');
    if (span->error.len)
        json_field_int(out, "code", STATUS_ERROR);
    json_close(out, '}');
    json_close(out, '}');
}

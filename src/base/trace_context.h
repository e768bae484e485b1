/*
 * W3C Trace Context and Baggage as they travel with a call: in MCP in params._meta (SEP-414), in HTTP as
 * headers, to a command as environment variables. The values are checked and passed on as they came; nothing
 * here parses what vendors put into tracestate or baggage.
 */
#ifndef TOOLGATE_BASE_TRACE_CONTEXT_H
#define TOOLGATE_BASE_TRACE_CONTEXT_H

#include "base/str.h"

#define TRACE_PARENT_BYTES      55u   /* of version 00 */
#define TRACE_PARENT_MAX_BYTES  256u  /* later versions may append fields */
#define TRACE_STATE_MAX_BYTES   8192u /* W3C wants at least 512 to be passed on */
#define TRACE_BAGGAGE_MAX_BYTES 8192u /* W3C Baggage */
#define TRACE_ID_DIGITS         32u
#define TRACE_SPAN_ID_DIGITS    16u

enum trace_key { TRACE_PARENT, TRACE_STATE, TRACE_BAGGAGE, TRACE_KEYS };

struct trace_context {
    struct str values[TRACE_KEYS]; /* empty: not given */
};

/* "traceparent", "tracestate", "baggage": the key in _meta, the header, and in upper case the variable. */
extern const struct str trace_key_names[TRACE_KEYS];

/* NULL: it can be passed on. Else what is wrong, as the end of "traceparent …". */
const char *trace_context_fault(enum trace_key key, struct str value);

/* Of a traceparent without fault. */
struct str trace_parent_trace_id(struct str traceparent);
struct str trace_parent_span_id(struct str traceparent);
uint8_t trace_parent_flags(struct str traceparent);

#define TRACE_FLAG_SAMPLED 1u

#endif

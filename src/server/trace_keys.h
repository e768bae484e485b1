/* traceparent, tracestate and baggage of params._meta, which MCP reserves for OpenTelemetry (SEP-414). */
#ifndef TOOLGATE_SERVER_TRACE_KEYS_H
#define TOOLGATE_SERVER_TRACE_KEYS_H

#include <stdbool.h>

struct json_member;
struct request;

/* False: the member is none of the three keys. Else it is kept in request->trace_context, or dropped with a
 * notice: a trace is never a reason to refuse a request. */
bool trace_keys_take(struct request *request, const struct json_member *member);

/* After all keys: a tracestate without its traceparent means nothing, and is dropped. */
void trace_keys_end(struct request *request);

#endif

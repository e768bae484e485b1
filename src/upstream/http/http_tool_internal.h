/* What http_tool.c (a call and its answer) and http_request.c (arguments to request) share;
 * mcp_http_exchange.c uses the reading of errors. */
#ifndef TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_INTERNAL_H
#define TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_INTERNAL_H

#include "base/buf.h"
#include "base/trace_context.h"
#include "upstream/http/fetch.h"
#include "upstream/http/http_tool.h"
#include "upstream/secrets.h"
#include "upstream/upstream_call.h"

struct http_call {
    struct arena *arena;
    const struct http_spec *spec;
    const struct upstream_spec *base; /* NULL: the spec has the whole URL */
    const struct json *arguments;
    const struct trace_context *trace; /* NULL: none */
    const char **used;                 /* keys of the arguments that URL, headers or query have taken */
    size_t used_count;
    struct secrets secrets; /* sent with the request, to be redacted in the answer */
    struct fetch_request request;
};

/* Fills in call->request. ERR_PARSE: an argument is at fault; other errors: a setting is. */
enum err http_request_build(struct http_call *call, struct why *why);

/* Adds a header for each value of `trace` (NULL: none) that `configured` does not set; returns how many, at
 * most TRACE_KEYS. */
size_t http_trace_headers(struct name_value *list, const struct trace_context *trace,
                          struct name_values configured);

struct http_failure {
    enum upstream_outcome outcome;
    const char *code;
};
extern const struct http_failure http_failures[]; /* by enum fetch_outcome */

bool http_response_is_transient(int status); /* a retry may succeed: 408, 425, 429, 5xx */

/* The message of an error's body: problem+json's detail, error.message, message …; STR_NONE: none. */
struct str http_response_error_message(struct arena *arena, struct str type, struct str body);

#endif

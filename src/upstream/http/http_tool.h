/*
 * An HTTP endpoint as a tool: arguments become a request, the answer becomes a
 * value. http_tool_call (upstream_call.h) runs a call; the first functions here
 * are for those who load policies, the last ones also for MCP over HTTP.
 *
 * GET, HEAD and DELETE put the arguments that the URL does not name into the
 * query (a list is repeated, an object is JSON, null is omitted). Other
 * methods put them into a JSON body, except those in `query`.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_H
#define TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_H

#include "base/err.h"
#include "upstream/http/fetch.h"
#include "upstream/upstream.h"

#define HTTP_TIMEOUT_MS 30000u    /* of one call, by default */
#define HTTP_BODY_BYTES 16777216u /* of an answer */
#define HTTP_URL_BYTES  8192u     /* as sent, with its query */

/* ERR_CONFIG: the spec can never make a request. */
enum err http_tool_check(const struct http_spec *spec, bool has_upstream, struct why *why);

/* The arguments that URL and headers name, one for each index from 0; false: the end. */
bool http_tool_argument(const struct http_spec *spec, size_t at, struct str *name);

/* Repeating the request is harmless: GET, HEAD, PUT, DELETE. */
bool http_tool_is_idempotent(const struct http_spec *spec);

/* Adds a header for each value of `trace` (NULL: none) that `configured` does not set; returns how many, at
 * most TRACE_KEYS. */
size_t http_trace_headers(struct name_value *list, const struct trace_context *trace,
                          struct name_values configured);

/* ---- what a response says, or that there was none ---- */

#define HTTP_QUOTED_BYTES 2000u /* of an error's message */
#define HTTP_TOO_MANY     429   /* a status: the call was refused before anything ran */

struct http_failure {
    enum upstream_outcome outcome;
    const char *code;
};
extern const struct http_failure http_failures[]; /* by enum fetch_outcome */

bool http_response_is_transient(int status); /* a retry may succeed: 408, 425, 429, 5xx */

/* The message of an error's body: problem+json's detail, error.message, message …; STR_NONE: none. */
struct str http_response_error_message(struct arena *arena, struct str type, struct str body);

#endif

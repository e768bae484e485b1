/* What a response over HTTP says, or that there was none: for tools and for MCP alike. */
#ifndef TOOLGATE_UPSTREAM_HTTP_HTTP_RESPONSE_H
#define TOOLGATE_UPSTREAM_HTTP_HTTP_RESPONSE_H

#include "upstream/http/fetch.h"
#include "upstream/upstream.h"

#define HTTP_QUOTED_BYTES 2000u /* of an error's message */
#define HTTP_TOO_MANY     429   /* a status: the call was refused before anything ran */

struct http_failure {
    enum upstream_outcome outcome;
    const char *code;
};
extern const struct http_failure http_failures[]; /* by enum fetch_outcome */

bool http_response_is_transient(int status); /* a retry may succeed: 408, 425, 429, 5xx */

bool http_response_is_text(struct str text); /* UTF-8 without NUL */

/* The message of an error's body: problem+json's detail, error.message, message …; STR_NONE: none. */
struct str http_response_error_message(struct arena *arena, struct str type, struct str body);

#endif

/* What the files http*.c share: a request made of a call's arguments, and an answer read. Only they include
 * it. */
#ifndef TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_INTERNAL_H
#define TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_INTERNAL_H

#include "base/buf.h"
#include "upstream/http/fetch.h"
#include "upstream/http/http_tool.h"
#include "upstream/upstream_call.h"
#include "upstream/secrets.h"

struct http_call {
    struct arena *arena;
    const struct http_spec *spec;
    const struct upstream_spec *base; /* NULL: the spec has the whole address */
    const struct json *arguments;
    const char **used; /* names that the address or a header has taken */
    size_t used_count;
    struct secrets secrets; /* that went out with it, and must not come back to anybody */
    struct fetch_request request;
};

/* Fills `request` in. ERR_PARSE: an argument is at fault; others: a setting is. http_request.c */
enum err http_request_build(struct http_call *call, struct why *why);

struct http_answer {
    int status;
    struct str type, redirect;     /* of the head; kept */
    const struct name_value *told; /* HEAD: headers worth telling */
    size_t told_count;
    int64_t after_s;
    struct buf body;
};

/* What each end of a fetch that is none is to a call. http_response.c */
struct http_failure {
    enum upstream_outcome outcome;
    const char *code;
};
extern const struct http_failure http_failures[];

bool http_response_is_transient(int status); /* a retry may succeed: 408, 425, 429, 5xx */

/* What it means, into run->answer. http_response.c */
void http_response_read(struct upstream_call *run, const struct http_call *call, struct http_answer *answer);
/* The same for none. */
void http_response_fail(struct upstream_call *run, const struct fetch_end *end);

/* The message of an error's body: problem+json's detail, error.message, message …; STR_NONE: none is found.
 * http_error_message.c */
struct str http_response_error_message(struct arena *arena, struct str type, struct str body);

#endif

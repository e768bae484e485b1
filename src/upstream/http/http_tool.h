/*
 * A plain HTTP endpoint as a tool: arguments become a request, an answer
 * becomes a value. http_tool_call (upstream/upstream_call.h) makes a call; what is here is for
 * those who load and judge policies.
 *
 * GET, HEAD and DELETE take the arguments that are not named in the address as
 * their query (a list is repeated, an object goes as JSON, null is left out);
 * others take them as a JSON body, but for those in `query`.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_H
#define TOOLGATE_UPSTREAM_HTTP_HTTP_TOOL_H

#include "base/err.h"
#include "upstream/upstream_spec.h"

#define HTTP_TIMEOUT_MS   30000u    /* of one call, where nobody says otherwise */
#define HTTP_BODY_BYTES   16777216u /* of an answer */
#define HTTP_URL_BYTES    8192u     /* with its query, as it is sent */
#define HTTP_QUOTED_BYTES 2000u     /* of what an error says */
#define HTTP_PICK_MAX     16u       /* names in `pick` */

/* To be asked when a policy is loaded: what can never make a request is told here, and not with each call. */
enum err http_tool_check(const struct http_spec *spec, bool has_upstream, struct why *why);

/* The arguments that the address needs: each of `count`, from 0; false: there are no more. */
bool http_tool_argument(const struct http_spec *spec, size_t at, struct str *name);

/* A second one does what the first did (GET, HEAD, PUT, DELETE): it may be tried again. */
bool http_tool_is_idempotent(const struct http_spec *spec);

#endif

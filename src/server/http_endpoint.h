/*
 * The HTTP endpoint for operators: `metrics = { listen = … }`. It decides who may ask for what;
 * io/http_listener.h speaks HTTP, the routes write the replies.
 *
 * On TCP a browser may be the client, and the page it shows may be of anybody: Host must name this host (DNS
 * rebinding), and an Origin must be this endpoint. Routes with users' content answer only on a Unix socket,
 * which has a mode, or to who knows the token.
 */
#ifndef TOOLGATE_SERVER_HTTP_ENDPOINT_H
#define TOOLGATE_SERVER_HTTP_ENDPOINT_H

#include "io/http_listener.h"

struct config;
struct http_endpoint;
struct json_out;
struct server;

/* Appends the reply's body and returns its status, 200. With 400 or more, the body is one line of text. The
 * arena ends with the reply. */
typedef unsigned http_route_write(struct server *server, const struct http_request *request,
                                  struct arena *arena, struct buf *body);

/* Opens, changes or closes the endpoint as the configuration says. After an error everything is as it was. */
enum err http_endpoint_apply(struct server *server, const struct config *config, struct why *why);
void http_endpoint_free(struct http_endpoint *endpoint); /* may be NULL */

/* "metrics":{"listen":…,"page":…,…}; nothing without an endpoint. */
void http_endpoint_write_status(struct json_out *out, const struct http_endpoint *endpoint);

const struct http_listener_counts *http_endpoint_counts(const struct http_endpoint *endpoint);

/* metrics_text.c, the route /metrics: the figures in Prometheus' text format 0.0.4. docs/monitoring.md lists
 * the metrics. */
http_route_write metrics_text_route;

/* ---- page.c ----
 *
 * The page of the metrics endpoint (metrics.page): static files, and JSON routes that its script reads. It
 * shows what the operator may see and changes nothing: POST /api/check.json decides on a call that is not
 * run and not counted.
 *
 * The files have no user's content, so a browser loads them without the token; the script sends it with each
 * request for JSON, in the Authorization header. A browser would send a cookie to every port of localhost,
 * also from pages of other origins.
 */

/* Keeps the latest decisions from now on, or no longer. */
void page_apply(struct server *server, bool is_on);

/* Routes: each appends the body and returns the status. */
http_route_write page_status, page_decisions, page_tools, page_tool, page_sessions, page_check;

#endif

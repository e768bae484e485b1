/* The figures in Prometheus' text format 0.0.4. docs/monitoring.md lists the metrics. */
#ifndef TOOLGATE_SERVER_METRICS_TEXT_H
#define TOOLGATE_SERVER_METRICS_TEXT_H

#include "base/buf.h"

struct http_request;
struct server;

#define METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The route /metrics (struct http_route). */
unsigned metrics_text_route(struct server *server, const struct http_request *request, struct buf *body);

#endif

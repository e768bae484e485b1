/* The exporter exists from the first configuration with an endpoint on; calls see it only while it is on. */
#include "server/traces.h"

#include "server/server_internal.h"
#include "traces/span_exporter.h"

void traces_apply(struct server *server, const struct config *config)
{
    if (!server->spans && !config->traces.endpoint.len)
        return;
    if (!server->spans)
        server->spans = span_exporter_new(server->loop);
    span_exporter_configure(server->spans, &config->traces);
    server->gate.spans = span_exporter_is_on(server->spans) ? server->spans : NULL;
    loop_time_reads(server->loop, server->gate.timed || server->gate.spans);
}

static void on_limit(void *owner)
{
    *(bool *)owner = true;
}

void traces_flush(struct server *server)
{
    struct timer limit = {0};
    bool late = false;
    if (!server->spans)
        return;
    timer_set(&limit, server->loop, SPANS_FLUSH_MS, on_limit, &late);
    while (!late && !span_exporter_flush(server->spans))
        loop_turn(server->loop, true);
    timer_clear(&limit);
}

void traces_close(struct server *server)
{
    server->gate.spans = NULL;
    span_exporter_free(server->spans);
    server->spans = NULL;
}

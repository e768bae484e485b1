/*
 * The streamable HTTP transport: each message is a POST, answered by JSON or
 * by a stream of events (mcp_http_exchange.c). Up to 2025-11-25 there is a
 * session, which may have to be renewed (mcp_http_exchange.c), a GET stream of
 * server messages (mcp_http_listen.c), and streams can be resumed; from
 * 2026-07-28 there are headers for method and name instead.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

static struct mcp_transport *http_make(struct loop *loop, const struct upstream_spec *spec,
                                       const struct mcp_transport_hooks *hooks, void *owner)
{
    struct mcp_transport *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    *t = (struct mcp_transport){.loop = loop, .spec = spec, .hooks = hooks, .owner = owner};
    TAILQ_INIT(&t->replies);
    sse_init(&t->listener.sse, UPSTREAM_LINE_MAX_BYTES);
    return t;
}

static void http_open(struct mcp_transport *t)
{
    struct why why = {0};
    mcp_http_expand_settings(t, &why); /* a failure is reported as `closed` */
    mcp_http_report_later(t, why.text, "");
}

/* Everything under way ends without a report. */
static void drop_all(struct mcp_transport *t)
{
    mcp_http_listen_stop(t);
    while (!LIST_EMPTY(&t->exchanges))
        exchange_free(LIST_FIRST(&t->exchanges));
    timer_clear(&t->next_reply);
    header_mapping_clear(&t->mapping);
    t->session.len = t->initialize.len = 0;
    t->version[0] = '\0';
    t->modern = t->renewing = false;
}

static void on_delete_done(void *owner, const struct fetch_end *end)
{
    struct mcp_transport *t = owner;
    (void)end;
    t->closing = NULL;
    mcp_http_clear_settings(t);
    t->hooks->closed(t->owner, "it was closed", STR_NONE);
}

/* DELETE ends the session; the status of its response does not matter. */
static void http_close(struct mcp_transport *t)
{
    static const struct fetch_hooks hooks = {.done = on_delete_done};
    if (t->closing || !t->settings)
        return;
    timer_clear(&t->later);
    if (t->session.len && !t->modern) {
        struct arena *arena = arena_new();
        struct fetch_request request = mcp_http_request(t, arena, "DELETE", (struct name_values){0});
        request.total_ms = MCP_HTTP_CLOSE_MS;
        request.repeatable = true;
        t->closing = fetch_start(t->loop, &request, &hooks, t, NULL);
        arena_free(arena);
    }
    drop_all(t);
    if (!t->closing) {
        mcp_http_clear_settings(t);
        mcp_http_report_later(t, "it was closed", "");
    }
}

static void http_free(struct mcp_transport *t)
{
    if (t->closing)
        fetch_cancel(t->closing);
    drop_all(t);
    timer_clear(&t->later);
    sse_clear(&t->listener.sse);
    buf_clear(&t->session);
    buf_clear(&t->initialize);
    mcp_http_clear_settings(t);
    free(t);
}

static void http_send(struct mcp_transport *t, const struct mcp_outgoing *outgoing)
{
    if (!t->settings)
        return;
    if (outgoing->method && strcmp(outgoing->method, "initialize") == 0) {
        t->initialize.len = 0;
        buf_str(&t->initialize, outgoing->message);
        t->initialize_id = outgoing->id;
    }
    if (!outgoing->method && t->reply_count == MCP_HTTP_REPLIES_MAX) {
        mcp_http_report_later(t, "it sends requests faster than it takes our answers to them", "");
        return;
    }
    exchange_post_if_due(exchange_new(t, outgoing));
}

static void http_forget(struct mcp_transport *t, uint64_t id)
{
    struct exchange *x;
    LIST_FOREACH (x, &t->exchanges, entry)
        if (id && x->id == id && !x->renews) {
            exchange_free(x);
            return;
        }
}

/* The version comes from the server: it is checked before it goes into a header. */
static void http_set_version(struct mcp_transport *t, const char *version, bool modern)
{
    bool safe = strlen(version) < sizeof(t->version) && fetch_header_is_safe(STR_LIT("x"), str_of(version));
    snprintf(t->version, sizeof(t->version), "%s", safe ? version : "");
    t->modern = modern;
}

const struct mcp_transport_kind mcp_transport_http = {.make = http_make,
                                                      .open = http_open,
                                                      .send = http_send,
                                                      .forget = http_forget,
                                                      .set_version = http_set_version,
                                                      .close = http_close,
                                                      .free = http_free};

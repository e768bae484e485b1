/*
 * The GET stream of server messages (up to 2025-11-25). A server may have none
 * (405). A broken stream is resumed after its last event, with a delay that
 * doubles while no event comes.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"

static void on_head(void *owner, const struct fetch_head *head)
{
    struct mcp_listener *l = &((struct mcp_transport *)owner)->listener;
    struct str type = fetch_header(head, "content-type");
    l->streams = head->status == 200 && str_contains_nocase(type, STR_LIT("text/event-stream"));
    l->refused = !l->streams && head->status < 500 && head->status != 429;
}

static void on_data(void *owner, struct str bytes)
{
    struct mcp_transport *t = owner;
    struct mcp_listener *l = &t->listener;
    struct sse_event event;
    enum sse_result got = SSE_MORE;
    struct fetch *fetch = l->fetch; /* delivering a message may stop the listener */
    while (l->streams && l->fetch == fetch && (got = sse_next(&l->sse, &bytes, &event)) == SSE_EVENT) {
        l->failures = 0;
        if (str_is(event.type, "message") && event.data.len)
            mcp_http_deliver(t, 0, event.data);
    }
    if (got == SSE_TOO_LONG || (l->fetch == fetch && !l->streams && bytes.len > MCP_HTTP_SESSION_BYTES))
        mcp_http_listen_stop(t);
}

static void start(void *owner);

static void on_done(void *owner, const struct fetch_end *end)
{
    struct mcp_transport *t = owner;
    struct mcp_listener *l = &t->listener;
    (void)end;
    l->fetch = NULL;
    if (l->refused) {
        mcp_http_listen_stop(t);
        return;
    }
    uint32_t wait_ms = (l->sse.retry_ms ? l->sse.retry_ms : MCP_HTTP_RETRY_MS) << l->failures;
    l->failures += l->failures < MCP_HTTP_RETRY_DOUBLINGS;
    timer_set(&l->timer, t->loop, wait_ms < MCP_HTTP_RETRY_MAX_MS ? wait_ms : MCP_HTTP_RETRY_MAX_MS, start,
              t);
}

static void start(void *owner)
{
    static const struct fetch_hooks hooks = {on_head, on_data, on_done};
    struct mcp_transport *t = owner;
    struct mcp_listener *l = &t->listener;
    struct arena *arena = arena_new();
    sse_restart(&l->sse);
    struct str last_id = sse_last_id(&l->sse);
    const struct name_value more[2] = {{STR_LIT("Accept"), STR_LIT("text/event-stream")},
                                       {STR_LIT("Last-Event-ID"), last_id}};
    struct fetch_request request =
        mcp_http_request(t, arena, "GET", (struct name_values){more, last_id.len ? 2 : 1});
    request.repeatable = true;
    l->streams = l->refused = false;
    l->fetch = fetch_start(t->loop, &request, &hooks, t, NULL);
    arena_free(arena);
}

void mcp_http_listen_start(struct mcp_transport *t)
{
    if (t->modern || t->listener.on || !t->settings)
        return;
    t->listener.on = true;
    start(t);
}

void mcp_http_listen_stop(struct mcp_transport *t)
{
    struct mcp_listener *l = &t->listener;
    if (l->fetch)
        fetch_cancel(l->fetch);
    timer_clear(&l->timer);
    sse_clear(&l->sse);
    *l = (struct mcp_listener){0};
    sse_init(&l->sse, UPSTREAM_LINE_MAX_BYTES);
}

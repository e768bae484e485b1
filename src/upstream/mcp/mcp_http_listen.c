/*
 * What a server says by itself (up to 2025-11-25): a GET that stays open. A server
 * may have none (405); one that breaks off is asked for again, from the event
 * where it ended, ever less often while it brings nothing.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"

static void start(void *owner);

static void again(struct mcp_transport *t)
{
    struct mcp_listener *l = &t->listening;
    uint32_t wait_ms = l->sse.retry_ms ? l->sse.retry_ms : STREAM_RETRY_MS;
    wait_ms <<= l->barren;
    l->barren += l->barren < STREAM_BARREN_MAX;
    timer_set(&l->timer, t->loop, wait_ms < STREAM_RETRY_MAX_MS ? wait_ms : STREAM_RETRY_MAX_MS, start, t);
}

static void on_head(void *owner, const struct fetch_head *head)
{
    struct mcp_listener *l = &((struct mcp_transport *)owner)->listening;
    struct str type = fetch_header(head, "content-type");
    l->streams = head->status == 200 && str_contains_nocase(type, STR_LIT("text/event-stream"));
    l->refused = !l->streams && head->status < 500 && head->status != 429;
}

static void on_data(void *owner, struct str bytes)
{
    struct mcp_transport *t = owner;
    struct mcp_listener *l = &t->listening;
    struct sse_event event;
    enum sse_result got = SSE_MORE;
    struct fetch *fetch = l->fetch;
    while (l->streams && l->fetch == fetch && (got = sse_next(&l->sse, &bytes, &event)) == SSE_EVENT) {
        l->barren = 0;
        if (str_is(event.type, "message") && event.data.len)
            mcp_http_deliver(t, 0, event.data);
    }
    if (got == SSE_TOO_LONG || (l->fetch == fetch && !l->streams && bytes.len > STREAM_SESSION_BYTES))
        mcp_http_listen_stop(t);
}

static void on_done(void *owner, const struct fetch_end *end)
{
    struct mcp_transport *t = owner;
    (void)end;
    t->listening.fetch = NULL;
    if (t->listening.refused)
        mcp_http_listen_stop(t);
    else
        again(t);
}

static const struct fetch_hooks hooks = {on_head, on_data, on_done};

static void start(void *owner)
{
    struct mcp_transport *t = owner;
    struct mcp_listener *l = &t->listening;
    struct arena *arena = arena_new();
    struct name_value more[2] = {{STR_LIT("Accept"), STR_LIT("text/event-stream")}};
    size_t count = 1;
    sse_restart(&l->sse);
    if (sse_last_id(&l->sse).len)
        more[count++] = (struct name_value){STR_LIT("Last-Event-ID"), sse_last_id(&l->sse)};
    struct fetch_request request = mcp_http_request(t, arena, "GET", (struct name_values){more, count});
    request.repeatable = true;
    l->streams = l->refused = false;
    l->fetch = fetch_start(t->loop, &request, &hooks, t, NULL);
    arena_free(arena);
}

void mcp_http_listen_start(struct mcp_transport *t)
{
    if (t->modern || t->listening.on || !t->settings)
        return;
    t->listening.on = true;
    start(t);
}

void mcp_http_listen_stop(struct mcp_transport *t)
{
    struct mcp_listener *l = &t->listening;
    if (l->fetch)
        fetch_cancel(l->fetch);
    timer_clear(&l->timer);
    sse_clear(&l->sse);
    *l = (struct mcp_listener){0};
    sse_init(&l->sse, UPSTREAM_LINE_MAX_BYTES);
}

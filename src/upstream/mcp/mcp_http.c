/*
 * The streamable HTTP transport: each message is a POST, answered by JSON or
 * by a stream of events (mcp_http_exchange.c). Up to 2025-11-25 there is a
 * session, which may have to be renewed, streams can be resumed, and there is a
 * GET stream of server messages: a server may have none (405); a broken one is
 * resumed after its last event, with a delay that doubles while no event comes.
 * From 2026-07-28 on there are headers for method and name instead.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- settings, with their secrets expanded -------------------------------------------- */

static enum err expand_headers(const struct mcp_transport *t, struct arena *arena, struct secrets *used,
                               struct name_values *headers, struct why *why)
{
    const struct name_values *given = &t->spec->headers;
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, given->count);
    enum err err = OK;
    for (size_t i = 0; err == OK && i < given->count; i++) {
        list[i].name = given->list[i].name;
        err = secrets_expand(arena, given->list[i].value, used, &list[i].value, why);
    }
    *headers = (struct name_values){list, given->count};
    return err;
}

bool mcp_http_reload_headers(struct mcp_transport *t)
{
    struct arena *scratch = arena_new();
    struct name_values now;
    bool differs = false;
    if (expand_headers(t, scratch, NULL, &now, NULL) == OK)
        for (size_t i = 0; i < now.count; i++)
            differs |= !str_eq(now.list[i].value, t->headers.list[i].value);
    arena_free(scratch);
    /* The old values stay in t->secrets: responses that are still to come may echo them. */
    differs = differs && expand_headers(t, t->settings, &t->secrets, &now, NULL) == OK;
    if (differs)
        t->headers = now;
    return differs;
}

static void clear_settings(struct mcp_transport *t)
{
    arena_free(t->settings);
    t->settings = NULL;
    t->secrets = (struct secrets){0};
    t->url = t->ca_file = NULL;
    t->headers = (struct name_values){0};
}

struct fetch_request mcp_http_request(struct mcp_transport *t, struct arena *arena, const char *method,
                                      struct name_values more)
{
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, t->headers.count + more.count + 2);
    size_t count = 0;
    for (size_t i = 0; i < t->headers.count; i++)
        list[count++] = t->headers.list[i];
    for (size_t i = 0; i < more.count; i++)
        list[count++] = more.list[i];
    if (t->version[0])
        list[count++] = (struct name_value){STR_LIT("MCP-Protocol-Version"), str_of(t->version)};
    if (t->session.len && !t->modern)
        list[count++] = (struct name_value){STR_LIT("MCP-Session-Id"), buf_view(&t->session)};
    return (struct fetch_request){.method = method,
                                  .url = t->url,
                                  .headers = {list, count},
                                  .ca_file = t->ca_file,
                                  .body_max = SIZE_MAX};
}

/* ---- reports to the client ---------------------------------------------------------------- */

static void on_later(void *owner)
{
    struct mcp_transport *t = owner;
    if (t->why[0])
        t->hooks->closed(t->owner, t->why, str_of(t->quoted));
    else
        t->hooks->opened(t->owner);
}

void mcp_http_report_later(struct mcp_transport *t, const char *why, const char *quoted)
{
    if (timer_is_set(&t->later))
        return;
    snprintf(t->why, sizeof(t->why), "%.500s", why);
    snprintf(t->quoted, sizeof(t->quoted), "%s", quoted);
    timer_set(&t->later, t->loop, 0, on_later, t);
}

void mcp_http_deliver(struct mcp_transport *t, uint64_t about, struct str text)
{
    struct arena *scratch = arena_new();
    t->hooks->message(t->owner, about, secrets_redact(scratch, &t->secrets, text));
    arena_free(scratch);
}

uint32_t mcp_http_retry_ms(const struct sse *sse, unsigned doublings)
{
    uint32_t ms = (sse->retry_ms ? sse->retry_ms : MCP_HTTP_RETRY_MS) << doublings;
    return ms < MCP_HTTP_RETRY_MAX_MS ? ms : MCP_HTTP_RETRY_MAX_MS;
}

/* ---- the GET stream ------------------------------------------------------------------------- */

static void listen_now(void *owner);

static void on_stream_head(void *owner, const struct fetch_head *head)
{
    struct mcp_listener *l = &((struct mcp_transport *)owner)->listener;
    struct str type = fetch_header(head, "content-type");
    l->streams = head->status == 200 && str_contains_nocase(type, STR_LIT("text/event-stream"));
    l->refused = !l->streams && head->status < 500 && head->status != 429;
}

static void on_stream_data(void *owner, struct str bytes)
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

static void on_stream_done(void *owner, const struct fetch_end *end)
{
    struct mcp_transport *t = owner;
    struct mcp_listener *l = &t->listener;
    (void)end;
    l->fetch = NULL;
    if (l->refused) {
        mcp_http_listen_stop(t);
        return;
    }
    timer_set(&l->timer, t->loop, mcp_http_retry_ms(&l->sse, l->failures), listen_now, t);
    l->failures += l->failures < MCP_HTTP_RETRY_DOUBLINGS;
}

static void listen_now(void *owner)
{
    static const struct fetch_hooks hooks = {on_stream_head, on_stream_data, on_stream_done};
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
    listen_now(t);
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

/* ---- the transport ---------------------------------------------------------------------------- */

/* A failure is reported as `closed`. The URL may hold a key, too; the path of ca_file is no secret. */
static struct mcp_transport *http_open(struct loop *loop, const struct upstream_spec *spec,
                                       const struct mcp_transport_hooks *hooks, void *owner)
{
    struct mcp_transport *t = calloc(1, sizeof(*t));
    struct why why = {0};
    struct str url = STR_NONE, ca_file = STR_NONE;
    if (!t)
        abort();
    *t = (struct mcp_transport){
        .loop = loop, .spec = spec, .hooks = hooks, .owner = owner, .settings = arena_new()};
    TAILQ_INIT(&t->replies);
    sse_init(&t->listener.sse, UPSTREAM_LINE_MAX_BYTES);
    enum err err = secrets_expand(t->settings, spec->url, &t->secrets, &url, &why);
    if (err == OK)
        err = secrets_expand(t->settings, spec->ca_file, NULL, &ca_file, &why);
    if (err == OK)
        expand_headers(t, t->settings, &t->secrets, &t->headers, &why);
    t->url = arena_dup(t->settings, url).at;
    t->ca_file = ca_file.len ? arena_dup(t->settings, ca_file).at : NULL;
    mcp_http_report_later(t, why.text, "");
    return t;
}

/* Everything under way ends without a report. */
static void drop_all(struct mcp_transport *t)
{
    mcp_http_listen_stop(t);
    while (!LIST_EMPTY(&t->exchanges))
        exchange_free(LIST_FIRST(&t->exchanges));
    timer_clear(&t->next_reply);
    t->session.len = t->initialize.len = 0;
    t->version[0] = '\0';
    t->modern = t->renewing = false;
}

static void on_delete_done(void *owner, const struct fetch_end *end)
{
    struct mcp_transport *t = owner;
    (void)end;
    t->closing = NULL;
    clear_settings(t);
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
        clear_settings(t);
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
    clear_settings(t);
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
    if (!outgoing->method && t->reply_count == MCP_HTTP_REPLIES_MAX)
        mcp_http_report_later(t, "it sends requests faster than it takes our answers to them", "");
    else
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

const struct mcp_transport_kind mcp_transport_http = {.open = http_open,
                                                      .send = http_send,
                                                      .forget = http_forget,
                                                      .set_version = http_set_version,
                                                      .close = http_close,
                                                      .free = http_free};

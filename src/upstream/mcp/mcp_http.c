/*
 * The streamable HTTP transport: each message is a POST, answered by JSON or
 * by a stream of events (mcp_http_exchange.c). Up to 2025-11-25 there is a
 * session, which may have to be renewed (mcp_http_session.c), a GET stream of
 * server messages (mcp_http_listen.c), and streams can be resumed; from
 * 2026-07-28 there are headers for method and name instead.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

/* Reports the result of http_open, or the end. */
static void on_later(void *owner)
{
    struct mcp_transport *t = owner;
    if (t->why[0])
        t->hooks->closed(t->owner, t->why, str_of(t->quoted));
    else
        t->hooks->opened(t->owner);
}

void mcp_http_close_later(struct mcp_transport *t, const char *why, const char *quoted)
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

/* ---- headers and settings ---------------------------------------------------------- */

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

/* The URL may hold a key, too; the path of ca_file is no secret. */
static enum err expand_settings(struct mcp_transport *t, struct why *why)
{
    struct str url = STR_NONE, ca_file = STR_NONE;
    t->settings = arena_new();
    enum err err = secrets_expand(t->settings, t->spec->url, &t->secrets, &url, why);
    if (err == OK)
        err = secrets_expand(t->settings, t->spec->ca_file, NULL, &ca_file, why);
    if (err == OK)
        err = expand_headers(t, t->settings, &t->secrets, &t->headers, why);
    t->url = arena_dup(t->settings, url).at;
    t->ca_file = ca_file.len ? arena_dup(t->settings, ca_file).at : NULL;
    return err;
}

static void clear_settings(struct mcp_transport *t)
{
    arena_free(t->settings);
    t->settings = NULL;
    t->secrets = (struct secrets){0};
    t->url = t->ca_file = NULL;
    t->headers = (struct name_values){0};
}

/* ---- from open to closed --------------------------------------------------------------- */

static struct mcp_transport *http_make(struct loop *loop, const struct upstream_spec *spec,
                                       const struct mcp_transport_hooks *hooks, void *owner)
{
    struct mcp_transport *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    *t = (struct mcp_transport){.loop = loop, .spec = spec, .hooks = hooks, .owner = owner};
    sse_init(&t->listener.sse, UPSTREAM_LINE_MAX_BYTES);
    return t;
}

static void http_open(struct mcp_transport *t)
{
    struct why why = {0};
    if (expand_settings(t, &why) != OK)
        mcp_http_close_later(t, why.text, "");
    else
        timer_set(&t->later, t->loop, 0, on_later, t);
}

/* Everything under way ends without a report. */
static void drop_all(struct mcp_transport *t)
{
    mcp_http_listen_stop(t);
    while (!LIST_EMPTY(&t->exchanges))
        exchange_free(LIST_FIRST(&t->exchanges));
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
        mcp_http_close_later(t, "it was closed", "");
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

/* ---- messages ----------------------------------------------------------------------------- */

static void http_send(struct mcp_transport *t, uint64_t id, const char *method, struct str name,
                      struct str message)
{
    if (!t->settings)
        return;
    if (method && strcmp(method, "initialize") == 0) {
        t->initialize.len = 0;
        buf_str(&t->initialize, message);
        t->initialize_id = id;
    }
    struct exchange *x = exchange_new(t, id, method, name, message);
    if (!t->renewing)
        exchange_post(x);
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

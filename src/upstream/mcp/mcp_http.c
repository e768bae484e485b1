/*
 * MCP over streamable HTTP: each message is a POST, whose answer is JSON or a
 * stream of events (mcp_http_exchange.c). The eras differ in headers: up to
 * 2025-11-25 a session's id and the version agreed upon, a GET stream for what
 * the server says by itself (mcp_http_listen.c), streams that can be resumed, and
 * a session that may have to be renewed (mcp_http_session.c); from 2026-07-28
 * on method and name, and none of the others.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

static void on_closed_later(void *owner)
{
    struct mcp_transport *t = owner;
    t->hooks->closed(t->owner, t->why, str_of(t->says));
}

void mcp_http_close_later(struct mcp_transport *t, const char *why, const char *says)
{
    if (timer_is_set(&t->later))
        return;
    snprintf(t->why, sizeof(t->why), "%.500s", why);
    snprintf(t->says, sizeof(t->says), "%s", says);
    timer_set(&t->later, t->loop, 0, on_closed_later, t);
}

void mcp_http_deliver(struct mcp_transport *t, uint64_t about, struct str text)
{
    struct arena *scratch = arena_new();
    t->hooks->message(t->owner, about, secrets_redact(scratch, &t->secrets, text));
    arena_free(scratch);
}

/* ---- headers ----------------------------------------------------------------------- */

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

/* ---- from open to closed --------------------------------------------------------------- */

static void forget_settings(struct mcp_transport *t)
{
    arena_free(t->settings);
    t->settings = NULL;
    t->secrets = (struct secrets){0};
    t->url = t->ca_file = NULL;
    t->headers = (struct name_values){0};
}

static enum err fill_headers(const struct mcp_transport *t, struct arena *arena, struct secrets *used,
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
    if (fill_headers(t, scratch, NULL, &now, NULL) == OK)
        for (size_t i = 0; i < now.count; i++)
            differs |= !str_eq(now.list[i].value, t->headers.list[i].value);
    arena_free(scratch);
    /* The old ones stay hidden, too, in answers that are still to come. */
    differs = differs && fill_headers(t, t->settings, &t->secrets, &now, NULL) == OK;
    if (differs)
        t->headers = now;
    return differs;
}

/* The address may hold a key, too; where it is asked is no secret. */
static enum err fill_settings(struct mcp_transport *t, struct why *why)
{
    struct str url = STR_NONE, ca_file = STR_NONE;
    t->settings = arena_new();
    enum err err = secrets_expand(t->settings, t->spec->url, &t->secrets, &url, why);
    if (err == OK)
        err = secrets_expand(t->settings, t->spec->ca_file, NULL, &ca_file, why);
    if (err == OK)
        err = fill_headers(t, t->settings, &t->secrets, &t->headers, why);
    t->url = arena_dup(t->settings, url).at;
    t->ca_file = ca_file.len ? arena_dup(t->settings, ca_file).at : NULL;
    return err;
}

static void on_opened_later(void *owner)
{
    struct mcp_transport *t = owner;
    t->hooks->opened(t->owner);
}

static struct mcp_transport *stream_make(struct loop *loop, const struct upstream_spec *spec,
                                         const struct mcp_transport_hooks *hooks, void *owner)
{
    struct mcp_transport *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    *t = (struct mcp_transport){.loop = loop, .spec = spec, .hooks = hooks, .owner = owner};
    sse_init(&t->listening.sse, UPSTREAM_LINE_MAX_BYTES);
    return t;
}

static void stream_open(struct mcp_transport *t)
{
    struct why why = {0};
    enum err err = fill_settings(t, &why);
    if (err != OK)
        mcp_http_close_later(t, why.text, "");
    else
        timer_set(&t->later, t->loop, 0, on_opened_later, t);
}

/* Everything under way ends unheard. */
static void drop_all(struct mcp_transport *t)
{
    mcp_http_listen_stop(t);
    while (t->exchanges)
        exchange_free(t->exchanges);
    header_mapping_clear(&t->mirror);
    t->session.len = t->initialize.len = 0;
    t->version[0] = '\0';
    t->modern = t->renewing = false;
}

static void on_left(void *owner, const struct fetch_end *end)
{
    struct mcp_transport *t = owner;
    (void)end;
    t->leaving = NULL;
    forget_settings(t);
    t->hooks->closed(t->owner, "it was closed", STR_NONE);
}

static void on_left_head(void *owner, const struct fetch_head *head)
{
    (void)owner, (void)head;
}

static void on_left_data(void *owner, struct str bytes)
{
    (void)owner, (void)bytes;
}

static const struct fetch_hooks leaving = {on_left_head, on_left_data, on_left};

/* DELETE ends the session there; a server that does not know it answers 405, and that is fine. */
static bool take_leave(struct mcp_transport *t)
{
    struct arena *arena = arena_new();
    struct fetch_request request = mcp_http_request(t, arena, "DELETE", (struct name_values){0});
    request.total_ms = STREAM_CLOSE_MS;
    request.repeatable = true;
    t->leaving = t->session.len && !t->modern ? fetch_start(t->loop, &request, &leaving, t, NULL) : NULL;
    arena_free(arena);
    return t->leaving != NULL;
}

static void stream_close(struct mcp_transport *t)
{
    if (t->leaving || !t->settings)
        return;
    timer_clear(&t->later);
    bool leaves = take_leave(t);
    drop_all(t);
    if (!leaves) {
        forget_settings(t);
        mcp_http_close_later(t, "it was closed", "");
    }
}

static void stream_free(struct mcp_transport *t)
{
    if (t->leaving)
        fetch_cancel(t->leaving);
    drop_all(t);
    timer_clear(&t->later);
    sse_clear(&t->listening.sse);
    buf_clear(&t->session);
    buf_clear(&t->initialize);
    forget_settings(t);
    free(t);
}

/* ---- messages ----------------------------------------------------------------------------- */

static void stream_send(struct mcp_transport *t, uint64_t id, const char *method, struct str name,
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

static void stream_forget(struct mcp_transport *t, uint64_t id)
{
    for (struct exchange *x = t->exchanges; x && id; x = x->next)
        if (x->id == id && !x->ours) {
            exchange_free(x);
            return;
        }
}

/* A version comes from the server: what could not be a header's value is none. */
static void stream_version(struct mcp_transport *t, const char *version, bool modern)
{
    bool safe = strlen(version) < sizeof(t->version) && fetch_header_is_safe(STR_LIT("x"), str_of(version));
    snprintf(t->version, sizeof(t->version), "%s", safe ? version : "");
    t->modern = modern;
}

const struct mcp_transport_kind mcp_transport_http = {.make = stream_make,
                                                      .open = stream_open,
                                                      .send = stream_send,
                                                      .forget = stream_forget,
                                                      .version = stream_version,
                                                      .close = stream_close,
                                                      .free = stream_free};

/*
 * The streamable HTTP transport: the server's address and headers with their secrets expanded, the messages
 * that are sent to it, each as an exchange (mcp_exchange.c), and its end.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/alloc.h"
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#define MCP_HTTP_CLOSE_MS    2000u /* timeout of DELETE */
#define MCP_HTTP_REPLIES_MAX 256u  /* answers to its requests that wait to be posted */
#define MCP_HTTP_NOTICES_MAX 64u   /* notifications under way, each on a connection; others are dropped */

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
        secrets_add_named(arena, used, list[i].name, list[i].value);
    }
    *headers = (struct name_values){list, given->count};
    return err;
}

/* Expands the headers again; true: a token was renewed, and the new one is used from now on. */
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

/* Sends `request` to the server's address, with the headers of the spec, the protocol and the session before
 * and after its own. */
struct fetch *mcp_http_fetch(struct mcp_transport *t, struct fetch_request request,
                             const struct fetch_hooks *hooks, void *owner, struct why *why)
{
    struct arena *arena = arena_new();
    const struct name_values own = request.headers;
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, t->headers.count + own.count + 2);
    size_t count = 0;
    for (size_t i = 0; i < t->headers.count; i++)
        list[count++] = t->headers.list[i];
    for (size_t i = 0; i < own.count; i++)
        list[count++] = own.list[i];
    if (t->version[0])
        list[count++] = (struct name_value){STR_LIT("MCP-Protocol-Version"), str_of(t->version)};
    if (t->session.len && !t->modern)
        list[count++] = (struct name_value){STR_LIT("MCP-Session-Id"), buf_view(&t->session)};
    request.headers = (struct name_values){list, count};
    request.url = t->url;
    request.ca_file = t->ca_file;
    request.body_max = SIZE_MAX;
    struct fetch *fetch = fetch_start(t->loop, &request, hooks, owner, why);
    arena_free(arena);
    return fetch;
}

/* ---- reports to the client ---------------------------------------------------------------- */

static void on_later(void *owner)
{
    struct mcp_transport *t = owner;
    if (t->why[0])
        mcp_client_closed(t->client, t->why, str_of(t->quoted));
    else
        mcp_client_opened(t->client);
}

/* `opened` fires in the next turn, or `closed` if there is a `why`; the first report wins. */
void mcp_http_report_later(struct mcp_transport *t, const char *why, const char *quoted)
{
    if (timer_is_set(&t->later))
        return;
    snprintf(t->why, sizeof(t->why), "%.500s", why);
    snprintf(t->quoted, sizeof(t->quoted), "%s", quoted);
    timer_set(&t->later, t->loop, 0, on_later, t);
}

/* Passes a message to the client, with our secrets redacted. */
void mcp_http_pass_on(struct mcp_transport *t, uint64_t about, struct str text)
{
    struct arena *scratch = arena_new();
    mcp_client_message(t->client, about, secrets_redact(scratch, &t->secrets, text));
    arena_free(scratch);
}

/* ---- the transport ---------------------------------------------------------------------------- */

/* A failure is reported as `closed`. The URL may hold a key, too; the path of ca_file is no secret. */
static struct mcp_transport *http_open(struct loop *loop, const struct upstream_spec *spec,
                                       struct mcp_client *client)
{
    struct mcp_transport *t = alloc_zeroed(sizeof(*t));
    struct why why = {0};
    struct str url = STR_NONE, ca_file = STR_NONE;
    *t = (struct mcp_transport){.loop = loop, .spec = spec, .client = client, .settings = arena_new()};
    TAILQ_INIT(&t->replies);
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
    while (!LIST_EMPTY(&t->exchanges))
        exchange_free(LIST_FIRST(&t->exchanges)); /* NOLINT(clang-analyzer-unix.Malloc): it moves the head */
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
    t->closed = true;
    mcp_client_closed(t->client, "it was closed", STR_NONE);
}

/* DELETE ends the session; the status of its response does not matter. */
static void http_close(struct mcp_transport *t)
{
    static const struct fetch_hooks hooks = {.done = on_delete_done};
    const struct fetch_request request = {
        .method = "DELETE", .total_ms = MCP_HTTP_CLOSE_MS, .repeatable = true};
    if (t->closing || t->closed)
        return;
    timer_clear(&t->later);
    if (t->session.len && !t->modern)
        t->closing = mcp_http_fetch(t, request, &hooks, t, NULL);
    drop_all(t);
    t->closed = !t->closing;
    if (t->closed)
        mcp_http_report_later(t, "it was closed", "");
}

static void http_free(struct mcp_transport *t)
{
    if (t->closing)
        fetch_cancel(t->closing);
    drop_all(t);
    timer_clear(&t->later);
    buf_clear(&t->session);
    buf_clear(&t->initialize);
    arena_free(t->settings);
    free(t);
}

static void http_send(struct mcp_transport *t, const struct mcp_outgoing *outgoing)
{
    bool is_notice = outgoing->method && !outgoing->id;
    if (t->closed || (is_notice && t->notice_count >= MCP_HTTP_NOTICES_MAX))
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

/* A server without sessions has no GET stream, although its SDK says that it reports changes. */
static bool http_listens(const struct mcp_transport *t)
{
    return t->modern || (t->listener && t->listener->streams);
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
                                                      .listens = http_listens,
                                                      .set_version = http_set_version,
                                                      .close = http_close,
                                                      .free = http_free};

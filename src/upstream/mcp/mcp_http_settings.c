/*
 * What every request of the HTTP transport needs: the settings of the spec with
 * their secrets expanded, the headers, and passing messages on to the client.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"

#include <stdio.h>

/* Reports the result of http_open, or the end. */
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
void mcp_http_expand_settings(struct mcp_transport *t, struct why *why)
{
    struct str url = STR_NONE, ca_file = STR_NONE;
    t->settings = arena_new();
    enum err err = secrets_expand(t->settings, t->spec->url, &t->secrets, &url, why);
    if (err == OK)
        err = secrets_expand(t->settings, t->spec->ca_file, NULL, &ca_file, why);
    if (err == OK)
        expand_headers(t, t->settings, &t->secrets, &t->headers, why);
    t->url = arena_dup(t->settings, url).at;
    t->ca_file = ca_file.len ? arena_dup(t->settings, ca_file).at : NULL;
}

void mcp_http_clear_settings(struct mcp_transport *t)
{
    arena_free(t->settings);
    t->settings = NULL;
    t->secrets = (struct secrets){0};
    t->url = t->ca_file = NULL;
    t->headers = (struct name_values){0};
}

/*
 * Resources whose changes somebody wants to hear of, and the level of log
 * messages: what a server is told once it is up, and again after each restart.
 * In the legacy era each resource is a resources/subscribe, in the modern one
 * a subscriptions/listen of its own, whose cancellation ends it.
 */
#include "base/log.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdlib.h>

struct mcp_subscription {
    LIST_ENTRY(mcp_subscription) entry;
    unsigned wanted; /* how many times */
    uint64_t listen; /* modern: the request that waits; 0: none */
    bool sent;
    size_t len;
    char uri[];
};

static struct mcp_subscription *find(struct mcp_client *client, struct str uri)
{
    struct mcp_subscription *s;
    LIST_FOREACH (s, &client->subscriptions, entry)
        if (str_eq((struct str){s->uri, s->len}, uri))
            return s;
    return NULL;
}

static void put_uri(struct mcp_client *client, const char *before, const struct mcp_subscription *s,
                    const char *after)
{
    buf_text(&client->out, before);
    json_write_string(&client->out, (struct str){s->uri, s->len});
    buf_text(&client->out, after);
}

/* Of the legacy era, the beginning; of the modern one, the end. */
static void on_answer(struct mcp_client *client, struct pending_request *pending,
                      const struct mcp_message *message)
{
    struct mcp_subscription *s = pending->subscription;
    pending_remove(&client->pending, pending);
    if (message->error.len)
        log_event(LOG_WARN, "upstream_subscription_refused", LOG_STR("upstream", client->spec->name),
                  LOG_STR("why", mcp_request_error(client, mcp_client_scratch(client), message)),
                  LOG_TEXT("effect", "changes of this resource are not reported"));
    if (!client->modern || !s)
        return;
    s->listen = 0;
    s->sent = message->error.len != 0; /* an error is final */
    if (!s->sent && !timer_is_set(&client->relisten))
        mcp_lists_listen_again(client);
}

static void send(struct mcp_client *client, struct mcp_subscription *s)
{
    const char *method = client->modern ? "subscriptions/listen" : "resources/subscribe";
    uint32_t ms = client->modern ? 0 : mcp_client_start_ms(client);
    struct pending_request *pending = mcp_request_begin(client, method, on_answer, ms);
    if (!pending)
        return;
    s->sent = true;
    s->listen = client->modern ? pending->id : 0;
    pending->subscription = client->modern ? s : NULL;
    if (client->modern)
        put_uri(client, "\"notifications\":{\"resourceSubscriptions\":[", s, "]}");
    else
        put_uri(client, "\"uri\":", s, "");
    mcp_request_meta(client, 0, true, NULL);
    mcp_request_send(client, pending->id, method, STR_NONE, NULL);
}

/* A server that does not take it says so in the response, which changes nothing. */
static void on_ignored(struct mcp_client *client, struct pending_request *pending,
                       const struct mcp_message *message)
{
    (void)message;
    pending_remove(&client->pending, pending);
}

static void send_end(struct mcp_client *client, struct mcp_subscription *s)
{
    static const char method[] = "resources/unsubscribe";
    struct pending_request *pending = s->listen ? pending_find(&client->pending, s->listen) : NULL;
    if (pending) {
        uint64_t id = pending->id;
        pending_remove(&client->pending, pending);
        mcp_request_cancel(client, id, "unsubscribed");
    }
    if (client->modern || !s->sent || !client->ready ||
        !(pending = mcp_request_begin(client, method, on_ignored, mcp_client_start_ms(client))))
        return;
    put_uri(client, "\"uri\":", s, "");
    mcp_request_meta(client, 0, true, NULL);
    mcp_request_send(client, pending->id, method, STR_NONE, NULL);
}

const char *mcp_client_subscribe(struct mcp_client *client, struct str uri)
{
    struct mcp_subscription *s = find(client, uri);
    if (client->ready && !client->has_subscriptions && !client->modern)
        return "does not report changes of resources";
    if (!s && client->subscription_count == MCP_SUBSCRIPTIONS_MAX)
        return "has as many subscriptions as it may have";
    if (!s) {
        s = calloc(1, sizeof(*s) + uri.len + 1);
        if (!s)
            abort();
        memcpy(s->uri, uri.at, uri.len);
        s->len = uri.len;
        LIST_INSERT_HEAD(&client->subscriptions, s, entry);
        client->subscription_count++;
    }
    s->wanted++;
    if (client->ready && !s->sent)
        send(client, s);
    return NULL;
}

void mcp_client_inherit(struct mcp_client *client, const struct mcp_client *before)
{
    struct mcp_subscription *s;
    LIST_FOREACH (s, &before->subscriptions, entry)
        for (unsigned i = 0; i < s->wanted; i++)
            mcp_client_subscribe(client, (struct str){s->uri, s->len});
}

void mcp_client_unsubscribe(struct mcp_client *client, struct str uri)
{
    struct mcp_subscription *s = find(client, uri);
    if (!s || --s->wanted)
        return;
    send_end(client, s);
    LIST_REMOVE(s, entry);
    client->subscription_count--;
    free(s);
}

/* ---- log messages -------------------------------------------------------------- */

const char *mcp_log_level_name(int level)
{
    static const char *const names[] = {"debug", "info",     "notice", "warning",
                                        "error", "critical", "alert",  "emergency"};
    return names[level];
}

/* In the modern era each request says it (mcp_request_meta). */
static void send_level(struct mcp_client *client)
{
    static const char method[] = "logging/setLevel";
    struct pending_request *pending;
    if (client->modern || !client->ready || !client->has_logging || client->log_level < 0 ||
        !(pending = mcp_request_begin(client, method, on_ignored, mcp_client_start_ms(client))))
        return;
    buf_printf(&client->out, "\"level\":\"%s\"", mcp_log_level_name(client->log_level));
    mcp_request_meta(client, 0, true, NULL);
    mcp_request_send(client, pending->id, method, STR_NONE, NULL);
}

void mcp_client_set_log_level(struct mcp_client *client, int level)
{
    client->log_level = level;
    send_level(client);
}

/* ---- the server comes and goes --------------------------------------------------- */

void mcp_subscriptions_begin(struct mcp_client *client)
{
    struct mcp_subscription *s;
    send_level(client);
    LIST_FOREACH (s, &client->subscriptions, entry)
        if (!s->sent && client->ready)
            send(client, s);
}

void mcp_subscriptions_lost(struct mcp_client *client)
{
    struct mcp_subscription *s;
    LIST_FOREACH (s, &client->subscriptions, entry) {
        s->sent = false;
        s->listen = 0;
    }
}

void mcp_subscriptions_free(struct mcp_client *client)
{
    struct mcp_subscription *s;
    while ((s = LIST_FIRST(&client->subscriptions))) {
        LIST_REMOVE(s, entry);
        free(s);
    }
}

/* One list per client. A subscription's id is that of its request, as it was sent. */
#include "server/subscriptions.h"

#include "base/arena.h"
#include "json/build.h"
#include "server/mcp_keys.h"
#include "server/method_table.h"

#include <stdlib.h>

struct subscription {
    LIST_ENTRY(subscription) link;
    struct arena *arena;
    struct str id; /* JSON */
    struct json id_value;
    bool tools;
};

/* A notification with {"_meta":{"…/subscriptionId":ID}<more>}. */
static void notify_one(struct client *client, const struct subscription *s, const char *method,
                       const char *more)
{
    struct buf params = {0};
    buf_printf(&params, "{\"_meta\":{\"" MCP_SUBSCRIPTION_KEY "\":" STR_FMT "}%s}", STR_ARG(s->id), more);
    reply_notification(client, method, buf_view(&params));
    buf_clear(&params);
}

static struct subscription *add(struct request *r, bool tools)
{
    struct arena *arena = arena_new();
    struct subscription *s = ARENA_NEW(arena, struct subscription);
    s->arena = arena;
    s->id = arena_dup(arena, r->id);
    s->id_value = json_copy(arena, r->id_value);
    s->tools = tools;
    LIST_INSERT_HEAD(&r->client->subscriptions, s, link);
    r->client->subscription_count++;
    return s;
}

enum request_status subscriptions_listen(struct request *r)
{
    const struct json *wanted = json_get_text(r->params, "notifications");
    bool tools = json_is_true(json_get_text(wanted, "toolsListChanged"));
    if (!json_is(wanted, JSON_OBJECT))
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.notifications: expected an object such as {\"toolsListChanged\":true}, got %s",
            param_kind(wanted));
    if (r->client->subscription_count >= SUBSCRIPTIONS_MAX)
        return reply_error(r, RPC_SUBSCRIPTIONS,
                           "this connection has %u subscriptions, the most that is allowed: cancel one with "
                           "notifications/cancelled, or open another connection",
                           SUBSCRIPTIONS_MAX);
    /* Changes of prompts and resources are not acknowledged: toolgate has none. */
    notify_one(r->client, add(r, tools), "notifications/subscriptions/acknowledged",
               tools ? ",\"notifications\":{\"toolsListChanged\":true}" : ",\"notifications\":{}");
    return REQUEST_DONE;
}

static void drop(struct client *client, struct subscription *s)
{
    LIST_REMOVE(s, link);
    client->subscription_count--;
    arena_free(s->arena);
}

void subscriptions_cancel(struct client *client, const struct json *id)
{
    struct subscription *s;
    LIST_FOREACH (s, &client->subscriptions, link)
        if (json_equal(&s->id_value, id)) {
            drop(client, s);
            return;
        }
}

void subscriptions_client_list_changed(struct client *client)
{
    const struct subscription *s;
    if (client->wants_list_changed)
        reply_notification(client, "notifications/tools/list_changed", STR_NONE);
    LIST_FOREACH (s, &client->subscriptions, link)
        if (s->tools)
            notify_one(client, s, "notifications/tools/list_changed", "");
}

void subscriptions_list_changed(struct server *server)
{
    struct client *client;
    LIST_FOREACH (client, &server->clients, link)
        subscriptions_client_list_changed(client);
}

void subscriptions_end(struct client *client)
{
    struct subscription *s;
    LIST_FOREACH (s, &client->subscriptions, link) {
        struct request r = {.client = client, .arena = s->arena, .id = s->id, .modern = true};
        struct json_out *out = reply_open(&r);
        reply_meta(&r);
        json_field_raw(out, MCP_SUBSCRIPTION_KEY, s->id);
        json_close(out, '}');
        reply_close(&r);
    }
    subscriptions_clear(client);
}

void subscriptions_clear(struct client *client)
{
    while (!LIST_EMPTY(&client->subscriptions))
        drop(client, LIST_FIRST(&client->subscriptions));
}

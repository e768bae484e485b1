/*
 * What a server has and reports. Its tools are listed after the handshake, then
 * its prompts, resources and resource templates, if it says that it has any: all
 * pages, within bounds, and again whenever the server reports a change. Clients
 * subscribe to single resources: in the legacy era each is a
 * resources/subscribe, in the modern one a subscriptions/listen of its own,
 * whose cancellation ends it. Subscriptions and the level of log messages are
 * sent again after each restart. Progress and log messages are relayed to the
 * call that they are about, and to no other.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/build.h"
#include "json/parse.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RELIST_MAX_MS     10000u /* between the lists of a server that changes all the time */
#define LIST_FRESH_MAX_MS 64000u /* and of one that does not report it */
#define MESSAGE_MAX_BYTES 4096u  /* of relayed text */

/* Instructions are not among them, which the handshake brings. */
static const struct list_kind {
    const char *capability, *noun, *method, *member; /* member: of the response */
    uint32_t max;
    size_t max_bytes; /* of all pages together */
} kinds[UPSTREAM_INSTRUCTIONS] = {
    [UPSTREAM_TOOLS] = {"tools", "tools", "tools/list", "tools", UPSTREAM_TOOLS_MAX, UPSTREAM_LINE_MAX_BYTES},
    [UPSTREAM_PROMPTS] = {"prompts", "prompts", "prompts/list", "prompts", UPSTREAM_TOOLS_MAX,
                          UPSTREAM_LIST_MAX_BYTES},
    [UPSTREAM_RESOURCES] = {"resources", "resources", "resources/list", "resources", UPSTREAM_RESOURCES_MAX,
                            UPSTREAM_LIST_MAX_BYTES},
    [UPSTREAM_TEMPLATES] = {"resources", "resource templates", "resources/templates/list",
                            "resourceTemplates", UPSTREAM_TOOLS_MAX, UPSTREAM_LIST_MAX_BYTES},
};

/* ---- subscriptions to resources, and the level of log messages --------------------------- */

struct mcp_subscription {
    LIST_ENTRY(mcp_subscription) entry;
    unsigned wanted; /* how many times */
    uint64_t listen; /* modern: the request that waits; 0: none */
    bool sent;
    size_t len;
    char uri[];
};

static void listen_again(struct mcp_client *client);

static struct mcp_subscription *find_subscription(struct mcp_client *client, struct str uri)
{
    struct mcp_subscription *s;
    LIST_FOREACH (s, &client->subscriptions, entry)
        if (str_eq((struct str){s->uri, s->len}, uri))
            return s;
    return NULL;
}

/* Of the legacy era, the beginning; of the modern one, the end. */
static void on_subscribed(struct pending_request *pending, const struct mcp_message *message)
{
    struct mcp_client *client = pending->client;
    struct mcp_subscription *s = pending->subscription;
    pending_remove(pending);
    if (message->error.len)
        log_event(LOG_WARN, "upstream_subscription_refused", LOG_STR("upstream", client->spec->name),
                  LOG_STR("why", mcp_request_error(client, mcp_client_scratch(client), message)),
                  LOG_TEXT("effect", "changes of this resource are not reported"));
    if (!client->modern || !s)
        return;
    s->listen = 0;
    s->sent = message->error.len != 0; /* an error is final */
    if (!s->sent)
        listen_again(client);
}

static void send_subscription(struct mcp_client *client, struct mcp_subscription *s)
{
    struct pending_request *pending;
    struct str uri = {s->uri, s->len};
    if (client->modern) { /* whose response ends it: there is no time for that */
        struct buf resources = {0};
        struct json_out out = json_out(&resources);
        json_open(&out, '{');
        json_field_strs(&out, "resourceSubscriptions", &uri, 1);
        json_close(&out, '}');
        pending = mcp_request(client, "subscriptions/listen", on_subscribed, 0,
                              MCP_PARAMS(FIELD_RAW("notifications", buf_view(&resources))));
        buf_clear(&resources);
    } else {
        pending = mcp_request(client, "resources/subscribe", on_subscribed, mcp_client_start_ms(client),
                              MCP_PARAMS(FIELD_STR("uri", uri)));
    }
    if (!pending) {
        listen_again(client);
        return;
    }
    s->sent = true;
    s->listen = client->modern ? pending->id : 0;
    pending->subscription = client->modern ? s : NULL;
}

/* A server that does not take it says so in the response, which changes nothing. */
static void on_ignored(struct pending_request *pending, const struct mcp_message *message)
{
    (void)message;
    pending_remove(pending);
}

uint32_t mcp_client_subscriptions(const struct mcp_client *client)
{
    return client->subscription_count;
}

const char *mcp_client_subscribe(struct mcp_client *client, struct str uri)
{
    struct mcp_subscription *s = find_subscription(client, uri);
    if (client->ready && !client->has_subscriptions && !client->modern)
        return "does not report changes of resources";
    if (!s && client->subscription_count == UPSTREAM_SUBSCRIPTIONS_MAX)
        return "has as many subscriptions as it may have";
    if (!s) {
        s = alloc_zeroed(sizeof(*s) + uri.len + 1);
        memcpy(s->uri, uri.at, uri.len);
        s->len = uri.len;
        LIST_INSERT_HEAD(&client->subscriptions, s, entry);
        client->subscription_count++;
    }
    s->wanted++;
    if (client->ready && !s->sent)
        send_subscription(client, s);
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
    struct mcp_subscription *s = find_subscription(client, uri);
    if (!s || --s->wanted)
        return;
    struct pending_request *pending = s->listen ? pending_find(client, s->listen) : NULL;
    if (pending) {
        pending_remove(pending);
        mcp_request_cancel(client, s->listen, "unsubscribed");
    }
    if (!client->modern && s->sent && client->ready)
        mcp_request(client, "resources/unsubscribe", on_ignored, mcp_client_start_ms(client),
                    MCP_PARAMS(FIELD_STR("uri", uri)));
    LIST_REMOVE(s, entry);
    client->subscription_count--;
    free(s);
}

const char *mcp_log_level_name(int level)
{
    static const char *const names[] = {"debug", "info",     "notice", "warning",
                                        "error", "critical", "alert",  "emergency"};
    return names[level];
}

/* In the modern era each request says it (put_meta). */
static void send_level(struct mcp_client *client)
{
    if (client->modern || !client->ready || !client->has_logging || client->log_level < 0)
        return;
    if (!mcp_request(client, "logging/setLevel", on_ignored, mcp_client_start_ms(client),
                     MCP_PARAMS(FIELD_TEXT("level", mcp_log_level_name(client->log_level)))))
        listen_again(client);
}

void mcp_client_set_log_level(struct mcp_client *client, int level)
{
    client->log_level = level;
    send_level(client);
}

/* The server is up: what it has not been sent yet. */
static void send_subscriptions(struct mcp_client *client)
{
    struct mcp_subscription *s;
    send_level(client);
    LIST_FOREACH (s, &client->subscriptions, entry)
        if (!s->sent && client->ready)
            send_subscription(client, s);
}

/* ---- the modern subscription to changes of lists -------------------------------------------- */

/* The response ends the subscription. An error is final. */
static void on_listen_end(struct pending_request *pending, const struct mcp_message *message)
{
    struct mcp_client *client = pending->client;
    pending_remove(pending);
    client->listens = message->error.len != 0;
    for (size_t i = 0; i < UPSTREAM_LISTS && client->listens; i++)
        client->lists[i].announces = false;
    if (!message->error.len)
        listen_again(client);
}

static void listen_to_lists(struct mcp_client *client)
{
    char lists[128];
    snprintf(lists, sizeof(lists), "{\"toolsListChanged\":true%s%s}",
             client->lists[UPSTREAM_PROMPTS].announces ? ",\"promptsListChanged\":true" : "",
             client->lists[UPSTREAM_RESOURCES].announces ? ",\"resourcesListChanged\":true" : "");
    client->listens |= mcp_request(client, "subscriptions/listen", on_listen_end, 0,
                                   MCP_PARAMS(FIELD_RAW("notifications", str_of(lists)))) != NULL;
}

static void on_relisten(void *owner)
{
    struct mcp_client *client = owner;
    if (!client->ready)
        return;
    if (client->modern && !client->listens)
        listen_to_lists(client);
    send_subscriptions(client);
}

/* MCP_RELISTEN_MS from now: the subscriptions that the server has ended without an error, and what it could
 * not be told because it reads nothing. */
static void listen_again(struct mcp_client *client)
{
    uint32_t ms = client->spec->resubscribe_ms ? client->spec->resubscribe_ms : MCP_RELISTEN_MS;
    if (!timer_is_set(&client->relisten))
        timer_set(&client->relisten, client->loop, ms, on_relisten, client);
}

/* ---- lists -------------------------------------------------------------------------------------- */

static void on_page(struct pending_request *pending, const struct mcp_message *message);

static void clear(struct mcp_listing *listing)
{
    arena_free(listing->arena);
    *listing = (struct mcp_listing){0};
}

void mcp_lists_lost(struct mcp_client *client)
{
    struct mcp_subscription *s;
    for (size_t i = 0; i < UPSTREAM_LISTS; i++) {
        timer_clear(&client->lists[i].relist);
        clear(&client->lists[i].listing);
    }
    LIST_FOREACH (s, &client->subscriptions, entry) {
        s->sent = false;
        s->listen = 0;
    }
}

void mcp_lists_free(struct mcp_client *client)
{
    struct mcp_subscription *s;
    mcp_lists_lost(client);
    for (size_t i = 0; i < UPSTREAM_LISTS; i++)
        tool_list_unref(client->lists[i].list);
    while ((s = LIST_FIRST(&client->subscriptions))) {
        LIST_REMOVE(s, entry);
        free(s);
    }
}

static void relist_soon(struct mcp_client *client, enum upstream_list which);

static void request_page(struct mcp_list *list, struct str cursor)
{
    struct mcp_client *client = list->client;
    uint32_t ms = client->ready ? mcp_client_start_ms(client) : 0; /* else the start has its own deadline */
    struct pending_request *pending = mcp_request(client, kinds[list->which].method, on_page, ms,
                                                  MCP_PARAMS(FIELD_OPTIONAL("cursor", cursor)));
    if (pending) {
        pending->list = list;
        return;
    }
    clear(&list->listing);
    relist_soon(client, list->which);
}

void mcp_list_fetch(struct mcp_list *list)
{
    clear(&list->listing);
    list->listing.arena = arena_new();
    request_page(list, STR_NONE);
}

static void on_relist(void *owner)
{
    struct mcp_list *list = owner;
    if (list->listing.arena)
        list->listing.changed = true;
    else if (list->client->ready) /* before, nothing may be asked; once it is up, all is listed anyway */
        mcp_list_fetch(list);
}

/* One list for a burst of changes; the interval doubles while changes go on. */
static void relist_soon(struct mcp_client *client, enum upstream_list which)
{
    struct mcp_list *list = &client->lists[which];
    int64_t now = clock_mono_us();
    if (timer_is_set(&list->relist) || (which != UPSTREAM_TOOLS && !list->offered))
        return;
    bool quiet = now - list->relist_us > (int64_t)RELIST_MAX_MS * 1000;
    list->relist_ms = quiet ? MCP_LIST_SETTLE_MS : list->relist_ms * 2;
    if (list->relist_ms > RELIST_MAX_MS)
        list->relist_ms = RELIST_MAX_MS;
    list->relist_us = now + (int64_t)list->relist_ms * 1000;
    timer_set(&list->relist, client->loop, list->relist_ms, on_relist, list);
}

void mcp_lists_refresh(struct mcp_client *client, enum upstream_list which)
{
    struct mcp_list *list = &client->lists[which];
    bool old = clock_mono_us() - list->listed_us > (int64_t)list->fresh_ms * 1000;
    if (!client->ready || !list->offered || list->listing.arena || !old)
        return;
    if (!list->announces || (client->kind->listens && !client->kind->listens(client->transport)))
        mcp_list_fetch(list);
}

void mcp_list_replace(struct mcp_list *list, const struct json *items)
{
    struct tool_list *now = tool_list_new(items), *before = list->list;
    bool differs = !before || tool_list_hash(before) != tool_list_hash(now);
    /* A definition may have the time in it: clients that hear of the change list again. */
    if (!differs || !before)
        list->fresh_ms = MCP_LIST_FRESH_MS;
    else if (list->fresh_ms < LIST_FRESH_MAX_MS)
        list->fresh_ms *= 2;
    if (differs)
        list->list = now;
    tool_list_unref(differs ? before : now);
    if (differs)
        upstream_listed(list->client->upstream, list->which);
}

void mcp_lists_offered(struct mcp_client *client, const struct json *capabilities)
{
    for (size_t i = 0; i < UPSTREAM_INSTRUCTIONS; i++) {
        const struct json *capability = json_get_text(capabilities, kinds[i].capability);
        client->lists[i].offered = i == UPSTREAM_TOOLS || json_is(capability, JSON_OBJECT);
        client->lists[i].announces = json_is_true(json_get_text(capability, "listChanged"));
    }
}

static void finish_list(struct mcp_list *list)
{
    struct mcp_client *client = list->client;
    struct mcp_listing *listing = &list->listing;
    enum upstream_list which = list->which;
    struct json items = json_array(listing->items, listing->count);
    bool changed_again = listing->changed, first = which == UPSTREAM_TOOLS && !client->ready;
    if (listing->truncated)
        log_event(LOG_WARN, "upstream_list_truncated", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("of", kinds[which].noun), LOG_TEXT("why", listing->truncated),
                  LOG_NUM("listed", listing->count));
    list->listed_us = clock_mono_us();
    mcp_list_replace(list, &items);
    clear(listing);
    if (changed_again)
        relist_soon(client, which);
    if (!first)
        return;
    /* The server is up with its tools: the rest does not keep calls waiting. */
    if (client->modern)
        listen_to_lists(client);
    mcp_client_up(client);
    send_subscriptions(client);
    for (list = &client->lists[UPSTREAM_TOOLS + 1];
         client->ready && list <= &client->lists[UPSTREAM_TEMPLATES]; list++) {
        if (list->offered) {
            mcp_list_fetch(list);
            continue;
        }
        /* What an earlier start had, or the server that this one replaces, is gone. Unlike an empty list it
         * is no array: the server has none of these. */
        static const struct json none = {.type = JSON_NULL};
        mcp_list_replace(list, &none);
    }
}

/* Adds a page, and asks for the next one if there is one and the bounds allow it. */
static void add_page(struct mcp_list *list, const struct json *items, struct str cursor)
{
    struct mcp_listing *listing = &list->listing;
    const struct list_kind *kind = &kinds[list->which];
    uint32_t count = items->len, room = kind->max - listing->count;
    if (count > room) {
        count = room;
        listing->truncated = "more than one server may have";
    }
    for (uint32_t i = 0; i < count; i++) {
        listing->items = arena_grow(listing->arena, listing->items, listing->count, sizeof(*listing->items));
        listing->items[listing->count++] = items->items[i];
    }
    for (uint32_t i = 0; cursor.len && i < listing->pages; i++)
        if (str_eq(listing->cursors[i], cursor))
            listing->truncated = "a page links back to an earlier one";
    if (cursor.len && listing->pages + 1 >= MCP_PAGES_MAX)
        listing->truncated = "too many pages";
    else if (cursor.len && listing->bytes >= kind->max_bytes)
        listing->truncated = "the list is too long";
    if (!cursor.len || listing->truncated) {
        finish_list(list);
        return;
    }
    listing->cursors[listing->pages++] = cursor;
    request_page(list, cursor);
}

/* If a page is unusable, the last list that could be read stays in force; a server that is starting must list
 * its tools. */
static void on_page(struct pending_request *pending, const struct mcp_message *message)
{
    static const struct json nothing = {.type = JSON_ARRAY};
    struct mcp_client *client = pending->client;
    struct mcp_list *list = pending->list;
    struct mcp_listing *listing = &list->listing;
    const struct list_kind *kind = &kinds[list->which];
    struct json_error error;
    struct json page;
    pending_remove(pending);
    if (!listing->arena)
        return;
    struct str text = arena_dup(listing->arena, message->result), why = STR_NONE;
    bool read = mcp_request_read(client, listing->arena, text, &page, &error);
    const struct json *items = read ? json_get_text(&page, kind->member) : NULL;
    if (!text.len)
        why = mcp_request_error(client, listing->arena, message);
    else if (!read)
        why = arena_printf(listing->arena, "the response cannot be read: %s", error.text);
    else if (!json_is(items, JSON_ARRAY))
        why = arena_printf(listing->arena, "the response has no array `%s`", kind->member);
    bool has_none =
        why.len && (!client->ready || list->which != UPSTREAM_TOOLS) && strstr(why.at, "error -32601");
    if (has_none)
        items = &nothing;
    if (items && (!why.len || has_none)) {
        listing->bytes += text.len;
        add_page(list, items, read ? json_str(json_get_text(&page, "nextCursor")) : STR_NONE);
    } else if (!client->ready) {
        mcp_client_fail(client, "it does not list its tools: " STR_FMT, STR_ARG(why));
    } else {
        log_event(LOG_WARN, "upstream_list_stale", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("of", kind->noun), LOG_STR("why", why));
        list->listed_us = clock_mono_us();
        clear(listing);
    }
}

/* ---- notifications ------------------------------------------------------------------------------ */

/* Progress renews the call's timeout. It is relayed if it advances, and not too often. */
static void on_progress(struct mcp_client *client, const struct json *params)
{
    const struct json *token = json_get_text(params, "progressToken");
    struct pending_request *pending = NULL;
    double progress = 0, total = 0;
    uint64_t held;
    if (token)
        pending = pending_find(client, mcp_message_own_id((struct str){token->raw, token->raw_len}));
    if (!pending || !pending->call || !pending->call->request->progress ||
        !json_double(json_get_text(params, "progress"), &progress)) {
        mcp_client_ignore(client, "progress of an unknown request", STR_NONE);
        return;
    }
    mcp_call_set_deadline(pending);
    if (!isfinite(progress) || (pending->has_progress && progress <= pending->progress))
        return;
    pending->has_progress = true;
    pending->progress = progress;
    if (!rate_limit_allow(&pending->progress_rate, MCP_RELAYED_PER_S, &held))
        return;
    if (!json_double(json_get_text(params, "total"), &total) || !isfinite(total))
        total = 0;
    const struct upstream_request *request = pending->call->request;
    struct str text = str_cut(json_str(json_get_text(params, "message")), MESSAGE_MAX_BYTES);
    request->progress(request->listener, progress, total, text);
}

/* Relayed to the call that it concerns; if that is unknown, only logged. */
static void on_log_message(struct mcp_client *client, uint64_t about, const struct json *params)
{
    const struct json *data = json_get_text(params, "data");
    struct str level = json_str(json_get_text(params, "level")), text = json_str(data);
    if (data && data->type != JSON_STRING)
        text = json_to_str(client->scratch, data);
    text = str_cut(text, MESSAGE_MAX_BYTES);
    log_event(LOG_DEBUG, "upstream_message", LOG_STR("upstream", client->spec->name),
              LOG_STR("message_level", str_cut(level, 16)),
              LOG_STR("text", mcp_client_redact(client, client->scratch, text)),
              LOG_NUM("not_logged", client->not_logged));
    struct pending_request *pending = pending_subject(client, about);
    const struct upstream_request *request = pending ? pending->call->request : NULL;
    if (request && request->log && level.len)
        request->log(request->listener, level, text);
}

void mcp_notification(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    char change[64];
    struct json params;
    for (size_t i = 0; i < UPSTREAM_INSTRUCTIONS; i++) {
        snprintf(change, sizeof(change), "notifications/%s/list_changed", kinds[i].capability);
        if (mcp_message_is(message, change))
            relist_soon(client, (enum upstream_list)i);
    }
    bool progress = mcp_message_is(message, "notifications/progress"),
         log = mcp_message_is(message, "notifications/message"),
         updated = mcp_message_is(message, "notifications/resources/updated"); /* subscribers read again */
    struct rate_limit *rate = log ? &client->message_rate : updated ? &client->update_rate : NULL;
    if (!(progress || log || updated) ||
        (rate && !rate_limit_allow(rate, MCP_RELAYED_PER_S, &client->not_logged)))
        return;
    if (!mcp_request_read(client, mcp_client_scratch(client), message->params, &params, NULL))
        mcp_client_ignore(client, "a notification without readable params", message->method);
    else if (progress)
        on_progress(client, &params);
    else if (log)
        on_log_message(client, about, &params);
    else if (json_str(json_get_text(&params, "uri")).len)
        upstream_updated(client->upstream, json_str(json_get_text(&params, "uri")));
}

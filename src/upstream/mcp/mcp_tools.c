/*
 * tools/list: all pages, within bounds, after the handshake and again whenever
 * the server reports a change; and the modern subscription to such reports.
 */
#include "base/arena.h"
#include "base/log.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdlib.h>

#define LIST_MAX_BYTES UPSTREAM_LINE_MAX_BYTES /* of all pages together */
#define RELISTEN_MS    10000u                  /* from the end of a subscription to the next */
#define RELIST_MAX_MS  10000u                  /* between the lists of a server that changes all the time */

static void on_page(struct mcp_client *client, struct pending_request *pending,
                    const struct mcp_message *message);

void mcp_tools_clear(struct tools_listing *listing)
{
    arena_free(listing->arena);
    free(listing->tools);
    *listing = (struct tools_listing){0};
}

static void request_page(struct mcp_client *client, struct str cursor)
{
    uint32_t ms = client->ready ? mcp_client_start_ms(client) : 0; /* else the start has its own deadline */
    struct pending_request *pending = mcp_request_begin(client, "tools/list", on_page, ms);
    if (!pending) {
        mcp_tools_clear(&client->listing);
        return;
    }
    if (cursor.len) {
        buf_text(&client->out, "\"cursor\":");
        json_write_string(&client->out, cursor);
    }
    mcp_request_meta(client, 0, cursor.len > 0, NULL);
    mcp_request_send(client, pending->id, "tools/list", STR_NONE, NULL);
}

void mcp_tools_fetch(struct mcp_client *client)
{
    mcp_tools_clear(&client->listing);
    client->listing.arena = arena_new();
    request_page(client, STR_NONE);
}

static void on_relist(void *owner)
{
    struct mcp_client *client = owner;
    if (client->listing.arena)
        client->listing.changed = true;
    else if (client->open)
        mcp_tools_fetch(client);
}

/* One list for a burst of changes; the interval doubles while changes go on. */
void mcp_tools_changed(struct mcp_client *client)
{
    int64_t now = clock_mono_us();
    if (timer_is_set(&client->relist))
        return;
    bool quiet = now - client->relist_us > (int64_t)RELIST_MAX_MS * 1000;
    client->relist_ms = quiet ? MCP_LIST_SETTLE_MS : client->relist_ms * 2;
    if (client->relist_ms > RELIST_MAX_MS)
        client->relist_ms = RELIST_MAX_MS;
    client->relist_us = now + (int64_t)client->relist_ms * 1000;
    timer_set(&client->relist, client->loop, client->relist_ms, on_relist, client);
}

static void subscribe(struct mcp_client *client);

static void on_resubscribe(void *owner)
{
    struct mcp_client *client = owner;
    if (client->ready)
        subscribe(client);
}

/* The response ends the subscription. An error is final. */
static void on_subscription_end(struct mcp_client *client, struct pending_request *pending,
                                const struct mcp_message *message)
{
    pending_remove(&client->pending, pending);
    if (!message->error.len)
        timer_set(&client->relisten, client->loop, RELISTEN_MS, on_resubscribe, client);
}

static void subscribe(struct mcp_client *client)
{
    static const char method[] = "subscriptions/listen";
    struct pending_request *pending = mcp_request_begin(client, method, on_subscription_end, 0);
    if (!pending)
        return;
    buf_text(&client->out, "\"notifications\":{\"toolsListChanged\":true}");
    mcp_request_meta(client, 0, true, NULL);
    mcp_request_send(client, pending->id, method, STR_NONE, NULL);
}

static void finish_list(struct mcp_client *client)
{
    struct tools_listing *listing = &client->listing;
    struct json tools = json_array(listing->tools, listing->count);
    struct tool_list *list = tool_list_new(&tools), *before = client->tools;
    bool changed_again = listing->changed, first = !client->ready;
    if (listing->truncated)
        log_event(LOG_WARN, "upstream_tools_truncated", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("why", listing->truncated), LOG_NUM("tools", listing->count));
    mcp_tools_clear(listing);
    bool differs = !before || tool_list_hash(before) != tool_list_hash(list);
    if (differs)
        client->tools = list;
    tool_list_unref(differs ? before : list);
    if (changed_again)
        mcp_tools_changed(client);
    if (first && client->modern)
        subscribe(client);
    if (differs)
        client->hooks->tools(client->owner);
    if (first)
        client->life->up(client);
}

static void add_tools(struct tools_listing *listing, const struct json *tools)
{
    uint32_t count = tools->len;
    if (count > UPSTREAM_TOOLS_MAX - listing->count) {
        count = UPSTREAM_TOOLS_MAX - listing->count;
        listing->truncated = "more tools than one server may have";
    }
    listing->tools = realloc(listing->tools, (listing->count + count + 1) * sizeof(*listing->tools));
    if (!listing->tools)
        abort();
    for (uint32_t i = 0; i < count; i++)
        listing->tools[listing->count++] = tools->items[i];
}

/* The next page, if there is one and the bounds allow it. */
static void continue_list(struct mcp_client *client, struct str cursor)
{
    struct tools_listing *listing = &client->listing;
    for (uint32_t i = 0; cursor.len && i < listing->pages; i++)
        if (str_eq(listing->cursors[i], cursor))
            listing->truncated = "a page links back to an earlier one";
    if (cursor.len && listing->pages + 1 >= MCP_PAGES_MAX)
        listing->truncated = "too many pages";
    else if (cursor.len && listing->bytes >= LIST_MAX_BYTES)
        listing->truncated = "the list is too long";
    if (!cursor.len || listing->truncated) {
        finish_list(client);
        return;
    }
    listing->cursors[listing->pages++] = cursor;
    request_page(client, cursor);
}

static void on_page(struct mcp_client *client, struct pending_request *pending,
                    const struct mcp_message *message)
{
    static const struct json no_tools = {.type = JSON_ARRAY};
    struct tools_listing *listing = &client->listing;
    struct json_error error;
    struct json page;
    pending_remove(&client->pending, pending);
    if (!listing->arena)
        return;
    struct str text = arena_dup(listing->arena, message->result), why = STR_NONE;
    bool read = mcp_request_read(listing->arena, text, &page, &error);
    const struct json *tools = read ? json_get_text(&page, "tools") : NULL;
    if (!text.len)
        why = mcp_request_error(client, listing->arena, message);
    else if (!read)
        why = arena_printf(listing->arena, "the response cannot be read: %s", error.text);
    else if (!json_is(tools, JSON_ARRAY))
        why = STR_LIT("the response has no array `tools`");
    if (why.len && !client->ready && strstr(why.at, "error -32601")) /* a server without tools */
        tools = &no_tools;
    else if (why.len || !tools) {
        if (!client->ready) {
            mcp_client_fail(client, "it does not list its tools: " STR_FMT, STR_ARG(why));
            return;
        }
        /* The last list that could be read stays in force. */
        log_event(LOG_WARN, "upstream_tools_stale", LOG_STR("upstream", client->spec->name),
                  LOG_STR("why", why));
        mcp_tools_clear(listing);
        return;
    }
    listing->bytes += text.len;
    add_tools(listing, tools);
    continue_list(client, read ? json_str(json_get_text(&page, "nextCursor")) : STR_NONE);
}

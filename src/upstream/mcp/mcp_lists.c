/*
 * What a server lists: its tools after the handshake, then its prompts,
 * resources and resource templates, if it says that it has any. All pages,
 * within bounds, and again whenever the server reports a change; and the
 * modern subscription to such reports.
 */
#include "base/arena.h"
#include "base/log.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdlib.h>

#define RELIST_MAX_MS 10000u /* between the lists of a server that changes all the time */

const struct mcp_list_kind mcp_list_kinds[UPSTREAM_LISTS] = {
    [UPSTREAM_TOOLS] = {"tools", "tools/list", "tools", UPSTREAM_TOOLS_MAX, UPSTREAM_LINE_MAX_BYTES},
    [UPSTREAM_PROMPTS] = {"prompts", "prompts/list", "prompts", UPSTREAM_TOOLS_MAX, UPSTREAM_LIST_MAX_BYTES},
    [UPSTREAM_RESOURCES] = {"resources", "resources/list", "resources", UPSTREAM_RESOURCES_MAX,
                            UPSTREAM_LIST_MAX_BYTES},
    [UPSTREAM_TEMPLATES] = {"resource templates", "resources/templates/list", "resourceTemplates",
                            UPSTREAM_TOOLS_MAX, UPSTREAM_LIST_MAX_BYTES},
};

static void on_page(struct mcp_client *client, struct pending_request *pending,
                    const struct mcp_message *message);

static const struct mcp_list_kind *kind_of(const struct mcp_list *list)
{
    return &mcp_list_kinds[list - list->client->lists];
}

static bool is_tools(const struct mcp_list *list)
{
    return list == &list->client->lists[UPSTREAM_TOOLS];
}

static void clear(struct mcp_listing *listing)
{
    arena_free(listing->arena);
    free(listing->items);
    *listing = (struct mcp_listing){0};
}

void mcp_lists_clear(struct mcp_client *client)
{
    for (size_t i = 0; i < UPSTREAM_LISTS; i++) {
        timer_clear(&client->lists[i].relist);
        clear(&client->lists[i].listing);
    }
}

static void request_page(struct mcp_list *list, struct str cursor)
{
    struct mcp_client *client = list->client;
    const char *method = kind_of(list)->method;
    uint32_t ms = client->ready ? mcp_client_start_ms(client) : 0; /* else the start has its own deadline */
    struct pending_request *pending = mcp_request_begin(client, method, on_page, ms);
    if (!pending) {
        clear(&list->listing);
        return;
    }
    pending->list = list;
    if (cursor.len) {
        buf_text(&client->out, "\"cursor\":");
        json_write_string(&client->out, cursor);
    }
    mcp_request_meta(client, 0, cursor.len > 0, NULL);
    mcp_request_send(client, pending->id, method, STR_NONE, NULL);
}

static void fetch(struct mcp_list *list)
{
    clear(&list->listing);
    list->listing.arena = arena_new();
    request_page(list, STR_NONE);
}

void mcp_lists_fetch_tools(struct mcp_client *client)
{
    fetch(&client->lists[UPSTREAM_TOOLS]);
}

static void on_relist(void *owner)
{
    struct mcp_list *list = owner;
    if (list->listing.arena)
        list->listing.changed = true;
    else if (list->client->open)
        fetch(list);
}

/* One list for a burst of changes; the interval doubles while changes go on. */
void mcp_lists_changed(struct mcp_client *client, enum upstream_list which)
{
    struct mcp_list *list = &client->lists[which];
    int64_t now = clock_mono_us();
    if (timer_is_set(&list->relist) || (!is_tools(list) && !list->offered))
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
    bool old = clock_mono_us() - list->listed_us > (int64_t)MCP_LIST_FRESH_MS * 1000;
    if (client->ready && list->offered && !list->announces && !list->listing.arena && old)
        fetch(list);
}

static void subscribe(struct mcp_client *client);

static void on_resubscribe(void *owner)
{
    struct mcp_client *client = owner;
    if (!client->ready)
        return;
    if (!client->listens)
        subscribe(client);
    mcp_subscriptions_begin(client);
}

void mcp_lists_listen_again(struct mcp_client *client)
{
    uint32_t ms = client->spec->resubscribe_ms ? client->spec->resubscribe_ms : MCP_RELISTEN_MS;
    timer_set(&client->relisten, client->loop, ms, on_resubscribe, client);
}

/* The response ends the subscription. An error is final. */
static void on_subscription_end(struct mcp_client *client, struct pending_request *pending,
                                const struct mcp_message *message)
{
    pending_remove(&client->pending, pending);
    client->listens = message->error.len != 0;
    if (!message->error.len)
        mcp_lists_listen_again(client);
}

static void subscribe(struct mcp_client *client)
{
    static const char method[] = "subscriptions/listen";
    struct pending_request *pending = mcp_request_begin(client, method, on_subscription_end, 0);
    if (!pending)
        return;
    client->listens = true;
    buf_text(&client->out, "\"notifications\":{\"toolsListChanged\":true");
    if (client->lists[UPSTREAM_PROMPTS].announces)
        buf_text(&client->out, ",\"promptsListChanged\":true");
    if (client->lists[UPSTREAM_RESOURCES].announces)
        buf_text(&client->out, ",\"resourcesListChanged\":true");
    buf_byte(&client->out, '}');
    mcp_request_meta(client, 0, true, NULL);
    mcp_request_send(client, pending->id, method, STR_NONE, NULL);
}

/* What an earlier start had, or the server that this one replaces. */
static void forget(struct mcp_list *list)
{
    tool_list_unref(list->list);
    list->list = NULL;
    list->client->hooks->listed(list->client->owner, (enum upstream_list)(list - list->client->lists));
}

/* The server is up with its tools: the rest does not keep calls waiting. */
static void begin_others(struct mcp_client *client)
{
    if (client->modern)
        subscribe(client);
    client->life->up(client);
    mcp_subscriptions_begin(client);
    for (size_t i = UPSTREAM_TOOLS + 1; client->ready && i < UPSTREAM_LISTS; i++)
        if (client->lists[i].offered)
            fetch(&client->lists[i]);
        else
            forget(&client->lists[i]);
}

static void finish_list(struct mcp_list *list)
{
    struct mcp_client *client = list->client;
    struct mcp_listing *listing = &list->listing;
    struct json items = json_array(listing->items, listing->count);
    struct tool_list *now = tool_list_new(&items), *before = list->list;
    bool changed_again = listing->changed, first = is_tools(list) && !client->ready;
    if (listing->truncated)
        log_event(LOG_WARN, "upstream_list_truncated", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("of", kind_of(list)->noun), LOG_TEXT("why", listing->truncated),
                  LOG_NUM("listed", listing->count));
    clear(listing);
    list->listed_us = clock_mono_us();
    bool differs = !before || tool_list_hash(before) != tool_list_hash(now);
    if (differs)
        list->list = now;
    tool_list_unref(differs ? before : now);
    if (changed_again)
        mcp_lists_changed(client, (enum upstream_list)(list - client->lists));
    if (differs)
        client->hooks->listed(client->owner, (enum upstream_list)(list - client->lists));
    if (first)
        begin_others(client);
}

static void add_items(struct mcp_list *list, const struct json *items)
{
    struct mcp_listing *listing = &list->listing;
    uint32_t count = items->len, room = kind_of(list)->max - listing->count;
    if (count > room) {
        count = room;
        listing->truncated = "more than one server may have";
    }
    listing->items = realloc(listing->items, (listing->count + count + 1) * sizeof(*listing->items));
    if (!listing->items)
        abort();
    for (uint32_t i = 0; i < count; i++)
        listing->items[listing->count++] = items->items[i];
}

/* The next page, if there is one and the bounds allow it. */
static void continue_list(struct mcp_list *list, struct str cursor)
{
    struct mcp_listing *listing = &list->listing;
    for (uint32_t i = 0; cursor.len && i < listing->pages; i++)
        if (str_eq(listing->cursors[i], cursor))
            listing->truncated = "a page links back to an earlier one";
    if (cursor.len && listing->pages + 1 >= MCP_PAGES_MAX)
        listing->truncated = "too many pages";
    else if (cursor.len && listing->bytes >= kind_of(list)->max_bytes)
        listing->truncated = "the list is too long";
    if (!cursor.len || listing->truncated) {
        finish_list(list);
        return;
    }
    listing->cursors[listing->pages++] = cursor;
    request_page(list, cursor);
}

/* The last list that could be read stays in force; a server that is starting must list its tools. */
static void refuse_page(struct mcp_list *list, struct str why)
{
    struct mcp_client *client = list->client;
    if (!client->ready) {
        mcp_client_fail(client, "it does not list its tools: " STR_FMT, STR_ARG(why));
        return;
    }
    log_event(LOG_WARN, "upstream_list_stale", LOG_STR("upstream", client->spec->name),
              LOG_TEXT("of", kind_of(list)->noun), LOG_STR("why", why));
    clear(&list->listing);
}

static void on_page(struct mcp_client *client, struct pending_request *pending,
                    const struct mcp_message *message)
{
    static const struct json nothing = {.type = JSON_ARRAY};
    struct mcp_list *list = pending->list;
    struct mcp_listing *listing = &list->listing;
    const char *member = kind_of(list)->member;
    struct json_error error;
    struct json page;
    pending_remove(&client->pending, pending);
    if (!listing->arena)
        return;
    struct str text = arena_dup(listing->arena, message->result), why = STR_NONE;
    bool read = mcp_request_read(listing->arena, text, &page, &error);
    const struct json *items = read ? json_get_text(&page, member) : NULL;
    if (!text.len)
        why = mcp_request_error(client, listing->arena, message);
    else if (!read)
        why = arena_printf(listing->arena, "the response cannot be read: %s", error.text);
    else if (!json_is(items, JSON_ARRAY))
        why = arena_printf(listing->arena, "the response has no array `%s`", member);
    if (why.len && (!client->ready || !is_tools(list)) && strstr(why.at, "error -32601")) /* it has none */
        items = &nothing;
    else if (why.len || !items) {
        refuse_page(list, why);
        return;
    }
    listing->bytes += text.len;
    add_items(list, items);
    continue_list(list, read ? json_str(json_get_text(&page, "nextCursor")) : STR_NONE);
}

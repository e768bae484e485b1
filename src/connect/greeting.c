/*
 * What a new daemon is told before any request: the client's own initialize (or a ping, which shows that a
 * daemon serves and not only systemd's socket listens), then its log level, its subscriptions, and its
 * tools/list, whose answer shows whether the tools have changed meanwhile. Whether prompts and resources
 * have, the client sees itself: it is told that they may.
 */
#include "base/arena.h"
#include "base/map.h"
#include "connect/bridge.h"
#include "json/canonical.h"
#include "json/parse.h"
#include "json/write.h"
#include "server/mcp_keys.h"

#include <stdio.h>
#include <stdlib.h>

#define HELLO "hello"
#define LEVEL "level"
#define TOOLS "tools"
#define WATCH "watch"

void greeting_keep(char **kept, struct str line)
{
    free(*kept);
    *kept = line.len <= BRIDGE_KEEP_MAX_BYTES ? strndup(line.at, line.len) : NULL;
}

/* The client's request with an id of the bridge: "toolgate/connect/EPOCH/what". */
static void put_request(struct bridge *bridge, struct str line, const char *what)
{
    struct arena *arena = arena_new();
    struct json message;
    struct json_error fault;
    if (json_parse(arena, line, NULL, &message, &fault) == OK || fault.soft) {
        const struct json *id = json_get_text(&message, "id");
        size_t before = (size_t)(id->raw - line.at);
        buf_add(&bridge->greeting, line.at, before);
        buf_printf(&bridge->greeting, "\"" BRIDGE_OWN_ID "%u/%s\"", bridge->epoch, what);
        buf_str(&bridge->greeting, str_from(line, before + id->raw_len));
        buf_byte(&bridge->greeting, '\n');
    }
    arena_free(arena);
}

void greeting_begin(struct bridge *bridge)
{
    buf_clear(&bridge->greeting);
    put_request(bridge,
                bridge->initialize && bridge->is_initialized
                    ? str_of(bridge->initialize)
                    : STR_LIT("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}"),
                HELLO);
}

static void watch(struct bridge *bridge)
{
    struct tracked *s;
    TAILQ_FOREACH (s, &bridge->watched.sent, link)
        put_request(bridge, (struct str){s->line, s->line_len - 1}, WATCH);
}

/* A daemon that has just begun may not know the server's resources yet: it says when it does. */
void greeting_watch_again(struct bridge *bridge)
{
    if (bridge->watch_failed)
        watch(bridge);
    bridge->watch_failed = false;
}

static void greet_further(struct bridge *bridge)
{
    struct tracked *s;
    if (bridge->is_initialized && bridge->has_confirmed)
        buf_text(&bridge->greeting, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    if (bridge->level)
        put_request(bridge, str_of(bridge->level), LEVEL);
    TAILQ_FOREACH (s, &bridge->subscriptions.sent, link)
        buf_add(&bridge->greeting, s->line, s->line_len);
    bridge->watch_failed = false;
    watch(bridge);
    if (bridge->tools.request && bridge->was_open)
        put_request(bridge, str_of(bridge->tools.request), TOOLS);
}

static void tell_others_may_have_changed(struct bridge *bridge)
{
    if (bridge->lists_prompts)
        buf_text(&bridge->to_client,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n");
    if (bridge->lists_resources)
        buf_text(&bridge->to_client,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n");
}

/* ---- tools ---- */

/* Reads a tools/list's answer into `known`; false if it holds no tools. */
static bool read_tools(struct known_tools *known, struct str line)
{
    static const struct json_limits limits = {.nodes = BRIDGE_LIST_NODES};
    struct arena *arena = arena_new();
    struct json message;
    struct json_error fault;
    bool parsed = json_parse(arena, line, &limits, &message, &fault) == OK || fault.soft;
    const struct json *tools = parsed ? json_get_text(json_get_text(&message, "result"), "tools") : NULL;
    bool holds = json_is(tools, JSON_ARRAY);
    if (holds) {
        arena_free(known->arena);
        known->arena = arena_new();
        known->readers = map_new(known->arena);
        known->fingerprint = json_fingerprint(arena, tools, NULL, 0);
        for (uint32_t i = 0; i < tools->len; i++) {
            const struct json *hints = json_get_text(&tools->items[i], "annotations");
            struct str name = json_str(json_get_text(&tools->items[i], "name"));
            if (name.len && json_is_true(json_get_text(hints, "readOnlyHint")))
                map_add(known->readers, arena_dup(known->arena, name), known);
        }
    }
    arena_free(arena);
    return holds;
}

void greeting_learn_tools(struct bridge *bridge, struct str line)
{
    read_tools(&bridge->tools, line);
}

static void tell_list_changed(struct bridge *bridge)
{
    static const char method[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"";
    const struct tracked *s;
    if (!bridge->tools.modern)
        buf_printf(&bridge->to_client, "%s}\n", method);
    TAILQ_FOREACH (s, &bridge->subscriptions.sent, link)
        if (s->tools)
            buf_printf(&bridge->to_client,
                       "%s,\"params\":{\"_meta\":{\"" MCP_SUBSCRIPTION_KEY "\":" STR_FMT "}}}\n", method,
                       STR_ARG(s->id));
}

static void compare_tools(struct bridge *bridge, struct str line)
{
    struct hash128 before = bridge->tools.fingerprint;
    if (read_tools(&bridge->tools, line) && memcmp(&before, &bridge->tools.fingerprint, sizeof(before)) != 0)
        tell_list_changed(bridge);
}

static bool is_error(struct str line)
{
    struct arena *arena = arena_new();
    struct json message;
    struct json_error fault;
    bool error = json_parse(arena, line, NULL, &message, &fault) == OK && json_get_text(&message, "error");
    arena_free(arena);
    return error;
}

bool greeting_reply(struct bridge *bridge, struct str id, struct str line)
{
    char own[64];
    int n = snprintf(own, sizeof(own), BRIDGE_OWN_ID "%u/", bridge->epoch);
    if (!str_starts(id, BRIDGE_OWN_ID))
        return false;
    if (!str_starts(id, own))
        return true;
    struct str what = str_from(id, (size_t)n);
    if (str_is(what, HELLO) && bridge->state == BRIDGE_GREETING) {
        bridge->state = BRIDGE_OPEN;
        bridge->retry_ms = 0;
        greet_further(bridge);
        if (bridge->was_open)
            tell_others_may_have_changed(bridge);
        bridge->was_open = true;
    } else if (str_is(what, TOOLS)) {
        compare_tools(bridge, line);
    } else if (str_is(what, WATCH)) {
        bridge->watch_failed |= is_error(line);
    }
    return true;
}

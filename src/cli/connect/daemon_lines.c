/*
 * What the daemon sends: each answer goes to the request that waits for it, once; questions get an id that no
 * other daemon's question has. And what the bridge sends a new daemon before any request: the client's own
 * initialize (or a ping, which shows that a daemon serves and not only systemd's socket listens), then its
 * log level, its subscriptions, and its tools/list, whose answer shows whether the tools have changed.
 * Whether prompts and resources have, the client finds out itself: the bridge notifies it that they may.
 */
#include "base/arena.h"
#include "base/map.h"
#include "cli/connect/bridge.h"
#include "json/build.h"
#include "json/canonical.h"
#include "json/parse.h"
#include "json/write.h"
#include "server/mcp_keys.h"

#include <stdio.h>
#include <stdlib.h>

#define PARSED_MAX_BYTES 65536u /* of an answer whose id only is read, beyond */

#define HELLO "hello"
#define LEVEL "level"
#define TOOLS "tools"
#define WATCH "watch"

void bridge_put_line(struct buf *to, struct str line, const struct json *id, struct str with)
{
    size_t before = (size_t)(id->raw - line.at);
    buf_add(to, line.at, before);
    buf_str(to, with);
    buf_str(to, str_from(line, before + id->raw_len));
}

void bridge_keep(char **kept, struct str line)
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
        struct str id = arena_printf(arena, "\"" BRIDGE_OWN_ID "%u/%s\"", bridge->epoch, what);
        bridge_put_line(&bridge->greeting, line, json_get_text(&message, "id"), id);
        buf_byte(&bridge->greeting, '\n');
    }
    arena_free(arena);
}

void bridge_greet(struct bridge *bridge)
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
    watch(bridge);
    if (bridge->tools.request && bridge->was_open)
        put_request(bridge, str_of(bridge->tools.request), TOOLS);
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

/* An answer to a request of the bridge's own; false: `id` is another one. */
static bool take_own_reply(struct bridge *bridge, struct str id, struct str line, bool is_error)
{
    static const char *const changed[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n"};
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
        if (bridge->was_open && bridge->lists_prompts)
            buf_text(&bridge->to_client, changed[0]);
        if (bridge->was_open && bridge->lists_resources)
            buf_text(&bridge->to_client, changed[1]);
        bridge->was_open = true;
    } else if (str_is(what, TOOLS)) {
        struct hash128 before = bridge->tools.fingerprint;
        if (read_tools(&bridge->tools, line) &&
            memcmp(&before, &bridge->tools.fingerprint, sizeof(before)) != 0)
            tell_list_changed(bridge);
    } else if (str_is(what, WATCH)) {
        bridge->watch_failed |= is_error;
    }
    return true;
}

/* ---- the daemon's lines ---- */

static void forward(struct bridge *bridge, struct str line)
{
    buf_str(&bridge->to_client, line);
    buf_byte(&bridge->to_client, '\n');
}

/* ---- answers ---- */

static void take_reply(struct bridge *bridge, struct str line, const struct json *id, bool is_error)
{
    struct tracked *request = tracked_find(&bridge->requests.sent, id);
    struct tracked *subscription = request ? NULL : tracked_find(&bridge->subscriptions.sent, id);
    if (request && request->lists && !is_error) {
        bridge_keep(&bridge->tools.request, (struct str){request->line, request->line_len - 1});
        bridge->tools.modern = request->modern;
        read_tools(&bridge->tools, line);
    }
    if (request && request->initializes && !is_error) {
        bridge_keep(&bridge->initialize, (struct str){request->line, request->line_len - 1});
        bridge->is_initialized = true;
    }
    if (request)
        requests_end(&bridge->requests, request);
    /* Only an error ends a subscription for the client: a result says that this daemon stops, and the next
     * one gets the subscription again. */
    if (subscription && is_error)
        requests_end(&bridge->subscriptions, subscription);
    if (request || (subscription && is_error)) /* else it is of a cancelled request */
        forward(bridge, line);
}

/* ---- questions ---- */

#define NO_LONGER_WAITS "the gateway no longer waits for the answer"

void bridge_cancel_question(struct bridge *bridge, struct tracked *question, const char *reason)
{
    buf_printf(
        &bridge->to_client,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" STR_FMT
        ",\"reason\":\"%s\"}}\n",
        STR_ARG(question->id), reason);
    requests_end(&bridge->questions, question);
}

static void take_question(struct bridge *bridge, struct arena *arena, struct str line, const struct json *id)
{
    struct buf own = buf_in(arena);
    struct str theirs = json_to_str(arena, id);
    struct json client_id = *id;
    if (bridge->epoch) {
        struct str text = arena_printf(arena, BRIDGE_OWN_ID "%u/" STR_FMT, bridge->epoch, STR_ARG(theirs));
        client_id = json_string(text);
        bridge_put_line(&own, line, id, json_to_str(arena, &client_id));
        line = buf_view(&own);
    }
    if (bridge->questions.sent_count >= BRIDGE_QUESTIONS_MAX)
        bridge_cancel_question(bridge, TAILQ_FIRST(&bridge->questions.sent), NO_LONGER_WAITS);
    requests_sent(&bridge->questions, tracked_new(TRACKED_REQUEST, STR_NONE, &client_id, theirs));
    forward(bridge, line);
}

/* ---- notifications ---- */

static void take_notification(struct bridge *bridge, struct arena *arena, struct str line,
                              const struct json *message)
{
    struct str method = json_str(json_get_text(message, "method"));
    if (str_is(method, "notifications/cancelled")) { /* it no longer waits for its question's answer */
        struct str id = json_to_str(arena, json_get_text(json_get_text(message, "params"), "requestId"));
        struct tracked *question = TAILQ_FIRST(&bridge->questions.sent);
        while (question && !str_eq(question->tool, id))
            question = TAILQ_NEXT(question, link);
        if (question && id.len) {
            bridge_cancel_question(bridge, question, NO_LONGER_WAITS);
            return;
        }
    }
    if (str_is(method, "notifications/subscriptions/acknowledged")) {
        /* The client gets one acknowledgement, however often the subscription is repeated. */
        const struct json *meta = json_get_text(json_get_text(message, "params"), "_meta");
        struct tracked *s =
            tracked_find(&bridge->subscriptions.sent, json_get_text(meta, MCP_SUBSCRIPTION_KEY));
        if (s && s->acknowledged)
            return;
        if (s)
            s->acknowledged = true;
    }
    /* A daemon that has just begun may not have known the server's resources: now it does. */
    if (str_is(method, "notifications/resources/list_changed") && bridge->watch_failed)
        watch(bridge);
    forward(bridge, line);
}

void bridge_daemon_line(struct bridge *bridge, struct str line)
{
    struct arena *arena = arena_new();
    struct json message = {0}, recovered;
    struct json_error fault;
    bool parsed = line.len <= PARSED_MAX_BYTES && (json_parse(arena, line, NULL, &message, &fault) == OK);
    const struct json *id = parsed ? json_get_text(&message, "id") : NULL;
    if (!parsed) {
        struct str literal = json_recover_id(line);
        if (literal.len && json_parse(arena, literal, NULL, &recovered, &fault) == OK)
            id = &recovered;
    }
    bool has_method = parsed && json_get_text(&message, "method");
    bool is_error = parsed && json_get_text(&message, "error");
    if (!has_method && take_own_reply(bridge, json_str(id), line, is_error))
        ;
    else if (bridge->state != BRIDGE_OPEN)
        bridge_tell(bridge, parsed ? arena_printf(arena, "the daemon refuses: " STR_FMT,
                                                  STR_ARG(json_str(json_get_text(
                                                      json_get_text(&message, "error"), "message"))))
                                         .at
                                   : "the daemon sends no answer to a ping");
    else if (has_method && id)
        take_question(bridge, arena, line, id);
    else if (has_method)
        take_notification(bridge, arena, line, &message);
    else if (id)
        take_reply(bridge, line, id, is_error);
    else
        forward(bridge, line); /* an error about a line whose id could not be read */
    arena_free(arena);
}

/* What the client sends: requests are tracked and wait for the daemon; the rest is for the daemon of now. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "cli/connect/stdio_bridge.h"
#include "cli/connect/bridge.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "server/mcp_keys.h"

#include <stdlib.h>

/* Requests that change nothing: the next daemon answers them, so that no handshake or list fails. */
static const char *const repeatable[] = {
    "initialize",          "ping",
    "tools/list",          "prompts/list",
    "prompts/get",         "resources/list",
    "resources/read",      "resources/templates/list",
    "server/discover",     "logging/setLevel",
    "completion/complete", "toolgate/status",
    "resources/subscribe", "resources/unsubscribe",
};

/* Takes `t` over: it waits for the daemon, or is answered at once if too much waits already. What is for an
 * earlier daemon goes nowhere. */
static void enqueue(struct bridge *bridge, struct tracked *t)
{
    bool is_for_earlier = t->kind == TRACKED_NOTICE && bridge->state != BRIDGE_OPEN && bridge->was_open;
    bool is_too_much = bridge->state == BRIDGE_AWAY && bridge_is_full(bridge, t->line_len);
    t->until_us = clock_mono_us() + bridge->wait_us;
    if (!is_for_earlier && !is_too_much) {
        requests_wait(&bridge->requests, t, false);
        return;
    }
    if (t->kind == TRACKED_REQUEST)
        bridge_answer(bridge, t, UNAVAILABLE_AWAY);
    tracked_free(t);
}

static void pass(struct bridge *bridge, enum tracked_kind kind, struct str line, const struct json *id)
{
    if (line.len)
        enqueue(bridge, tracked_new(kind, line, id, STR_NONE));
}

/* ---- requests ---- */

static bool subscribe(struct bridge *bridge, struct str line, const struct json *message)
{
    struct requests *subscriptions = &bridge->subscriptions;
    if (subscriptions->sent_count >= BRIDGE_SUBSCRIPTIONS || line.len > BRIDGE_KEEP_MAX_BYTES)
        return false;
    struct tracked *s = tracked_new(TRACKED_REQUEST, line, json_get_text(message, "id"), STR_NONE);
    s->tools = json_is_true(
        json_get_text(json_get_text(json_get_text(message, "params"), "notifications"), "toolsListChanged"));
    requests_sent(subscriptions, s);
    if (bridge->state == BRIDGE_OPEN) /* else the greeting has it */
        pass(bridge, TRACKED_NOTICE, line, NULL);
    return true;
}

/* The next daemon gets it again, unless the client has ended it. */
static void keep_watched(struct bridge *bridge, struct str method, struct str line,
                         const struct json *message)
{
    struct str uri = json_str(json_get_text(json_get_text(message, "params"), "uri"));
    struct tracked *watched = TAILQ_FIRST(&bridge->watched.sent);
    while (watched && !str_eq(watched->tool, uri))
        watched = TAILQ_NEXT(watched, link);
    bool begins = str_is(method, "resources/subscribe"), fits = line.len <= BRIDGE_KEEP_MAX_BYTES;
    if (begins && !watched && uri.len && fits && bridge->watched.sent_count < BRIDGE_WATCHED_MAX) {
        requests_sent(&bridge->watched,
                      tracked_new(TRACKED_REQUEST, line, json_get_text(message, "id"), uri));
    } else if (watched && str_is(method, "resources/unsubscribe")) {
        requests_end(&bridge->watched, watched);
    }
}

static void take_request(struct bridge *bridge, struct str line, const struct json *message)
{
    const struct json *params = json_get_text(message, "params");
    struct str method = json_str(json_get_text(message, "method"));
    struct str tool = str_is(method, "tools/call") ? json_str(json_get_text(params, "name")) : STR_NONE;
    struct buf with_session = {0};
    if (bridge->session.len) {
        stdio_bridge_line(&with_session, line, bridge->session);
        line = buf_view(&with_session);
    }
    if (!str_is(method, "subscriptions/listen") || !subscribe(bridge, line, message)) {
        struct tracked *t =
            tracked_new(TRACKED_REQUEST, line, json_get_text(message, "id"), str_cut(tool, 256));
        t->is_call = str_is(method, "tools/call");
        t->reads = t->is_call && bridge->tools.readers && map_get(bridge->tools.readers, tool);
        t->repeats =
            STR_IS_ONE_OF(method, repeatable) && line.len <= BRIDGE_KEEP_MAX_BYTES ? BRIDGE_REPEATS_MAX : 0;
        t->modern = json_get_text(json_get_text(params, "_meta"), MCP_VERSION_KEY);
        t->lists = t->repeats && str_is(method, "tools/list");
        t->initializes = t->repeats && str_is(method, "initialize");
        if (t->initializes)
            bridge->batches = str_is(json_str(json_get_text(params, "protocolVersion")), MCP_2025_03_26);
        if (str_is(method, "logging/setLevel"))
            bridge_keep(&bridge->level, line);
        keep_watched(bridge, method, line, message);
        bridge->lists_prompts |= !t->modern && str_is(method, "prompts/list");
        bridge->lists_resources |= !t->modern && str_is(method, "resources/list");
        enqueue(bridge, t);
    }
    buf_clear(&with_session);
}

/* ---- notifications and answers ---- */

static void take_notification(struct bridge *bridge, struct str line, const struct json *message)
{
    struct str method = json_str(json_get_text(message, "method"));
    if (str_is(method, "notifications/initialized"))
        bridge->has_confirmed = true;
    if (str_is(method, "notifications/cancelled")) {
        const struct json *id = json_get_text(json_get_text(message, "params"), "requestId");
        struct tracked *t = tracked_find(&bridge->requests.waiting, id);
        if (t && !t->sent) { /* then no daemon needs to know */
            requests_end(&bridge->requests, t);
            return;
        }
        if ((t = tracked_find(&bridge->requests.sent, id)) && !t->initializes)
            requests_end(&bridge->requests, t);
        else if ((t = tracked_find(&bridge->subscriptions.sent, id)))
            requests_end(&bridge->subscriptions, t);
    }
    pass(bridge, TRACKED_NOTICE, line, NULL);
}

/* The answer to a question. One of an earlier daemon has another epoch in its id, and goes no further. */
static void take_answer(struct bridge *bridge, struct str line, const struct json *id)
{
    struct tracked *question = tracked_find(&bridge->questions.sent, id);
    if (question && line.at) {
        struct buf out = {0};
        bridge_put_line(&out, line, id, question->tool); /* the daemon's own id */
        pass(bridge, TRACKED_NOTICE, buf_view(&out), NULL);
        buf_clear(&out);
        requests_end(&bridge->questions, question);
    } else if (bridge->epoch == 0) {
        pass(bridge, TRACKED_NOTICE, line, NULL);
    }
}

/* Not a message of JSON-RPC: the daemon says what is wrong with it. */
static void take_other(struct bridge *bridge, struct str line)
{
    struct arena *arena = arena_new();
    struct json id;
    struct json_error fault;
    struct str literal = json_recover_id(line);
    bool has = literal.len && json_parse(arena, literal, NULL, &id, &fault) == OK;
    pass(bridge, has ? TRACKED_REQUEST : TRACKED_NOTICE, line, has ? &id : NULL);
    arena_free(arena);
}

/* Its requests are tracked one by one. False: it is for the daemon to refuse. */
static bool take_batch(struct bridge *bridge, const struct json *batch)
{
    bool splits = bridge->batches && batch->len && batch->len <= MCP_BATCH_MAX;
    for (uint32_t i = 0; splits && i < batch->len; i++)
        splits = json_is(&batch->items[i], JSON_OBJECT) && batch->items[i].raw;
    for (uint32_t i = 0; splits && i < batch->len; i++)
        bridge_client_line(bridge, (struct str){batch->items[i].raw, batch->items[i].raw_len});
    return splits;
}

void bridge_client_line(struct bridge *bridge, struct str line)
{
    struct arena *arena = arena_new();
    struct json message;
    struct json_error fault;
    line = json_skip_byte_order_mark(line);
    bool parsed = json_parse(arena, line, NULL, &message, &fault) == OK || fault.soft;
    const struct json *id = parsed ? json_get_text(&message, "id") : NULL;
    bool has_method = parsed && json_is(json_get_text(&message, "method"), JSON_STRING);
    bool has_id =
        json_is(id, JSON_STRING) || json_is(id, JSON_NUMBER); /* that a daemon takes, and answers with */
    for (uint32_t i = 0; json_is(id, JSON_NUMBER) && i < id->len; i++)
        has_id &= ascii_is_digit(id->text[i]) || id->text[i] == '-';
    if (has_method && has_id)
        take_request(bridge, line, &message);
    else if (has_method && !id)
        take_notification(bridge, line, &message);
    else if (id && has_id && (json_get_text(&message, "result") || json_get_text(&message, "error")))
        take_answer(bridge, line, id);
    else if (!parsed || !json_is(&message, JSON_ARRAY) || !take_batch(bridge, &message))
        take_other(bridge, line);
    arena_free(arena);
}

/* What the model left unrepaired it will not repair any more: the daemon counts it. */
void bridge_client_ended(struct bridge *bridge)
{
    struct buf line = {0};
    bridge->client_ended = true;
    if (!bridge->owns_session || bridge->state != BRIDGE_OPEN)
        return;
    buf_printf(&line,
               "{\"jsonrpc\":\"2.0\",\"id\":\"" BRIDGE_OWN_ID
               "end\",\"method\":\"toolgate/turn\",\"params\":{\"end\":true,"
               "\"_meta\":{\"" GATE_SESSION_KEY "\":" STR_FMT "}}}",
               STR_ARG(bridge->session));
    pass(bridge, TRACKED_NOTICE, buf_view(&line), NULL);
    buf_clear(&line);
}

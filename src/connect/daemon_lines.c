/* What the daemon sends: each answer goes to the request that waits for it, once; questions get an id that no
 * other daemon's question has. */
#include "base/arena.h"
#include "connect/bridge.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "server/mcp_keys.h"

#include <stdlib.h>

#define PARSED_MAX_BYTES 65536u /* of an answer whose id only is read, beyond */

static void forward(struct bridge *bridge, struct str line)
{
    buf_str(&bridge->to_client, line);
    buf_byte(&bridge->to_client, '\n');
}

/* ---- answers ---- */

static void settle(struct bridge *bridge, struct tracked *request, struct str line, bool is_error)
{
    requests_drop_sent(&bridge->requests, request);
    if (request->lists && !is_error) {
        greeting_keep(&bridge->tools.request, (struct str){request->line, request->line_len - 1});
        bridge->tools.modern = request->modern;
        greeting_learn_tools(bridge, line);
    }
    if (request->initializes && !is_error) {
        greeting_keep(&bridge->initialize, (struct str){request->line, request->line_len - 1});
        bridge->is_initialized = true;
    }
    tracked_free(request);
}

/* Only an error ends a subscription for the client: a result says that this daemon stops, and the next one
 * gets the subscription again. */
static bool ends_subscription(struct bridge *bridge, const struct json *id, bool is_error)
{
    struct tracked *s = tracked_find(&bridge->subscriptions.sent, id);
    if (s && is_error) {
        requests_drop_sent(&bridge->subscriptions, s);
        tracked_free(s);
    }
    return s && !is_error;
}

static void take_reply(struct bridge *bridge, struct str line, const struct json *id, bool is_error)
{
    struct tracked *request = tracked_find(&bridge->requests.sent, id);
    if (request) {
        settle(bridge, request, line, is_error);
        forward(bridge, line);
    } else if (tracked_find(&bridge->subscriptions.sent, id)) {
        if (!ends_subscription(bridge, id, is_error))
            forward(bridge, line);
    } /* else: of a cancelled request */
}

/* ---- questions ---- */

static struct str spliced(struct arena *arena, struct str line, const struct json *old, struct str with)
{
    size_t before = (size_t)(old->raw - line.at);
    return ARENA_JOIN(arena, ((struct str){line.at, before}), with, str_from(line, before + old->raw_len));
}

#define NO_LONGER_WAITS "the gateway no longer waits for the answer"

void bridge_cancel_question(struct bridge *bridge, struct tracked *question, const char *reason)
{
    buf_printf(
        &bridge->to_client,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" STR_FMT
        ",\"reason\":\"%s\"}}\n",
        STR_ARG(question->id), reason);
    requests_drop_sent(&bridge->questions, question);
    tracked_free(question);
}

static void take_question(struct bridge *bridge, struct arena *arena, struct str line, const struct json *id)
{
    struct buf own = buf_in(arena), theirs = buf_in(arena);
    struct json client_id = *id;
    json_write(&theirs, id);
    if (bridge->epoch) {
        struct str text =
            arena_printf(arena, BRIDGE_OWN_ID "%u/" STR_FMT, bridge->epoch, STR_ARG(buf_view(&theirs)));
        client_id = json_string(text);
        json_write_string(&own, text);
        line = spliced(arena, line, id, buf_view(&own));
    }
    if (bridge->questions.sent_count >= BRIDGE_QUESTIONS_MAX)
        bridge_cancel_question(bridge, TAILQ_FIRST(&bridge->questions.sent), NO_LONGER_WAITS);
    requests_sent(&bridge->questions, tracked_new(TRACKED_REQUEST, STR_NONE, &client_id, buf_view(&theirs)));
    forward(bridge, line);
}

/* The daemon no longer waits for its question's answer. */
static bool takes_question_back(struct bridge *bridge, struct arena *arena, const struct json *message)
{
    const struct json *id = json_get_text(json_get_text(message, "params"), "requestId");
    struct str literal = json_to_str(arena, id);
    struct tracked *question;
    TAILQ_FOREACH (question, &bridge->questions.sent, link)
        if (literal.len && str_eq(question->tool, literal)) {
            bridge_cancel_question(bridge, question, NO_LONGER_WAITS);
            return true;
        }
    return false;
}

/* ---- notifications ---- */

/* The client hears of a subscription once, however often it is made anew. */
static bool is_known_subscription(struct bridge *bridge, const struct json *message)
{
    const struct json *meta = json_get_text(json_get_text(message, "params"), "_meta");
    struct tracked *s = tracked_find(&bridge->subscriptions.sent, json_get_text(meta, MCP_SUBSCRIPTION_KEY));
    bool known = s && s->acknowledged;
    if (s)
        s->acknowledged = true;
    return known;
}

static void take_notification(struct bridge *bridge, struct arena *arena, struct str line,
                              const struct json *message)
{
    struct str method = json_str(json_get_text(message, "method"));
    if (str_is(method, "notifications/cancelled") && takes_question_back(bridge, arena, message))
        return;
    if (str_is(method, "notifications/subscriptions/acknowledged") && is_known_subscription(bridge, message))
        return;
    if (str_is(method, "notifications/resources/list_changed"))
        greeting_watch_again(bridge);
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
    if (!has_method && greeting_reply(bridge, json_str(id), line))
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
        take_reply(bridge, line, id, parsed && json_get_text(&message, "error"));
    else
        forward(bridge, line); /* an error about a line whose id could not be read */
    arena_free(arena);
}

/* What a line means. The client's requests are tracked and wait for the daemon; the rest is for the daemon
 * of now. Each answer of the daemon goes to the request that waits for it, once; its questions get an id
 * that no other daemon's question has. Before any request the bridge sends a new daemon the client's own
 * initialize (or a ping, which shows that a daemon serves and not only systemd's socket listens), then its
 * log level, its subscriptions, and its tools/list, whose answer shows whether the tools have changed.
 * Whether prompts and resources have, the client finds out itself: the bridge notifies it that they may. */
#include "cli/connect.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "server/protocol.h"

#include <stdio.h>
#include <stdlib.h>

#define PARSED_MAX_BYTES 65536u /* of an answer whose id only is read, beyond */

/* Of the ids of the bridge's own requests, "toolgate/connect/EPOCH/what", and of later daemons' questions. */
#define OWN_ID "toolgate/connect/"
#define HELLO  "hello"
#define LEVEL  "level"
#define TOOLS  "tools"
#define WATCH  "watch"
#define SCOPE  "servers"

/* ---- the bridge's own answers: to a call as a result, which the model reads, in the form of the gate's own
 * refusals; to any other request as a JSON-RPC error ---- */

struct answer {
    const char *code, *detail, *hint; /* that need no escape in JSON */
    bool retry;                       /* after 2 s: a daemon that restarts is back by then */
};

static const struct answer lost_read = {"gateway_restarted",
                                        "the connection to the gateway ended before its answer arrived; the "
                                        "call only reads, so it has changed nothing",
                                        "wait 2 s, then repeat the call.", true};
static const struct answer lost_write = {
    "gateway_restarted",
    "the connection to the gateway ended before its answer arrived; the call may have run",
    "look whether it was carried out before you repeat it.", false};
static const struct answer away = {"gateway_away", "no gateway answered in time; the call was not sent",
                                   "wait 2 s, then repeat the call; if it fails again, tell the user.", true};

static void write_call(struct buf *to, const struct tracked *request, const struct answer *a)
{
    struct buf text = {0}, shown = {0};
    buf_printf(&text, STR_FMT " is unavailable (%s): %s.\nNext: %s", STR_ARG(request->tool), a->code,
               a->detail, a->hint);
    json_write_string(&shown, buf_view(&text));
    buf_printf(to,
               "{\"jsonrpc\":\"2.0\",\"id\":" STR_FMT
               ",\"result\":{%s\"content\":[{\"type\":\"text\",\"text\":" STR_FMT
               "}],\"isError\":true,\"_meta\":{\"" GATE_VERDICT_KEY
               "\":{\"verdict\":\"%s\",\"valid\":true,\"error_class\":\"unavailable\",\"code\":\"%s\","
               "\"detail\":\"%s\",\"hint\":\"%s\"%s}}}}\n",
               STR_ARG(request->id), request->modern ? "\"resultType\":\"complete\"," : "",
               STR_ARG(buf_view(&shown)), a->retry ? "wait" : "refuse", a->code, a->detail, a->hint,
               a->retry ? ",\"after_s\":2" : "");
    buf_clear(&text);
    buf_clear(&shown);
}

void bridge_answer(struct bridge *bridge, const struct tracked *request, bool sent)
{
    struct buf *to = &bridge->to_client;
    bridge->has_failed = true;
    if (request->is_call)
        write_call(to, request, !sent ? &away : request->reads ? &lost_read : &lost_write);
    else if (!sent)
        jsonrpc_write_error(to, request->id, RPC_UNAVAILABLE,
                            STR_LIT("no gateway answered in time; the request was not sent: repeat it later"),
                            STR_LIT("{\"name\":\"unavailable\",\"sent\":false,\"after_s\":2}"));
    else
        jsonrpc_write_error(
            to, request->id, RPC_UNAVAILABLE,
            STR_LIT("the connection to the gateway ended before its answer arrived: the request "
                    "may have taken effect, so look before you repeat it"),
            STR_LIT("{\"name\":\"unavailable\",\"sent\":true}"));
}

/* ---- the greeting of a new daemon ---- */

/* Appends the line with other JSON in place of `value`, which was parsed from it. */
static void put_line(struct buf *to, struct str line, const struct json *value, struct str with)
{
    size_t before = (size_t)(value->raw - line.at);
    buf_add(to, line.at, before);
    buf_str(to, with);
    buf_str(to, str_from(line, before + value->raw_len));
}

/* Keeps a copy for the next daemon, unless the line is longer than BRIDGE_KEEP_MAX_BYTES. */
static void keep(char **kept, struct str line)
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
        struct str id = arena_printf(arena, "\"" OWN_ID "%u/%s\"", bridge->epoch, what);
        put_line(&bridge->greeting, line, json_get_text(&message, "id"), id);
        buf_byte(&bridge->greeting, '\n');
    }
    arena_free(arena);
}

static void say_hello(struct bridge *bridge)
{
    put_request(bridge,
                bridge->initialize ? str_of(bridge->initialize)
                                   : STR_LIT("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}"),
                HELLO);
}

/* Nothing of the client is sent before the daemon knows which servers it gets. */
void bridge_greet(struct bridge *bridge)
{
    struct arena *arena = arena_new();
    buf_clear(&bridge->greeting);
    if (bridge->servers)
        put_request(bridge,
                    arena_printf(arena,
                                 "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"toolgate/servers\",\"params\":{"
                                 "\"name\":\"%s\"}}",
                                 bridge->servers),
                    SCOPE);
    else
        say_hello(bridge);
    arena_free(arena);
}

static void watch(struct bridge *bridge)
{
    struct tracked *s;
    TAILQ_FOREACH (s, &bridge->watched.all, link)
        put_request(bridge, (struct str){s->line, s->line_len - 1}, WATCH);
    bridge->watch_failed = false;
}

static void greet_further(struct bridge *bridge)
{
    struct tracked *s;
    if (bridge->initialize && bridge->has_confirmed)
        buf_text(&bridge->greeting, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    if (bridge->level)
        put_request(bridge, str_of(bridge->level), LEVEL);
    TAILQ_FOREACH (s, &bridge->subscriptions.all, link)
        buf_add(&bridge->greeting, s->line, s->line_len);
    watch(bridge);
    if (bridge->tools_request && bridge->was_open)
        put_request(bridge, str_of(bridge->tools_request), TOOLS);
}

/* ---- tools ---- */

/* Reads the tools of a tools/list's answer; false: they are the same as before, or none exist. */
static bool read_tools(struct bridge *bridge, struct str line)
{
    static const struct json_limits limits = {.nodes = BRIDGE_LIST_NODES};
    struct hash128 before = bridge->tools_fingerprint;
    struct arena *arena = arena_new();
    struct json message;
    struct json_error fault;
    bool parsed = json_parse(arena, line, &limits, &message, &fault) == OK || fault.soft;
    const struct json *tools = parsed ? json_get_text(json_get_text(&message, "result"), "tools") : NULL;
    if (json_is(tools, JSON_ARRAY)) {
        arena_free(bridge->tools_arena);
        bridge->tools_arena = arena_new();
        bridge->readers = map_new(bridge->tools_arena);
        bridge->tools_fingerprint = json_fingerprint(arena, tools, NULL, 0);
    }
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++) {
        const struct json *hints = json_get_text(&tools->items[i], "annotations");
        struct str name = json_str(json_get_text(&tools->items[i], "name"));
        if (name.len && json_is_true(json_get_text(hints, "readOnlyHint")))
            map_add(bridge->readers, arena_dup(bridge->tools_arena, name), bridge);
    }
    arena_free(arena);
    return memcmp(&before, &bridge->tools_fingerprint, sizeof(before)) != 0;
}

static void tell_list_changed(struct bridge *bridge)
{
    static const char method[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"";
    const struct tracked *s;
    if (!bridge->tools_modern)
        buf_printf(&bridge->to_client, "%s}\n", method);
    TAILQ_FOREACH (s, &bridge->subscriptions.all, link)
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
    int n = snprintf(own, sizeof(own), OWN_ID "%u/", bridge->epoch);
    if (!str_starts(id, OWN_ID))
        return false;
    if (!str_starts(id, own))
        return true;
    struct str what = str_from(id, (size_t)n);
    if (str_is(what, SCOPE) && is_error) {
        bridge_tell(bridge, "the daemon cannot show one file's servers alone: it is older than this program");
    } else if (str_is(what, SCOPE)) {
        say_hello(bridge);
    } else if (str_is(what, HELLO) && bridge->state == BRIDGE_GREETING) {
        bridge->state = BRIDGE_OPEN;
        bridge->retry_ms = 0;
        greet_further(bridge);
        if (bridge->was_open && bridge->lists_prompts)
            buf_text(&bridge->to_client, changed[0]);
        if (bridge->was_open && bridge->lists_resources)
            buf_text(&bridge->to_client, changed[1]);
        bridge->was_open = true;
    } else if (str_is(what, TOOLS)) {
        if (read_tools(bridge, line))
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
    struct tracked *request = tracked_find(&bridge->sent, id);
    struct tracked *subscription = request ? NULL : tracked_find(&bridge->subscriptions, id);
    if (request && request->lists && !is_error) {
        keep(&bridge->tools_request, (struct str){request->line, request->line_len - 1});
        bridge->tools_modern = request->modern;
        read_tools(bridge, line);
    }
    if (request && request->initializes && !is_error)
        keep(&bridge->initialize, (struct str){request->line, request->line_len - 1});
    if (request)
        tracked_end(request);
    /* Only an error ends a subscription for the client: a result says that this daemon stops, and the next
     * one gets the subscription again. */
    if (subscription && is_error)
        tracked_end(subscription);
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
    tracked_end(question);
}

static void take_question(struct bridge *bridge, struct arena *arena, struct str line, const struct json *id)
{
    struct buf own = buf_in(arena);
    struct str theirs = json_to_str(arena, id);
    struct json client_id = *id;
    if (bridge->epoch) {
        struct str text = arena_printf(arena, OWN_ID "%u/" STR_FMT, bridge->epoch, STR_ARG(theirs));
        client_id = json_string(text);
        put_line(&own, line, id, json_to_str(arena, &client_id));
        line = buf_view(&own);
    }
    if (bridge->questions.count >= BRIDGE_QUESTIONS_MAX)
        bridge_cancel_question(bridge, TAILQ_FIRST(&bridge->questions.all), NO_LONGER_WAITS);
    tracked_add(&bridge->questions, tracked_new(STR_NONE, &client_id, theirs));
    forward(bridge, line);
}

/* ---- notifications ---- */

static void take_daemon_notification(struct bridge *bridge, struct arena *arena, struct str line,
                                     const struct json *message)
{
    struct str method = json_str(json_get_text(message, "method"));
    if (str_is(method, "notifications/cancelled")) { /* it no longer waits for its question's answer */
        struct str id = json_to_str(arena, json_get_text(json_get_text(message, "params"), "requestId"));
        struct tracked *question = TAILQ_FIRST(&bridge->questions.all);
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
        struct tracked *s = tracked_find(&bridge->subscriptions, json_get_text(meta, MCP_SUBSCRIPTION_KEY));
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
    bool parsed = line.len <= PARSED_MAX_BYTES && json_parse(arena, line, NULL, &message, NULL) == OK;
    const struct json *id = parsed ? json_get_text(&message, "id") : NULL;
    if (!parsed) {
        struct str literal = json_recover_id(line);
        if (literal.len && json_parse(arena, literal, NULL, &recovered, NULL) == OK)
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
        take_daemon_notification(bridge, arena, line, &message);
    else if (id)
        take_reply(bridge, line, id, is_error);
    else
        forward(bridge, line); /* an error about a line whose id could not be read */
    arena_free(arena);
}

/* ---- the client ---- */

/* Inserts `text` after the brace, with a comma if the object has members. */
static void insert(struct buf *out, struct str line, const char *brace, struct str text, bool has_members)
{
    size_t head = (size_t)(brace - line.at) + 1;
    buf_add(out, line.at, head);
    buf_str(out, text);
    if (has_members)
        buf_byte(out, ',');
    buf_str(out, str_from(line, head));
}

/* What the daemon reads as absent, and some clients write. */
static bool is_nothing(const struct json *value)
{
    return json_is(value, JSON_NULL) || (json_is(value, JSON_ARRAY) && !value->len);
}

void bridge_put_session(struct buf *out, struct str line, const struct json *message, struct str session)
{
    struct arena *arena = arena_new();
    const struct json *params = json_get_text(message, "params"), *meta = json_get_text(params, "_meta");
    const struct json *named = json_get_text(meta, GATE_SESSION_KEY);
    struct str key = arena_printf(arena, "\"" GATE_SESSION_KEY "\":" STR_FMT, STR_ARG(session));
    struct str member = arena_printf(arena, "\"_meta\":{" STR_FMT "}", STR_ARG(key));
    if (json_is(named, JSON_NULL))
        put_line(out, line, named, session);
    else if (json_is(meta, JSON_OBJECT) && !named)
        insert(out, line, meta->raw, key, meta->len > 0);
    else if (is_nothing(meta))
        put_line(out, line, meta, arena_printf(arena, "{" STR_FMT "}", STR_ARG(key)));
    else if (json_is(params, JSON_OBJECT) && !meta)
        insert(out, line, params->raw, member, params->len > 0);
    else if (is_nothing(params))
        put_line(out, line, params, arena_printf(arena, "{" STR_FMT "}", STR_ARG(member)));
    else if (!params)
        insert(out, line, message->raw, arena_printf(arena, "\"params\":{" STR_FMT "}", STR_ARG(member)),
               true);
    else
        buf_str(out, line); /* it has one, or params or _meta has a wrong type */
    arena_free(arena);
}

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
    bool is_for_earlier = !t->id.len && bridge->state != BRIDGE_OPEN && bridge->was_open;
    bool is_too_much = bridge->state == BRIDGE_AWAY && bridge_is_full(bridge, t->line_len);
    t->until_us = clock_mono_us() + bridge->wait_us;
    if (!is_for_earlier && !is_too_much) {
        tracked_add(&bridge->waiting, t);
        return;
    }
    if (t->id.len)
        bridge_answer(bridge, t, false);
    tracked_end(t);
}

/* `id` NULL: it has no answer. */
static void pass(struct bridge *bridge, struct str line, const struct json *id)
{
    if (line.len)
        enqueue(bridge, tracked_new(line, id, STR_NONE));
}

/* ---- requests ---- */

static bool subscribe(struct bridge *bridge, struct str line, const struct json *message)
{
    if (bridge->subscriptions.count >= BRIDGE_SUBSCRIPTIONS || line.len > BRIDGE_KEEP_MAX_BYTES)
        return false;
    struct tracked *s = tracked_new(line, json_get_text(message, "id"), STR_NONE);
    s->tools = json_is_true(
        json_get_text(json_get_text(json_get_text(message, "params"), "notifications"), "toolsListChanged"));
    tracked_add(&bridge->subscriptions, s);
    if (bridge->state == BRIDGE_OPEN) /* else the greeting has it */
        pass(bridge, line, NULL);
    return true;
}

/* The next daemon gets it again, unless the client has ended it. */
static void keep_watched(struct bridge *bridge, struct str method, struct str line,
                         const struct json *message)
{
    struct str uri = json_str(json_get_text(json_get_text(message, "params"), "uri"));
    struct tracked *watched = TAILQ_FIRST(&bridge->watched.all);
    while (watched && !str_eq(watched->tool, uri))
        watched = TAILQ_NEXT(watched, link);
    bool begins = str_is(method, "resources/subscribe"), fits = line.len <= BRIDGE_KEEP_MAX_BYTES;
    if (begins && !watched && uri.len && fits && bridge->watched.count < BRIDGE_WATCHED_MAX) {
        tracked_add(&bridge->watched, tracked_new(line, json_get_text(message, "id"), uri));
    } else if (watched && str_is(method, "resources/unsubscribe")) {
        tracked_end(watched);
    }
}

static void take_request(struct bridge *bridge, struct str line, const struct json *message)
{
    const struct json *params = json_get_text(message, "params");
    struct str method = json_str(json_get_text(message, "method"));
    struct str tool = str_is(method, "tools/call") ? json_str(json_get_text(params, "name")) : STR_NONE;
    struct buf with_session = {0};
    if (bridge->session.len) {
        bridge_put_session(&with_session, line, message, bridge->session);
        line = buf_view(&with_session);
    }
    if (!str_is(method, "subscriptions/listen") || !subscribe(bridge, line, message)) {
        struct tracked *t = tracked_new(line, json_get_text(message, "id"), str_cut(tool, 256));
        t->is_call = str_is(method, "tools/call");
        t->reads = t->is_call && bridge->readers && map_get(bridge->readers, tool);
        t->repeats =
            STR_IS_ONE_OF(method, repeatable) && line.len <= BRIDGE_KEEP_MAX_BYTES ? BRIDGE_REPEATS_MAX : 0;
        t->modern = json_get_text(json_get_text(params, "_meta"), MCP_VERSION_KEY);
        t->lists = t->repeats && str_is(method, "tools/list");
        t->initializes = t->repeats && str_is(method, "initialize");
        if (t->initializes)
            bridge->batches = str_is(json_str(json_get_text(params, "protocolVersion")), MCP_2025_03_26);
        if (str_is(method, "logging/setLevel"))
            keep(&bridge->level, line);
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
        struct tracked *t = tracked_find(&bridge->waiting, id);
        if (t && !t->sent) { /* then no daemon needs to know */
            tracked_end(t);
            return;
        }
        if ((t = tracked_find(&bridge->sent, id)) && !t->initializes)
            tracked_end(t);
        else if ((t = tracked_find(&bridge->subscriptions, id)))
            tracked_end(t);
    }
    pass(bridge, line, NULL);
}

/* The answer to a question. One of an earlier daemon has another epoch in its id, and goes no further. */
static void take_answer(struct bridge *bridge, struct str line, const struct json *id)
{
    struct tracked *question = tracked_find(&bridge->questions, id);
    if (question && line.at) {
        struct buf out = {0};
        put_line(&out, line, id, question->tool); /* the daemon's own id */
        pass(bridge, buf_view(&out), NULL);
        buf_clear(&out);
        tracked_end(question);
    } else if (bridge->epoch == 0) {
        pass(bridge, line, NULL);
    }
}

/* Not a message of JSON-RPC: the daemon says what is wrong with it. */
static void take_other(struct bridge *bridge, struct str line)
{
    struct arena *arena = arena_new();
    struct json id;
    struct str literal = json_recover_id(line);
    bool has = literal.len && json_parse(arena, literal, NULL, &id, NULL) == OK;
    pass(bridge, line, has ? &id : NULL);
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
    /* That a daemon takes, and answers with. */
    bool has_id = id && id->raw_len && (json_is(id, JSON_STRING) || id->integral);
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
               "{\"jsonrpc\":\"2.0\",\"id\":\"" OWN_ID
               "end\",\"method\":\"toolgate/turn\",\"params\":{\"end\":true,"
               "\"_meta\":{\"" GATE_SESSION_KEY "\":" STR_FMT "}}}",
               STR_ARG(bridge->session));
    pass(bridge, buf_view(&line), NULL);
    buf_clear(&line);
}

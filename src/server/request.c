/*
 * A line becomes a request: JSON, envelope, era, method, in that order. Each
 * step returns false after an error reply, or if no reply is due.
 */
#include "server/request.h"

#include "base/arena.h"
#include "base/log.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/parse.h"
#include "server/problems.h"
#include "server/mcp_keys.h"
#include "server/method_table.h"

#include <stdlib.h>

static void answer_unreadable(struct request *r, struct str text, const struct json_error *fault)
{
    const struct config *config = server_config(r->client->server);
    r->id = json_recover_id(text);
    if (fault->code == JSON_ERROR_DEPTH)
        reply_error(r, RPC_TOO_DEEP,
                    "the message is nested deeper than %u levels (limits.depth): send flatter arguments",
                    config->limits.depth);
    else if (fault->code == JSON_ERROR_NODES)
        reply_error(r, RPC_TOO_MANY_VALUES,
                    "the message holds more than %u values: send less, in several calls", JSON_MAX_NODES);
    else
        reply_error(r, RPC_PARSE, "no valid JSON: %s", fault->text);
}

static bool read_json(struct request *r, struct str text)
{
    struct json_limits limits = {.depth = server_config(r->client->server)->limits.depth};
    struct json_error fault;
    if (json_parse(r->arena, text, &limits, &r->message, &fault) == OK)
        return true;
    if (fault.soft)
        r->fault = arena_dup(r->arena, str_of(fault.text));
    else
        answer_unreadable(r, text, &fault);
    return fault.soft;
}

static bool read_id(struct request *r)
{
    const struct json *id = json_get_text(&r->message, "id");
    bool notifies = str_starts(json_str(json_get_text(&r->message, "method")), "notifications/");
    if (!id || (notifies && json_is(id, JSON_NULL)))
        return true;
    bool number = json_is(id, JSON_NUMBER), plain = number;
    for (uint32_t i = 0; plain && i < id->len; i++)
        plain = id->text[i] != '.' &&
                (id->text[i] | 32) != 'e'; /* a client that reads 1.0 as 1 would not find its reply */
    if (!plain && !json_is(id, JSON_STRING)) {
        reply_error(r, RPC_INVALID_REQUEST, "id: expected a string or an integer, got %s",
                    number ? "a number with a fraction or an exponent" : param_kind(id));
        return false;
    }
    if (id->raw_len > REQUEST_ID_MAX_BYTES) {
        reply_error(r, RPC_INVALID_REQUEST, "id: expected at most %u bytes, got %u", REQUEST_ID_MAX_BYTES,
                    id->raw_len);
        return false;
    }
    r->id = (struct str){id->raw, id->raw_len};
    r->id_value = id;
    return true;
}

static bool read_envelope(struct request *r)
{
    const struct json *message = &r->message, *method = json_get_text(message, "method");
    if (json_is(message, JSON_ARRAY)) {
        reply_error(r, RPC_INVALID_REQUEST,
                    "a batch is accepted in protocol version " MCP_2025_03_26
                    " alone: send one message a line");
        return false;
    }
    if (!json_is(message, JSON_OBJECT)) {
        reply_error(r, RPC_INVALID_REQUEST, "expected a JSON-RPC request object, got %s",
                    param_kind(message));
        return false;
    }
    if (!read_id(r))
        return false;
    if (!method && (json_get_text(message, "result") || json_get_text(message, "error"))) {
        if (elicitation_answer(r->client, message))
            return false;
        log_event(LOG_DEBUG, "response_ignored", LOG_TEXT("connection", r->client->name));
        return false;
    }
    if (!json_is(method, JSON_STRING)) {
        reply_error(r, RPC_INVALID_REQUEST, "method: expected a string, got %s", param_kind(method));
        return false;
    }
    if (!str_is(json_str(json_get_text(message, "jsonrpc")), "2.0")) {
        reply_error(r, RPC_INVALID_REQUEST, "jsonrpc: expected \"2.0\", got %s",
                    param_kind(json_get_text(message, "jsonrpc")));
        return false;
    }
    r->method_name = json_str(method);
    return true;
}

static bool is_empty_member(const struct json_member *m)
{
    return (m->value.type == JSON_NULL && !str_is(m->key, "result") && !str_is(m->key, "arguments")) ||
           (str_is(m->key, "cursor") && json_is(&m->value, JSON_STRING) && !m->value.len);
}

/* Many clients write null for what they leave out, PHP's [] for an empty object, and "" for the first page:
 * no method sees that. The `result` of a report stays, since a tool may return null, and so do
 * `arguments`: whether null may run a tool depends on the tool. */
static const struct json *without_empty_members(struct arena *arena, const struct json *object)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < object->len; i++)
        count += !is_empty_member(&object->members[i]);
    if (count == object->len)
        return object;
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, count);
    count = 0;
    for (uint32_t i = 0; i < object->len; i++)
        if (!is_empty_member(&object->members[i]))
            members[count++] = object->members[i];
    return json_keep(arena, json_object(arena, members, count));
}

/* NULL: absent. False after an error reply. */
static bool read_object(struct request *r, const struct json *value, const char *name,
                        const struct json **out)
{
    *out = NULL;
    if (!value || value->type == JSON_NULL || (value->type == JSON_ARRAY && !value->len))
        return true;
    if (!json_is(value, JSON_OBJECT)) {
        reply_error(r, RPC_INVALID_PARAMS, "%s: expected an object, got %s", name, param_kind(value));
        return false;
    }
    *out = without_empty_members(r->arena, value);
    return true;
}

/* Every modern request carries these keys; one that has any of them is treated as modern. */
static bool check_modern(struct request *r)
{
    const struct json *version = json_get_text(r->meta, MCP_VERSION_KEY);
    const struct json *capabilities = json_get_text(r->meta, MCP_CAPABILITIES_KEY);
    const struct json *level = json_get_text(r->meta, MCP_LEVEL_KEY);
    if (!json_is(version, JSON_STRING))
        reply_error(r, RPC_INVALID_PARAMS, "params._meta[\"" MCP_VERSION_KEY "\"]: expected a string, got %s",
                    param_kind(version));
    else if (!str_is(json_str(version), MCP_MODERN)) {
        struct str requested = json_str(version);
        struct buf data = buf_in(r->arena);
        buf_text(&data, "{\"supported\":[\"" MCP_MODERN "\"],\"requested\":");
        json_write_string(&data, requested);
        buf_byte(&data, '}');
        reply_error_data(
            r, RPC_UNSUPPORTED_VERSION,
            arena_printf(r->arena, "protocol version " STR_FMT " is not served in _meta; " MCP_MODERN " is",
                         STR_ARG(str_cut(requested, 64))),
            buf_view(&data));
    } else if (!json_is(capabilities, JSON_OBJECT))
        reply_error(r, RPC_INVALID_PARAMS,
                    "params._meta[\"" MCP_CAPABILITIES_KEY "\"]: expected an object, got %s",
                    param_kind(capabilities));
    else if (level && param_log_level(json_str(level)) < 0)
        reply_error(r, RPC_INVALID_PARAMS,
                    "params._meta[\"" MCP_LEVEL_KEY
                    "\"]: expected one of debug, info, notice, warning, error, "
                    "critical, alert, emergency");
    else {
        mcp_wants_level(r->client, level ? param_log_level(json_str(level)) : MCP_LOG_LEVEL_NONE);
        return true;
    }
    return false;
}

static void refuse_method(struct request *r)
{
    struct str name = str_cut(r->method_name, 64), near = method_suggest(r->method_name);
    if (r->method)
        reply_error(r, RPC_UNKNOWN_METHOD, "method %s does not exist in protocol version " MCP_MODERN,
                    r->method->name);
    else if (near.len)
        reply_error(r, RPC_UNKNOWN_METHOD, "unknown method '" STR_FMT "' (did you mean '" STR_FMT "'?)",
                    STR_ARG(name), STR_ARG(near));
    else
        reply_error(r, RPC_UNKNOWN_METHOD, "unknown method '" STR_FMT "'", STR_ARG(name));
}

static bool find_method(struct request *r)
{
    r->method = method_find(r->method_name);
    if (!r->method || !(r->method->eras & (r->modern ? ERA_MODERN : ERA_LEGACY))) {
        bool wants_meta = r->method && !r->modern; /* check_modern names the key that is missing */
        if (!wants_meta || check_modern(r))
            refuse_method(r);
        return false;
    }
    if (r->fault.len && !r->method->takes_fault) {
        reply_error(r, RPC_PARSE, "no valid JSON: " STR_FMT, STR_ARG(r->fault));
        return false;
    }
    return true;
}

/* False after an error reply. A user may have as many calls in flight as are free: one alone gets half of
 * all, and whoever comes next still finds room. */
static bool find_place_for_call(struct request *r)
{
    const struct client *client = r->client;
    const struct config *config = server_config(client->server);
    size_t all = config_in_flight_all(config), pending = client->server->pending;
    size_t left = all > pending ? all - pending : 0;
    size_t of_user = config->limits.in_flight_user;
    if (client->pending_count >= config->limits.in_flight)
        reply_error(
            r, RPC_CALLS_OF_CONNECTION,
            "%zu calls of this connection are in flight, the most that limits.in_flight allows: wait for "
            "an answer, or raise it in the configuration",
            client->pending_count);
    else if (!left)
        reply_error(r, RPC_CALLS_OF_ALL,
                    "%zu calls of all connections are in flight, the most that limits.in_flight_all allows: "
                    "try again in a second, or raise it in the configuration",
                    pending);
    else if (of_user && client->user->pending >= of_user)
        reply_error(r, RPC_CALLS_OF_USER,
                    "%zu calls of user %s are in flight, the most that limits.in_flight_user allows: wait "
                    "for an answer, or raise it in the configuration",
                    client->user->pending, client->peer.user);
    else if (client->user->pending >= left)
        reply_error(r, RPC_CALLS_OF_USER,
                    "%zu calls of user %s are in flight, and %zu of limits.in_flight_all (%zu) are free, "
                    "which is kept for other users: wait for an answer, or raise it in the configuration",
                    client->user->pending, client->peer.user, left, all);
    else
        return true;
    return false;
}

/* Refuses a request that a limit of the daemon leaves no place for. */
static bool find_place(struct request *r)
{
    const struct server *server = r->client->server;
    const struct config *config = server_config(server);
    size_t bytes = server->pending_bytes + loop_bytes(server->loop);
    if (!r->method->may_wait)
        return true;
    if (bytes <= config->limits.memory)
        return find_place_for_call(r);
    reply_error(r, RPC_MEMORY,
                "all calls together hold %zu bytes, more than limits.memory (%zu): try again when others are "
                "done, or raise it in the configuration",
                bytes, config->limits.memory);
    return false;
}

static void free_pending(struct request *r)
{
    struct server *server = r->client->server;
    LIST_REMOVE(r, link);
    r->client->pending_count--;
    r->client->user->pending--;
    server->pending--;
    server->pending_bytes -= r->pending_bytes;
    arena_free(r->arena);
}

void request_done(struct request *request)
{
    struct client *client = request->client;
    free_pending(request);
    client_close_if_done(client);
}

void request_answer(void *owner)
{
    struct request *r = owner;
    if (r->answer(r) == REQUEST_DONE)
        request_done(r);
}

void request_cancel(struct request *request)
{
    request->cancel(request);
    free_pending(request);
}

struct request *request_find(struct client *client, const struct json *id)
{
    struct request *r;
    LIST_FOREACH (r, &client->pending, link)
        if (json_equal(r->id_value, id))
            break;
    return r;
}

struct str request_protocol(const struct request *request)
{
    return request->modern ? STR_LIT(MCP_MODERN) : str_of(request->client->protocol);
}

/* 2025-03-26 alone has batches. Each message of one is answered by itself, which that version allows. */
static void serve_batch(struct request *r)
{
    const struct json *batch = &r->message;
    if (batch->len > MCP_BATCH_MAX) {
        reply_error(r, RPC_INVALID_REQUEST, "a batch of %u messages, of at most %u: send fewer", batch->len,
                    MCP_BATCH_MAX);
        return;
    }
    for (uint32_t i = 0; i < batch->len; i++) {
        const struct json *message = &batch->items[i];
        if (json_is(message, JSON_OBJECT))
            request_serve(r->client, (struct str){message->raw, message->raw_len});
        else
            reply_error(r, RPC_INVALID_REQUEST, "expected a JSON-RPC request object in the batch, got %s",
                        param_kind(message));
    }
}

static enum request_status serve(struct request *r, struct str text)
{
    if (!read_json(r, text))
        return REQUEST_DONE;
    if (json_is(&r->message, JSON_ARRAY) && r->message.len && !r->fault.len &&
        str_is(request_protocol(r), MCP_2025_03_26)) {
        serve_batch(r);
        return REQUEST_DONE;
    }
    if (!read_envelope(r))
        return REQUEST_DONE;
    if (!r->id.len) {
        const struct json *params = json_get_text(&r->message, "params");
        r->params = json_is(params, JSON_OBJECT) ? params : NULL;
        if (r->fault.len || !notification_handle(r))
            log_event(LOG_DEBUG, "notification_ignored", LOG_TEXT("connection", r->client->name),
                      LOG_STR("method", r->method_name));
        return REQUEST_DONE;
    }
    if (!read_object(r, json_get_text(&r->message, "params"), "params", &r->params) ||
        !read_object(r, json_get_text(r->params, "_meta"), "params._meta", &r->meta))
        return REQUEST_DONE;
    r->modern = json_get_text(r->meta, MCP_VERSION_KEY) || json_get_text(r->meta, MCP_CAPABILITIES_KEY) ||
                json_get_text(r->meta, MCP_CLIENT_KEY);
    if ((r->modern && !check_modern(r)) || !find_method(r) || !find_place(r) || !gate_keys_check(r))
        return REQUEST_DONE;
    return r->method->handle(r);
}

void request_serve(struct client *client, struct str line)
{
    struct str text = str_trim(json_skip_byte_order_mark(line));
    if (!text.len)
        return;
    struct arena *arena = arena_new();
    struct request *r = ARENA_NEW(arena, struct request);
    r->client = client;
    r->arena = arena;
    /* A copy: the line is the connection's, and a call may outlive it. */
    if (serve(r, arena_dup(arena, text)) == REQUEST_DONE) {
        arena_free(arena);
        return;
    }
    LIST_INSERT_HEAD(&client->pending, r, link);
    client->pending_count++;
    r->client->user->pending++;
    client->server->pending++;
    client->server->pending_bytes += r->pending_bytes = arena_bytes(arena);
}

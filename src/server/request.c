/*
 * A line becomes a request: JSON, envelope, era, method, in that order. Each step returns an error after its
 * reply, or if no reply is due. Then the method reads members of params.
 */
#include "server/request.h"

#include "base/arena.h"
#include "base/log.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/parse.h"
#include "server/problems.h"
#include "server/method_table.h"

#include <unistd.h>

#define SESSION_MAX_BYTES 1024u
#define CONTEXT_MAX_BYTES 16384u /* written without spaces */
#define GOT_MAX_BYTES     80u
#define COUNT_MAX         INT32_MAX /* the ledger continues from a given turn, in 32 bits */

static enum err read_json(struct request *r, struct str text)
{
    struct json_limits limits = {.depth = server_config(r->client->server)->limits.depth};
    struct json_error fault;
    if (json_parse(r->arena, text, &limits, &r->message, &fault) == OK)
        return OK;
    if (fault.soft) {
        r->fault = arena_dup(r->arena, str_of(fault.text));
        return OK;
    }
    r->id = json_recover_id(text);
    if (fault.code == JSON_ERROR_DEPTH)
        return reply_refuse(r, RPC_TOO_DEEP,
                            "the message is nested deeper than %u levels (limits.depth): send flatter "
                            "arguments",
                            limits.depth);
    if (fault.code == JSON_ERROR_NODES)
        return reply_refuse(r, RPC_TOO_MANY_VALUES,
                            "the message holds more than %u values: send less, in several calls",
                            JSON_MAX_NODES);
    return reply_refuse(r, RPC_PARSE, "no valid JSON: %s", fault.text);
}

static enum err read_id(struct request *r)
{
    const struct json *id = json_get_text(&r->message, "id");
    bool notifies = str_starts(json_str(json_get_text(&r->message, "method")), "notifications/");
    if (!id || (notifies && json_is(id, JSON_NULL)))
        return OK;
    /* 1.0, as runtimes write it whose only number is a double, is 1, and goes back as it came. */
    if (!id->integral && !json_is(id, JSON_STRING))
        return reply_refuse(r, RPC_INVALID_REQUEST, "id: expected a string or an integer, got %s",
                            json_is(id, JSON_NUMBER) ? "a number with a fraction" : param_kind(id));
    if (!id->raw_len) /* else it would pass for a notification, and its client wait in vain */
        return reply_refuse(r, RPC_INVALID_REQUEST, "id: " STR_FMT, STR_ARG(r->fault));
    if (id->raw_len > REQUEST_ID_MAX_BYTES)
        return reply_refuse(r, RPC_INVALID_REQUEST, "id: expected at most %u bytes, got %u",
                            REQUEST_ID_MAX_BYTES, id->raw_len);
    r->id = (struct str){id->raw, id->raw_len};
    r->id_value = id;
    return OK;
}

static enum err read_envelope(struct request *r)
{
    const struct json *message = &r->message, *method = json_get_text(message, "method");
    const struct json *version = json_get_text(message, "jsonrpc");
    if (json_is(message, JSON_ARRAY))
        return reply_refuse(r, RPC_INVALID_REQUEST,
                            "a batch is accepted in protocol version " MCP_2025_03_26
                            " alone: send one message a line");
    if (!json_is(message, JSON_OBJECT))
        return reply_refuse(r, RPC_INVALID_REQUEST, "expected a JSON-RPC request object, got %s",
                            param_kind(message));
    if (!method && (json_get_text(message, "result") || json_get_text(message, "error"))) {
        if (!elicitation_answer(r->client, message))
            log_event(LOG_DEBUG, "response_ignored", LOG_TEXT("connection", r->client->name));
        return ERR_NOT_FOUND; /* no reply is due, whatever its id is */
    }
    enum err err = read_id(r);
    if (err)
        return err;
    if (!json_is(method, JSON_STRING))
        return reply_refuse(r, RPC_INVALID_REQUEST, "method: expected a string, got %s", param_kind(method));
    if (!str_is(json_str(version), "2.0"))
        return reply_refuse(r, RPC_INVALID_REQUEST, "jsonrpc: expected \"2.0\", got %s", param_kind(version));
    r->method_name = json_str(method);
    return OK;
}

/* Many clients write null for what they leave out, PHP's [] for an empty object, and "" for the first page:
 * no method sees that. The `result` of a report stays, since a tool may return null, and so do
 * `arguments`: whether null may run a tool depends on the tool. */
static const struct json *unless_empty(void *owner, const struct json *object, uint32_t i, struct str *key)
{
    const struct json *value = &object->members[i].value;
    (void)owner;
    bool is_empty = (value->type == JSON_NULL && !str_is(*key, "result") && !str_is(*key, "arguments")) ||
                    (str_is(*key, "cursor") && json_is(value, JSON_STRING) && !value->len);
    return is_empty ? NULL : value;
}

/* NULL: absent. */
static enum err read_object(struct request *r, const struct json *value, const char *name,
                            const struct json **out)
{
    *out = NULL;
    if (!value || value->type == JSON_NULL || (value->type == JSON_ARRAY && !value->len))
        return OK;
    if (!json_is(value, JSON_OBJECT))
        return reply_refuse(r, RPC_INVALID_PARAMS, "%s: expected an object, got %s", name, param_kind(value));
    *out = json_map(r->arena, value, unless_empty, NULL);
    return OK;
}

/* Every modern request carries these keys; one that has any of them is treated as modern. */
static enum err check_modern(struct request *r)
{
    const struct json *version = json_get_text(r->meta, MCP_VERSION_KEY);
    const struct json *capabilities = json_get_text(r->meta, MCP_CAPABILITIES_KEY);
    const struct json *level = json_get_text(r->meta, MCP_LEVEL_KEY);
    struct str requested = json_str(version);
    if (!json_is(version, JSON_STRING))
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params._meta[\"" MCP_VERSION_KEY "\"]: expected a string, got %s",
                            param_kind(version));
    if (!str_is(requested, MCP_MODERN)) {
        struct buf data = buf_in(r->arena);
        struct json_out out = json_out(&data);
        json_put_object(&out, FIELD_RAW("supported", STR_LIT("[\"" MCP_MODERN "\"]")),
                        FIELD_STR("requested", requested));
        reply_error_data(
            r, RPC_UNSUPPORTED_VERSION,
            arena_printf(r->arena, "protocol version " STR_FMT " is not served in _meta; " MCP_MODERN " is",
                         STR_ARG(str_cut(requested, 64))),
            buf_view(&data));
        return ERR_PARSE;
    }
    if (!json_is(capabilities, JSON_OBJECT))
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params._meta[\"" MCP_CAPABILITIES_KEY "\"]: expected an object, got %s",
                            param_kind(capabilities));
    if (level && param_log_level(json_str(level)) < 0)
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params._meta[\"" MCP_LEVEL_KEY
                            "\"]: expected one of debug, info, notice, warning, error, "
                            "critical, alert, emergency");
    mcp_wants_level(r->client, level ? param_log_level(json_str(level)) : MCP_LOG_LEVEL_NONE);
    return OK;
}

static enum err find_method(struct request *r)
{
    const struct method *method = r->method = method_find(r->method_name);
    if (method && method->flags & (r->modern ? ERA_MODERN : ERA_LEGACY)) {
        if (r->fault.len && !(method->flags & TAKES_FAULT))
            return reply_refuse(r, RPC_PARSE, "no valid JSON: " STR_FMT, STR_ARG(r->fault));
        return OK;
    }
    if (method) { /* of the modern era: the key that is missing is named */
        enum err err = r->modern ? OK : check_modern(r);
        return err ? err
                   : reply_refuse(r, RPC_UNKNOWN_METHOD,
                                  "method %s does not exist in protocol version " MCP_MODERN, method->name);
    }
    struct str name = str_cut(r->method_name, 64), near = method_suggest(r->method_name);
    return reply_refuse(r, RPC_UNKNOWN_METHOD, "unknown method '" STR_FMT "'%s" STR_FMT "%s", STR_ARG(name),
                        near.len ? " (did you mean '" : "", STR_ARG(near), near.len ? "'?)" : "");
}

/* Refuses a request that a limit of the daemon leaves no place for. A user may have as many calls in flight
 * as are free: one alone gets half of all, and the next user still finds room. */
static enum err find_place(struct request *r)
{
    const struct client *client = r->client;
    const struct server *server = client->server;
    const struct config *config = server_config(server);
    size_t bytes = server->pending_bytes + loop_bytes(server->loop);
    size_t all = config_in_flight_all(config), pending = server->pending;
    size_t left = all > pending ? all - pending : 0, of_user = config->limits.in_flight_user;
    if (!(r->method->flags & MAY_WAIT))
        return OK;
    if (bytes > config->limits.memory)
        return reply_refuse(r, RPC_MEMORY,
                            "all calls together hold %zu bytes, more than limits.memory (%zu): try again "
                            "when others are done, or raise it in the configuration",
                            bytes, config->limits.memory);
    if (client->pending_count >= config->limits.in_flight)
        return reply_refuse(r, RPC_CALLS_OF_CONNECTION,
                            "%zu calls of this connection are in flight, the most that limits.in_flight "
                            "allows: wait for an answer, or raise it in the configuration",
                            client->pending_count);
    if (!left)
        return reply_refuse(r, RPC_CALLS_OF_ALL,
                            "%zu calls of all connections are in flight, the most that "
                            "limits.in_flight_all allows: try again in a second, or raise it in the "
                            "configuration",
                            pending);
    if (of_user && client->user->pending >= of_user)
        return reply_refuse(r, RPC_CALLS_OF_USER,
                            "%zu calls of user %s are in flight, the most that limits.in_flight_user "
                            "allows: wait for an answer, or raise it in the configuration",
                            client->user->pending, client->peer.user);
    if (client->user->pending >= left)
        return reply_refuse(r, RPC_CALLS_OF_USER,
                            "%zu calls of user %s are in flight, and %zu of limits.in_flight_all (%zu) are "
                            "free, which is kept for other users: wait for an answer, or raise it in the "
                            "configuration",
                            client->user->pending, client->peer.user, left, all);
    return OK;
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

void request_cancel_ledger(struct request *request)
{
    ledger_cancel(request->client->server->gate.ledger, request);
}

void request_cancel(struct request *request)
{
    request->cancel(request);
    free_pending(request);
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
    r->client->in_batch = true;
    for (uint32_t i = 0; i < batch->len; i++) {
        const struct json *message = &batch->items[i];
        if (json_is(message, JSON_OBJECT))
            request_serve(r->client, (struct str){message->raw, message->raw_len});
        else
            reply_error(r, RPC_INVALID_REQUEST, "expected a JSON-RPC request object in the batch, got %s",
                        param_kind(message));
    }
    r->client->in_batch = false;
}

static enum request_status serve(struct request *r, struct str text)
{
    if (read_json(r, text))
        return REQUEST_DONE;
    if (json_is(&r->message, JSON_ARRAY) && r->message.len && !r->fault.len &&
        str_is(request_protocol(r), MCP_2025_03_26)) {
        serve_batch(r);
        return REQUEST_DONE;
    }
    if (read_envelope(r))
        return REQUEST_DONE;
    if (!r->id.len) {
        const struct json *params = json_get_text(&r->message, "params");
        r->params = json_is(params, JSON_OBJECT) ? params : NULL;
        if (r->fault.len || !notification_handle(r))
            log_event(LOG_DEBUG, "notification_ignored", LOG_TEXT("connection", r->client->name),
                      LOG_STR("method", r->method_name));
        return REQUEST_DONE;
    }
    if (read_object(r, json_get_text(&r->message, "params"), "params", &r->params) ||
        read_object(r, json_get_text(r->params, "_meta"), "params._meta", &r->meta))
        return REQUEST_DONE;
    r->modern = json_get_text(r->meta, MCP_VERSION_KEY) || json_get_text(r->meta, MCP_CAPABILITIES_KEY) ||
                json_get_text(r->meta, MCP_CLIENT_KEY);
    if ((r->modern && check_modern(r)) || find_method(r) || find_place(r) || gate_keys_check(r))
        return REQUEST_DONE;
    if (r->method->flags & FOR_OPERATORS && param_require_operator(r, r->method->name))
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

/* ---- members of params ---- */

const char *param_kind(const struct json *value)
{
    static const char *const kinds[] = {
        [JSON_NULL] = "null",       [JSON_BOOL] = "a boolean", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "an array", [JSON_OBJECT] = "an object",
    };
    return value ? kinds[value->type] : "nothing";
}

static const char *path_of(const struct request *r, const struct json *object)
{
    return object == r->meta ? "params._meta." : object == r->params ? "params." : "params.accept.";
}

/* Shows a scalar itself, anything else by its kind. */
static enum err refuse_type(struct request *r, const struct json *object, const char *key,
                            const char *expected, const struct json *got)
{
    struct buf text = buf_in(r->arena);
    if (got->type == JSON_ARRAY || got->type == JSON_OBJECT)
        buf_text(&text, param_kind(got));
    else
        json_write(&text, got);
    return reply_refuse(r, RPC_INVALID_PARAMS, "%s%s: expected %s, got " STR_FMT, path_of(r, object), key,
                        expected, STR_ARG(str_cut(buf_view(&text), GOT_MAX_BYTES)));
}

enum err param_string(struct request *request, const struct json *object, const char *key, struct str *out)
{
    const struct json *value = json_get_text(object, key);
    *out = json_str(value);
    return !value || json_is(value, JSON_STRING) ? OK : refuse_type(request, object, key, "a string", value);
}

enum err param_flag(struct request *request, const char *key, bool *out)
{
    const struct json *value = json_get_text(request->params, key);
    *out = json_is_true(value);
    return !value || json_is(value, JSON_BOOL)
               ? OK
               : refuse_type(request, request->params, key, "true or false", value);
}

enum err param_count(struct request *request, const struct json *object, const char *key, uint32_t *out)
{
    const struct json *value = json_get_text(object, key);
    int64_t n = 0;
    *out = 0;
    if (value && (!json_int(value, &n) || n < 0 || n > COUNT_MAX))
        return refuse_type(request, object, key, "a whole number from 1 to 2147483647", value);
    *out = (uint32_t)n;
    return OK;
}

enum err param_turn(struct request *request, const struct json *object, const char *key, uint32_t *number,
                    uint32_t *text)
{
    const struct json *value = json_get_text(object, key);
    struct str name = json_str(value);
    int64_t n = 0;
    *number = *text = 0;
    if (json_is(value, JSON_STRING) && name.len && name.len <= TURN_TEXT_MAX_BYTES)
        *text = ledger_turn_text(name);
    else if (value && (!json_int(value, &n) || n < 0 || n > COUNT_MAX))
        return refuse_type(
            request, object, key,
            "a whole number from 1 to 2147483647, or a text of 1 to 128 bytes that names the turn", value);
    *number = (uint32_t)n;
    return OK;
}

struct str param_label(const struct json *object, const char *key)
{
    const struct json *value = json_get_text(object, key);
    return json_is(value, JSON_NUMBER) ? (struct str){value->text, value->len} : json_str(value);
}

enum err param_by(struct request *request, const struct json *object, const char *key, bool *by_person)
{
    const struct json *value = json_get_text(object, key);
    struct str name = json_str(value);
    *by_person = str_is(name, "person");
    return !value || *by_person || str_is(name, "program")
               ? OK
               : refuse_type(request, object, key, "\"person\" or \"program\"", value);
}

static enum err param_bounded(struct request *request, const struct json *object, const char *key,
                              size_t most, const char *hint, struct str *out)
{
    enum err err = param_string(request, object, key, out);
    if (!err && out->len > most)
        return reply_refuse(request, RPC_INVALID_PARAMS, "%s%s: expected at most %zu bytes, got %zu%s",
                            path_of(request, object), key, most, out->len, hint);
    return err;
}

enum err param_agent(struct request *request, struct str *out)
{
    return param_bounded(request, request->meta, GATE_AGENT_KEY, AGENT_MAX_BYTES, "", out);
}

enum err param_session(struct request *request, struct str *out)
{
    return param_bounded(request, request->meta, GATE_SESSION_KEY, SESSION_MAX_BYTES, "", out);
}

enum err param_goal(struct request *request, const struct json *object, const char *key, struct str *out)
{
    return param_bounded(request, object, key, GOAL_MAX_BYTES,
                         ": send the user's request without the long texts that belong to it", out);
}

enum err param_context(struct request *request, const struct json **out)
{
    const struct json *context = json_get_text(request->meta, GATE_CONTEXT_KEY);
    *out = context;
    if (!context)
        return OK;
    if (!json_is(context, JSON_OBJECT))
        return refuse_type(request, request->meta, GATE_CONTEXT_KEY, "an object", context);
    size_t bytes = json_to_str(request->arena, context).len;
    return bytes <= CONTEXT_MAX_BYTES
               ? OK
               : reply_refuse(request, RPC_INVALID_PARAMS,
                              "params._meta." GATE_CONTEXT_KEY ": expected at most %u bytes of JSON, got %zu",
                              CONTEXT_MAX_BYTES, bytes);
}

int param_log_level(struct str name)
{
    int level = MCP_LOG_LEVEL_NONE;
    while (--level >= 0 && !str_is(name, mcp_log_level_name(level)))
        continue;
    return level;
}

enum err param_require_operator(struct request *request, const char *what)
{
    const struct peer *peer = &request->client->peer;
    if (client_is_operator(request->client))
        return OK;
    if (server_config(request->client->server)->operators)
        return reply_refuse(
            request, RPC_FORBIDDEN,
            "%s is for the users and groups that `operators` of the configuration names and for root; "
            "you are %s (uid %u)",
            what, peer->user, (unsigned)peer->uid);
    return reply_refuse(request, RPC_FORBIDDEN,
                        "%s is for the user that runs the daemon (uid %u) and for root; you are %s (uid %u)",
                        what, (unsigned)geteuid(), peer->user, (unsigned)peer->uid);
}

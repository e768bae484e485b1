/* The table of errors; replies and notifications, written straight into the connection's output. */
#include "server/request.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/version.h"
#include "catalog/mcp_version.h"
#include "gate/call.h"
#include "server/problems.h"

#include <math.h>
#include <stdarg.h>

#define PROGRESS_TEXT_MAX_BYTES  4096u
#define UPSTREAM_ERROR_MAX_BYTES 1048576u /* of its message, and of its data */

static const struct jsonrpc_error_info {
    int code;
    const char *name; /* in error.data.name; NULL for the standard's codes */
    const char *key;  /* in error.data.key: the configuration key that raises the limit; NULL: none */
} errors[RPC_ERROR_COUNT] = {
    [RPC_PARSE] = {-32700, NULL, NULL},
    [RPC_INVALID_REQUEST] = {-32600, NULL, NULL},
    [RPC_UNKNOWN_METHOD] = {-32601, NULL, NULL},
    [RPC_INVALID_PARAMS] = {-32602, NULL, NULL},
    [RPC_UNSUPPORTED_VERSION] = {-32022, NULL, NULL},
    [RPC_MESSAGE_TOO_LONG] = {1001, "message_too_long", "limits.message"},
    [RPC_TOO_DEEP] = {1002, "too_deep", "limits.depth"},
    [RPC_TOO_MANY_VALUES] = {1003, "too_many_values", NULL},
    [RPC_CALLS_OF_CONNECTION] = {1004, "too_many_calls_of_connection", "limits.in_flight"},
    [RPC_CALLS_OF_ALL] = {1005, "too_many_calls", "limits.in_flight_all"},
    [RPC_MEMORY] = {1006, "too_much_memory", "limits.memory"},
    [RPC_CONNECTIONS] = {1007, "too_many_connections", "limits.connections"},
    [RPC_FILES] = {1008, "no_file_descriptors", NULL},
    [RPC_SUBSCRIPTIONS] = {1009, "too_many_subscriptions", NULL},
    [RPC_RESULT_TOO_LARGE] = {1010, "result_too_large", NULL},
    [RPC_NOT_WELCOME] = {1011, "not_welcome", "allow"},
    [RPC_FORBIDDEN] = {1012, "forbidden", NULL},
    [RPC_STOPPING] = {1013, "stopping", NULL},
    [RPC_NOT_FOUND] = {1014, "not_found", NULL},
    [RPC_UNAVAILABLE] = {1015, "unavailable", NULL},
    [RPC_RELOAD_FAILED] = {1016, "reload_failed", NULL},
    [RPC_RESOURCE_NOT_FOUND] = {-32002, NULL, NULL}, /* of the legacy era */
    [RPC_CALLS_OF_USER] = {1017, "too_many_calls_of_user", "limits.in_flight_user"},
};

static void write_error(struct buf *buf, struct str id, int64_t code, struct str message, struct str data)
{
    struct json_out out = json_out(buf);
    json_open(&out, '{');
    json_fields(&out, FIELD_TEXT("jsonrpc", "2.0"), FIELD_IF(id.len, FIELD_RAW("id", id)));
    json_field_object(&out, "error", FIELD_NUM("code", code), FIELD_STR("message", message),
                      FIELD_IF(data.len, FIELD_RAW("data", data)));
    json_close(&out, '}');
    buf_byte(buf, '\n');
}

void jsonrpc_write_error(struct buf *buf, struct str id, enum rpc_error error, struct str message,
                         struct str data)
{
    const struct jsonrpc_error_info *info = &errors[error];
    struct buf own = {0};
    struct json_out out = json_out(&own);
    if (!data.len && info->name) {
        json_put_object(&out, FIELD_TEXT("name", info->name), FIELD_OPTIONAL("key", str_of(info->key)));
        data = buf_view(&own);
    }
    write_error(buf, id, info->code, message, data);
    buf_clear(&own);
}

enum request_status reply_error_data(struct request *request, enum rpc_error error, struct str message,
                                     struct str data)
{
    jsonrpc_write_error(conn_out(request->client->conn), request->id, error, message, data);
    return REQUEST_DONE;
}

enum request_status reply_upstream_error(struct request *request, int64_t code, struct str message,
                                         const struct json *data)
{
    struct str written = data ? json_to_str(request->arena, data) : STR_NONE;
    write_error(conn_out(request->client->conn), request->id, code,
                str_cut(message, UPSTREAM_ERROR_MAX_BYTES),
                written.len <= UPSTREAM_ERROR_MAX_BYTES ? written : STR_NONE);
    return REQUEST_DONE;
}

enum request_status reply_error(struct request *request, enum rpc_error error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str message = arena_vprintf(request->arena, format, args);
    va_end(args);
    return reply_error_data(request, error, message, STR_NONE);
}

void reply_ask(struct client *client, struct str id, const char *method, struct str params)
{
    struct json_out out = json_out(conn_out(client->conn));
    json_put_object(&out, FIELD_TEXT("jsonrpc", "2.0"), FIELD_OPTIONAL("id", id),
                    FIELD_TEXT("method", method), FIELD_IF(params.len, FIELD_RAW("params", params)));
    buf_byte(out.buf, '\n');
}

struct json_out *reply_open(struct request *request)
{
    return reply_open_as(request, "complete");
}

struct json_out *reply_open_as(struct request *request, const char *result_type)
{
    struct buf *buf = conn_out(request->client->conn);
    struct json_out *out = &request->out;
    request->reply_at = buf->len;
    request->has_meta = false;
    buf_text(buf, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(buf, request->id);
    buf_text(buf, ",\"result\":");
    *out = json_out(buf);
    json_open(out, '{');
    if (request->modern)
        json_field_text(out, "resultType", result_type);
    return out;
}

struct json_out *reply_meta(struct request *request)
{
    struct json_out *out = &request->out;
    request->has_meta = true;
    json_field_open(out, "_meta", '{');
    if (request->modern)
        json_field_raw(out, MCP_SERVER_KEY,
                       STR_LIT("{\"name\":\"toolgate\",\"version\":\"" TOOLGATE_VERSION "\"}"));
    return out;
}

void reply_meta_of_tool(struct request *request, const struct json *meta)
{
    uint64_t held;
    for (uint32_t i = 0; json_is(meta, JSON_OBJECT) && i < meta->len; i++) {
        struct str key = meta->members[i].key;
        bool is_ours = str_starts(key, GATE_KEY_PREFIX) && !str_is(key, CALL_COST_KEY);
        if (is_ours &&
            rate_limit_allow(&request->client->server->problems.lines, PROBLEM_LINES_PER_SECOND, &held))
            log_event(LOG_WARN, "meta_dropped", LOG_STR("method", request->method_name),
                      LOG_STR("key", str_cut(key, 64)), LOG_TEXT("why", "only toolgate writes such keys"),
                      LOG_NUM("not_logged", held));
        if (is_ours || str_starts(key, "io.modelcontextprotocol/"))
            continue;
        json_key_str(&request->out, key);
        json_put(&request->out, &meta->members[i].value);
    }
}

bool reply_fits(struct request *request)
{
    struct json_out *out = &request->out;
    if (request->modern && !request->has_meta)
        json_close(reply_meta(request), '}');
    json_close(out, '}');
    buf_text(out->buf, "}\n");
    size_t length = out->buf->len - request->reply_at;
    size_t unread = conn_unsent_bytes(request->client->conn) - length;
    size_t share = server_config(request->client->server)->limits.memory / SERVER_UNREAD_SHARES;
    request->unread = length > SERVER_UNREAD_FREE && unread + length > share ? unread : 0;
    if (length <= SERVER_LINE_MAX_BYTES && !request->unread)
        return true;
    out->buf->len = request->reply_at;
    return false;
}

enum request_status reply_close(struct request *request)
{
    if (reply_fits(request))
        return REQUEST_DONE;
    if (request->unread)
        return reply_error(request, RPC_MEMORY,
                           "%zu bytes of earlier replies on this connection are unread, so this one is not "
                           "sent: read them first, or raise limits.memory (a connection may leave 1/%u of "
                           "it unread)",
                           request->unread, SERVER_UNREAD_SHARES);
    return reply_error(request, RPC_RESULT_TOO_LARGE,
                       "the reply is longer than %u bytes, the most that is sent in one line: ask for less",
                       SERVER_LINE_MAX_BYTES);
}

enum request_status reply_empty(struct request *request)
{
    reply_open(request);
    return reply_close(request);
}

/* The protocol requires that progress increases; other values are dropped. A tool may report progress for as
 * long as it runs, so this allocates nothing in the request's arena. */
static void relay_progress(void *owner, double progress, double total, struct str message)
{
    struct request *r = owner;
    bool unread = conn_out(r->client->conn)->len > CONN_OUT_HIGH_BYTES;
    if (!isfinite(progress) || progress <= r->progress || unread)
        return;
    r->progress = progress;
    struct buf params = {0};
    struct json_out out = json_out(&params);
    json_open(&out, '{');
    json_field(&out, "progressToken", json_get_text(r->meta, "progressToken"));
    json_key(&out, "progress");
    json_put_double(&out, progress);
    if (isfinite(total) && total > 0) {
        json_key(&out, "total");
        json_put_double(&out, total);
    }
    if (!mcp_version_before(request_protocol(r), MCP_2025_03_26))
        json_field_optional_str(&out, "message", str_cut(message, PROGRESS_TEXT_MAX_BYTES));
    json_close(&out, '}');
    reply_notification(r->client, "notifications/progress", buf_view(&params));
    buf_clear(&params);
}

upstream_progress *reply_progress_begin(struct request *r)
{
    const struct json *token = json_get_text(r->meta, "progressToken");
    r->progress = -INFINITY;
    return json_is(token, JSON_STRING) || json_is(token, JSON_NUMBER) ? relay_progress : NULL;
}

/* The table of errors, and the line of an error. */
#include "server/jsonrpc.h"

#include "json/write.h"

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

static void begin_error(struct json_out *out, struct str id, int64_t code, struct str message)
{
    json_open(out, '{');
    json_field_text(out, "jsonrpc", "2.0");
    if (id.len)
        json_field_raw(out, "id", id);
    json_field_open(out, "error", '{');
    json_field_int(out, "code", code);
    json_field_str(out, "message", message);
}

static void end_error(struct json_out *out)
{
    json_close(out, '}');
    json_close(out, '}');
    buf_byte(out->buf, '\n');
}

void jsonrpc_write_error(struct buf *buf, struct str id, enum rpc_error error, struct str message,
                         struct str data)
{
    const struct jsonrpc_error_info *info = &errors[error];
    struct json_out out = json_out(buf);
    begin_error(&out, id, info->code, message);
    if (data.len) {
        json_field_raw(&out, "data", data);
    } else if (info->name) {
        json_field_open(&out, "data", '{');
        json_field_text(&out, "name", info->name);
        if (info->key)
            json_field_text(&out, "key", info->key);
        json_close(&out, '}');
    }
    end_error(&out);
}

void jsonrpc_write_foreign_error(struct buf *buf, struct str id, int64_t code, struct str message,
                                 struct str data)
{
    struct json_out out = json_out(buf);
    begin_error(&out, id, code, message);
    if (data.len)
        json_field_raw(&out, "data", data);
    end_error(&out);
}

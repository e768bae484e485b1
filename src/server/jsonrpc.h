/*
 * JSON-RPC's errors as one table: the standard's codes, MCP's, and our own,
 * which lie outside -32768..-32000 so that no client takes them for theirs.
 */
#ifndef TOOLGATE_SERVER_JSONRPC_H
#define TOOLGATE_SERVER_JSONRPC_H

#include "base/buf.h"

enum rpc_error {
    RPC_PARSE,
    RPC_INVALID_REQUEST,
    RPC_UNKNOWN_METHOD,
    RPC_INVALID_PARAMS,
    RPC_UNSUPPORTED_VERSION,
    RPC_MESSAGE_TOO_LONG,
    RPC_TOO_DEEP,
    RPC_TOO_MANY_VALUES,
    RPC_CALLS_OF_CONNECTION,
    RPC_CALLS_OF_ALL,
    RPC_MEMORY,
    RPC_CONNECTIONS,
    RPC_FILES,
    RPC_SUBSCRIPTIONS,
    RPC_RESULT_TOO_LARGE,
    RPC_NOT_WELCOME,
    RPC_FORBIDDEN,
    RPC_STOPPING,
    RPC_NOT_FOUND,
    RPC_UNAVAILABLE,
    RPC_RELOAD_FAILED,
    RPC_ERROR_COUNT
};

struct jsonrpc_error_info {
    int code;
    const char *name; /* in error.data.name; NULL for the standard's own, whose code says it */
    const char *key;  /* the configuration key that raises the limit, in error.data.key; NULL: none */
};

const struct jsonrpc_error_info *jsonrpc_error_info(enum rpc_error error);

/* One whole line. `id` is JSON text; empty: it could not be read, and no id is sent (never null). `data` is
 * JSON text; empty: what the table says, if anything. */
void jsonrpc_write_error(struct buf *out, struct str id, enum rpc_error error, struct str message,
                         struct str data);

#endif

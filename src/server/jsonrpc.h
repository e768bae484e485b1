/*
 * JSON-RPC errors in one table: the standard's codes, MCP's, and toolgate's,
 * which lie outside the reserved range -32768..-32000.
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
    RPC_CALLS_OF_USER,
    RPC_RESOURCE_NOT_FOUND,
    RPC_ERROR_COUNT
};

/* Appends an error as one line. `id`: JSON; empty if it could not be read, then none is sent (never null).
 * `data`: JSON; empty for the name and key of the table, if any. */
void jsonrpc_write_error(struct buf *out, struct str id, enum rpc_error error, struct str message,
                         struct str data);

#endif

/*
 * Protocol versions, the keys of _meta, of MCP and of toolgate's extension, and JSON-RPC errors: the
 * standard's codes, MCP's, and toolgate's, which lie outside the reserved range -32768..-32000.
 */
#ifndef TOOLGATE_SERVER_PROTOCOL_H
#define TOOLGATE_SERVER_PROTOCOL_H

#include "base/buf.h"
#include "catalog/mcp_version.h"

#define MCP_MODERN           "2026-07-28"
#define MCP_NEWEST_LEGACY    MCP_2025_11_25
#define MCP_VERSION_KEY      "io.modelcontextprotocol/protocolVersion"
#define MCP_CAPABILITIES_KEY "io.modelcontextprotocol/clientCapabilities"
#define MCP_CLIENT_KEY       "io.modelcontextprotocol/clientInfo"
#define MCP_LEVEL_KEY        "io.modelcontextprotocol/logLevel"
#define MCP_SERVER_KEY       "io.modelcontextprotocol/serverInfo"
#define MCP_SUBSCRIPTION_KEY "io.modelcontextprotocol/subscriptionId"

#define MCP_BATCH_MAX 100u /* messages of one batch, which only 2025-03-26 has */

#define MCP_LOG_LEVEL_INFO 1 /* the log level of a legacy client that has set none */
#define MCP_LOG_LEVEL_NONE 8 /* beyond "emergency" */

#define MCP_TTL_MS      300000    /* how long a client may cache a list; list_changed ends it earlier */
#define MCP_CACHE_SCOPE "private" /* lists differ by the peer's user */

#define GATE_KEY_PREFIX  "dev.toolgate/"
#define GATE_EXTENSION   "dev.toolgate/gate"
#define GATE_VERDICT_KEY "dev.toolgate/verdict"
#define GATE_WARNING_KEY "dev.toolgate/warning"
#define GATE_FINAL_KEY   "dev.toolgate/final"
#define GATE_SESSION_KEY "dev.toolgate/session"
#define GATE_TURN_KEY    "dev.toolgate/turn"
#define GATE_BY_KEY      "dev.toolgate/turn_by"
#define GATE_AGENT_KEY   "dev.toolgate/agent"
#define GATE_STEP_KEY    "dev.toolgate/step"
#define GATE_CALL_KEY    "dev.toolgate/call"
#define GATE_GOAL_KEY    "dev.toolgate/goal"
#define GATE_CONTEXT_KEY "dev.toolgate/context"
#define GATE_EXT_KEY     "dev.toolgate/ext"
#define GATE_TRACE_KEY   "dev.toolgate/trace"

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

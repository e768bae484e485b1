/* Protocol versions and the keys of _meta, of MCP and of toolgate's extension. */
#ifndef TOOLGATE_SERVER_MCP_KEYS_H
#define TOOLGATE_SERVER_MCP_KEYS_H

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

#endif

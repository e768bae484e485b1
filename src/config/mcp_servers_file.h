/*
 * The mcpServers JSON that people have from other clients (Claude Desktop,
 * Cursor, VS Code's `servers`, Zed's `context_servers`), read as upstreams.
 * Comments are fine; keys that are other clients' own are left alone.
 */
#ifndef TOOLGATE_CONFIG_MCP_SERVERS_FILE_H
#define TOOLGATE_CONFIG_MCP_SERVERS_FILE_H

#include "config/config.h"

#define MCP_SERVERS_FILE_MAX_BYTES 4194304u

/* Adds the upstreams of all config->mcp_configs. `why` has one line for each thing that is wrong. */
enum err mcp_servers_file_read(struct config *config, struct why *why);

#endif

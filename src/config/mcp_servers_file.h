/*
 * The mcpServers JSON of other clients (Claude Desktop, Cursor, VS Code's
 * `servers`, Zed's `context_servers`), read as upstreams. Comments are allowed;
 * keys of other clients are ignored.
 */
#ifndef TOOLGATE_CONFIG_MCP_SERVERS_FILE_H
#define TOOLGATE_CONFIG_MCP_SERVERS_FILE_H

#include "config/config.h"

#define MCP_SERVERS_FILE_MAX_BYTES 4194304u

/* Adds the upstreams of all config->mcp_configs. `why` has one line for each error. */
enum err mcp_servers_file_read(struct config *config, struct why *why);

#endif

/*
 * A generation loaded here instead of in a daemon: for dry runs, the tools'
 * list, the examples and `serve --check`. The same loading as the daemon's.
 */
#ifndef TOOLGATE_CLI_LOCAL_GENERATION_H
#define TOOLGATE_CLI_LOCAL_GENERATION_H

#include "cli/options.h"
#include "catalog/generation.h"

/* What these commands share with serve: -c FILE, --policies DIR, --tools FILE, --mcp-config FILE. */
struct local_options {
    const char *config, *policies;
    struct cli_list tools, mcp_configs;
};

/* Rows of a table of options. */
// clang-format off
#define LOCAL_OPTIONS(o) \
    {"config", "FILE", "the configuration, a Lua file that returns a table", 'c', OPTION_STRING, &(o)->config}, \
    {"policies", "DIR", "folder of policies (default ./policies)", 'p', OPTION_STRING, &(o)->policies}, \
    {"tools", "FILE", "tool definitions, JSON; may be repeated", 't', OPTION_LIST, &(o)->tools}, \
    {"mcp-config", "FILE", "MCP servers as other clients list them (mcpServers), JSON; may be repeated", 'm', OPTION_LIST, &(o)->mcp_configs}
// clang-format on

struct config_sources local_sources(const struct local_options *options, const char *socket);

/* Loads everything for a command that cannot go on without: complaints and warnings go to stderr; NULL on
 * failure. */
struct generation *local_generation_load(const struct command *command, const struct local_options *options);

/* Complaints and warnings on stderr, one line each. */
void local_print_report(const struct generation_report *report);

/* This process as a peer. */
void local_peer(struct peer *peer);

#endif

/*
 * A generation that is loaded in this process instead of a daemon: for dry
 * runs, the list of tools, examples and `serve --check`.
 */
#ifndef TOOLGATE_CLI_LOCAL_GENERATION_H
#define TOOLGATE_CLI_LOCAL_GENERATION_H

#include "cli/options.h"
#include "catalog/generation.h"

/* The options that these commands share with serve. */
struct local_options {
    const char *config, *policies;
    struct cli_list tools, mcp_configs;
};

/* Rows of a table of options. */
// clang-format off
#define LOCAL_OPTIONS(o) \
    {"config", "FILE", "the configuration, a Lua file", 'c', OPTION_STRING, &(o)->config}, \
    {"policies", "DIR", "the folder of policies (default ./policies)", 'p', OPTION_STRING, &(o)->policies}, \
    {"tools", "FILE", "a JSON file of tool definitions; may be repeated", 't', OPTION_LIST, &(o)->tools}, \
    {"mcp-config", "FILE", "a JSON file with mcpServers, as other clients use; may be repeated", 'm', OPTION_LIST, &(o)->mcp_configs}
// clang-format on

/* Those of a command that is declared in Lua: see command_given. */
void local_options_given(char *const *given, struct local_options *out);

struct config_sources local_sources(const struct local_options *options, const char *socket);

/* NULL after errors on stderr. Warnings go there too. */
struct generation *local_generation_load(const struct command *command, const struct local_options *options);

/* Prints errors and warnings to stderr, one a line. */
void local_print_report(const struct generation_report *report);

/* Adds an error for each mode "shadow" that is past its date; false: there is none. */
bool local_report_expired(const struct generation *generation, struct generation_report *report);

/* This process as a peer. */
void local_peer(struct peer *peer);

#endif

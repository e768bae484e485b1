/*
 * A generation that is loaded in this process instead of a daemon: for dry
 * runs, the list of tools, examples and `serve --check`.
 */
#ifndef TOOLGATE_CLI_LOCAL_GENERATION_H
#define TOOLGATE_CLI_LOCAL_GENERATION_H

#include "cli/command.h"
#include "catalog/generation.h"

#define OPTIONS_LIST_MAX 64u /* values of one repeated option */

struct cli_list {
    const char *items[OPTIONS_LIST_MAX];
    size_t count;
};

/* The options that these commands share with serve. */
struct local_options {
    const char *config, *policies;
    struct cli_list tools, mcp_configs;
};

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

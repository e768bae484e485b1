/*
 * The subcommands that are Lua (lua/cli): a file each, which declares name, options and text once, and runs
 * them. Their state is an operator's, with Lua's own libraries; policies run elsewhere (sandbox/).
 */
#ifndef TOOLGATE_CLI_LUA_COMMAND_H
#define TOOLGATE_CLI_LUA_COMMAND_H

#include "cli/command.h"

/* The `run` of such a row. */
int lua_command_run(const struct command *command, int argc, char **argv);

/* The line for --help, out of the command's file. */
struct str lua_command_summary(const char *name);

#endif

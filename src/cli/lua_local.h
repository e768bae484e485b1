/*
 * Functions of lua/cli that load policies and tools in this process. Each takes the table of a command's
 * options, with its operands as the list; after an error on stderr it ends the command.
 */
#ifndef TOOLGATE_CLI_LUA_LOCAL_H
#define TOOLGATE_CLI_LUA_LOCAL_H

#include "cli/local_generation.h"

#include <lua.h>

struct arena;

/* cli.replay(options): the report as a table, for the views in lua/report, and as the text of --json. */
int lua_replay(lua_State *L);

/* cli.lint(): a table of functions: the run, and what its checks in Lua ask. */
int lua_lint(lua_State *L);

/* cli.test(): a table of functions: the run of examples, its coverage, changes of files. */
int lua_test(lua_State *L);

/* ---- for these functions: the table is their first argument and owns the texts ---- */

const char *lua_local_text(lua_State *L, const char *option); /* NULL: not given */
bool lua_local_flag(lua_State *L, const char *option);
void lua_local_list(lua_State *L, const char *option, struct cli_list *out);
/* The options of lua/cli/places.lua. */
void lua_local_read(lua_State *L, struct local_options *out);
const char **lua_local_operands(lua_State *L, struct arena *arena, size_t *count);

/* Ends the command with CLI_ERROR; does not return. */
int lua_local_end(lua_State *L);

#endif

/* What the files lua_*.c share: they give lua/cli its functions in C, as the table `cli`. */
#ifndef TOOLGATE_CLI_LUA_CLI_H
#define TOOLGATE_CLI_LUA_CLI_H

#include "base/buf.h"
#include "cli/command.h"
#include "json/value.h"

#include <lauxlib.h>

#define LUA_CLI_NODES 50000000u /* values of JSON: thousands of tools are one list */

/* Each ends with an empty row. */
extern const luaL_Reg lua_local_functions[];  /* lua_local.c: what is loaded in this process */
extern const luaL_Reg lua_schema_functions[]; /* lua_schema.c: schemas, and JSON for people */
extern const luaL_Reg lua_host_functions[];   /* lua_host.c: files, sockets and limits of this host */

/* The command that runs: its name begins errors. */
const struct command *lua_cli_command(void);

/* Ends the command with this exit code: an error of Lua. */
int lua_cli_end(lua_State *L, enum cli_exit code);

/* The string at `at`, borrowed from Lua. */
struct str lua_cli_str(lua_State *L, int at);

/* Pushes the text and clears the buffer; returns 1. */
int lua_cli_push_buf(lua_State *L, struct buf *text);

/* Pushes a table with the JSON of each member or item, as it was written. */
void lua_cli_push_parts(lua_State *L, const struct json *value);

/* A field of the table on top; NULL, an empty string: nothing. */
void lua_cli_set(lua_State *L, const char *name, const char *text);
void lua_cli_set_str(lua_State *L, const char *name, struct str text);

#endif

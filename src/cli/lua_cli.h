/* What the files lua_*.c share: they give lua/cli its functions in C, as the table `cli`. */
#ifndef TOOLGATE_CLI_LUA_CLI_H
#define TOOLGATE_CLI_LUA_CLI_H

#include "base/buf.h"
#include "cli/command.h"
#include "cli/local_generation.h"
#include "json/value.h"

#include <lauxlib.h>

struct arena;

#define LUA_CLI_NODES       50000000u /* values of JSON: thousands of tools are one list */
#define LUA_CLI_INPUT_BYTES 67108864u /* of a file, or of stdin */

/* Each ends with an empty row. */
extern const luaL_Reg lua_local_functions[];    /* lua_local.c: what is loaded in this process */
extern const luaL_Reg lua_schema_functions[];   /* lua_schema.c: schemas, and JSON for people */
extern const luaL_Reg lua_host_functions[];     /* lua_host.c: files, sockets and limits of this host */
extern const luaL_Reg lua_log_functions[];      /* lua_log.c: the decision log */
extern const luaL_Reg lua_terminal_functions[]; /* lua_terminal.c: screen, keys, clock, a connection */

/* cli.replay(options): the report as a table, for the views in lua/report, and as the text of --json. */
int lua_replay(lua_State *L);
/* cli.hook(): a table of functions: the deadline, notes to the next hook, JSON as it was sent, the daemon. */
int lua_hook(lua_State *L);
/* cli.lint(): likewise: the run, and what its checks in Lua ask. */
int lua_lint(lua_State *L);
/* cli.test(): likewise: the run of examples, its coverage, changes of files. */
int lua_test(lua_State *L);

/* The command that runs: its name begins errors. */
const struct command *lua_cli_command(void);

/* Ends the command with CLI_ERROR, after an error on stderr: an error of Lua. */
int lua_cli_end(lua_State *L);

/* Pushes nil, and why; returns 2. */
int lua_cli_fail(lua_State *L, const char *why);

/* The string at `at`, borrowed from Lua. */
struct str lua_cli_str(lua_State *L, int at);

/* Pushes the text and clears the buffer; returns 1. */
int lua_cli_push_buf(lua_State *L, struct buf *text);

/* The whole of stdin. False after an error on stderr. */
bool lua_cli_read_stdin(struct arena *arena, struct str *out);

/* Pushes a table with the JSON of each member or item, as it was written. */
void lua_cli_push_parts(lua_State *L, const struct json *value);

/* A field of the table on top; NULL: nothing. */
void lua_cli_set(lua_State *L, const char *name, const char *text);
void lua_cli_set_str(lua_State *L, const char *name, struct str text);
void lua_cli_set_bool(lua_State *L, const char *name, bool value);
void lua_cli_set_number(lua_State *L, const char *name, double number);

/* ---- for functions whose first argument is the table of a command's options, which owns the texts ---- */

const char *lua_local_text(lua_State *L, const char *option); /* NULL: not given */
bool lua_local_flag(lua_State *L, const char *option);
void lua_local_list(lua_State *L, const char *option, struct cli_list *out);
/* The options of lua/cli/files.lua. */
void lua_local_read(lua_State *L, struct local_options *out);
/* Its list. */
const char **lua_local_operands(lua_State *L, struct arena *arena, size_t *count);

/* Pushes an object with these methods: zeroed memory, which `__gc` among them clears. `class` names its
 * metatable. */
void *lua_cli_object(lua_State *L, size_t bytes, const char *class, const luaL_Reg *methods);

#endif

/* What the files lua_*.c share: they give lua/cli its functions in C, as the table `cli`. */
#ifndef TOOLGATE_CLI_LUA_CLI_H
#define TOOLGATE_CLI_LUA_CLI_H

#include "base/buf.h"
#include "catalog/generation.h"
#include "cli/command.h"
#include "json/write.h"

#include <lauxlib.h>

#define LUA_CLI_NODES       50000000u /* values of JSON: thousands of tools are one list */
#define LUA_CLI_INPUT_BYTES 67108864u /* of a file, or of stdin */

/* Each ends with an empty row. */
extern const luaL_Reg lua_local_functions[];    /* lua_local.c: what is loaded in this process */
extern const luaL_Reg lua_schema_functions[];   /* lua_schema.c: schemas and JSON */
extern const luaL_Reg lua_client_functions[];   /* daemon_client.c: requests to the daemon */
extern const luaL_Reg lua_host_functions[];     /* lua_host.c: files, processes and sockets of this host */
extern const luaL_Reg lua_log_functions[];      /* lua_log.c: the decision log */
extern const luaL_Reg lua_terminal_functions[]; /* lua_terminal.c: screen, keys, clock */

/* cli.serve(options), cli.bridge(options), cli.spawner(options): run until the end. The exit code. */
int lua_serve(lua_State *L);
int lua_connect(lua_State *L);
int lua_spawner(lua_State *L);
/* cli.replay(options): the report as JSON for the views in lua/report, and as that of --json. */
int lua_replay(lua_State *L);
/* cli.transcript(): a table of functions: what the readers of lua/replay ask of a line, and tell of its
 * calls. */
int lua_transcript_functions(lua_State *L);
/* cli.hook(): a table of functions: the deadline, names of notes to the next hook, JSON as it was sent. */
int lua_hook(lua_State *L);
/* cli.lint(): a table of functions: the run, and what its checks in Lua ask. */
int lua_lint(lua_State *L);
/* cli.test(): a table of functions: the run of examples, its coverage, changes of files. */
int lua_test(lua_State *L);

/* Ends the command with CLI_ERROR, after an error on stderr: an error of Lua. */
int lua_cli_end(lua_State *L);

/* Pushes nil, and why; returns 2. */
int lua_cli_fail(lua_State *L, const char *why);
/* The result of a function that asks the system: true; or nil, what errno says, and "exists" or "missing" if
 * that is it. */
int lua_cli_done(lua_State *L, bool done);
/* Pushes a table of these functions; returns 1. */
int lua_cli_push_functions(lua_State *L, const luaL_Reg *functions);

/* The string at `at`, borrowed from Lua. */
struct str lua_cli_str(lua_State *L, int at);

void lua_cli_push_str(lua_State *L, struct str text);

/* Pushes the text and clears the buffer; returns 1. */
int lua_cli_push_buf(lua_State *L, struct buf *text);

/* The whole of stdin. False after an error on stderr. */
bool lua_cli_read_stdin(struct arena *arena, struct str *out);

/* Pushes the value as an answer, and a table with the JSON of each member or item, as it was written. */
void lua_cli_push_answer(lua_State *L, const struct json *value);

/* Pushes two tables: the members that are strings, decoded; and each member as JSON. Returns 2. */
int lua_cli_push_members(lua_State *L, const struct json *object);

/* Fields of the table on top, as json/write.h has members of an object: FIELD_STR("name", name), … */
#define lua_cli_set(L, ...) lua_cli_set_fields((L), (const struct json_field[]){__VA_ARGS__, {.key = NULL}})
void lua_cli_set_fields(lua_State *L, const struct json_field *fields);
/* Pushes a table with these. */
#define lua_cli_push_table(L, ...) (lua_newtable(L), lua_cli_set((L), __VA_ARGS__))
/* Takes the value on top, and adds it to the list below it; and a table with these fields. */
void lua_cli_append(lua_State *L);
#define lua_cli_append_table(L, ...) (lua_cli_push_table((L), __VA_ARGS__), lua_cli_append(L))
/* A list as a field of the table on top. */
void lua_cli_set_list(lua_State *L, const char *name, const struct str *items, size_t count);

/* Pushes an object with these methods: zeroed memory, which `__gc` among them clears. `class` names its
 * metatable. */
void *lua_cli_object(lua_State *L, size_t bytes, const char *class, const luaL_Reg *methods);

/* ---- for functions whose first argument is the table of a command's options, which owns the texts ---- */

const char *lua_cli_option(lua_State *L, const char *name); /* NULL: not given */
bool lua_cli_flag(lua_State *L, const char *name);
/* The values of a repeated option; of the operands if `name` is NULL. The list is in the arena. */
const char **lua_cli_list(lua_State *L, const char *name, struct arena *arena, size_t *count);
/* The options of lua/cli/files.lua; offline. */
struct config_sources lua_cli_sources(lua_State *L, struct arena *arena);

/* ---- lua_local.c ---- */

/* Builds a generation without running its examples. NULL: the report has the errors. `*folder`: the policies
 * that the configuration names, in the report's arena; `folder` may be NULL. */
struct generation *lua_cli_build(const struct config_sources *sources,
                                 const struct generation_build_options *options,
                                 struct generation_report *report, const char **folder);

/* Prints errors and warnings to stderr, one a line. */
void lua_cli_print_report(const struct generation_report *report);

#endif

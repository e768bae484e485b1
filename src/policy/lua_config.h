/* The configuration file: Lua that returns a table, run in a sandbox of its own. */
#ifndef TOOLGATE_POLICY_LUA_CONFIG_H
#define TOOLGATE_POLICY_LUA_CONFIG_H

#include "base/err.h"
#include "json/value.h"

struct arena;

/* Runs the file and reads the table as JSON into *out; functions in it are errors. */
enum err lua_config_read(const char *path, struct arena *arena, struct json *out, struct why *why);

#endif

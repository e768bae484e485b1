/* What lua/cli/hook.lua gets from C: the deadline, notes to the next hook, JSON as it was sent, the daemon.
 */
#ifndef TOOLGATE_CLI_LUA_HOOK_H
#define TOOLGATE_CLI_LUA_HOOK_H

#include <lua.h>

/* cli.hook(): a table of functions. */
int lua_hook(lua_State *L);

#endif

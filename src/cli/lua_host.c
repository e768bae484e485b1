/* What lua/cli gets of this host that Lua's own libraries lack: files, folders, sockets, limits, the clock. */
#include "cli/lua_cli.h"

const luaL_Reg lua_host_functions[] = {
    {0},
};

/* table.sort, insert, remove and concat for policies. Private to src/sandbox. */
#ifndef TOOLGATE_SANDBOX_TABLE_LIBRARY_H
#define TOOLGATE_SANDBOX_TABLE_LIBRARY_H

#include <lauxlib.h>

extern const luaL_Reg table_library_functions[];

#endif

/* table.sort and table.insert for policies; only files of this room include this header. */
#ifndef TOOLGATE_POLICY_TABLES_H
#define TOOLGATE_POLICY_TABLES_H

#include <lua.h>

int tables_sort(lua_State *L);
int tables_insert(lua_State *L);

#endif

/* table.sort, insert, remove and concat for policies; only files of this room include this header. */
#ifndef TOOLGATE_SANDBOX_TABLE_LIBRARY_H
#define TOOLGATE_SANDBOX_TABLE_LIBRARY_H

#include <lua.h>

int tables_sort(lua_State *L);
int tables_insert(lua_State *L);
int tables_remove(lua_State *L);
int tables_concat(lua_State *L);

#endif

/* table.sort, insert, remove and concat for policies; only files of this room include this header. */
#ifndef TOOLGATE_SANDBOX_TABLE_LIBRARY_H
#define TOOLGATE_SANDBOX_TABLE_LIBRARY_H

#include <lua.h>

int table_library_sort(lua_State *L);
int table_library_insert(lua_State *L);
int table_library_remove(lua_State *L);
int table_library_concat(lua_State *L);

#endif

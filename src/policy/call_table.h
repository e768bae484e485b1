/* The table `call` that hooks are given. Only files of this room include this header. */
#ifndef TOOLGATE_POLICY_CALL_TABLE_H
#define TOOLGATE_POLICY_CALL_TABLE_H

#include "base/str.h"

#include <lua.h>

/* The table has this field; if not, *meant is the closest name, or STR_NONE. */
bool call_table_has(struct str name, struct str *meant);

/* Pushes a table for the running hook. */
void call_table_push(lua_State *L);

/* Once per Lua state. */
void call_table_open(lua_State *L);

#endif

/* The table `call` that hooks are given. Only files of this room include this header. */
#ifndef TOOLGATE_POLICY_CALL_TABLE_H
#define TOOLGATE_POLICY_CALL_TABLE_H

#include "base/str.h"
#include "policy/vocabulary/field_table.h"

#include <lua.h>

extern const struct field_table call_table; /* its fields */

/* Is there such a field; if not, the closest one, or STR_NONE. */
bool call_table_has(struct str name, struct str *meant);

/* Pushes one for the running hook. Fields are made when they are read: most hooks read one or none. */
void call_table_push(lua_State *L);

/* At set-up of the state. */
void call_table_open(lua_State *L);

#endif

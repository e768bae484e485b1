/* tostring, string.rep and string.format for policies; only files of this room include this header. */
#ifndef TOOLGATE_SANDBOX_TOSTRING_LIBRARY_H
#define TOOLGATE_SANDBOX_TOSTRING_LIBRARY_H

#include <lua.h>

int string_library_tostring(lua_State *L);

/* Upvalue 1 of both: the stock function. */
int string_library_rep(lua_State *L);
int string_library_format(lua_State *L);

#endif

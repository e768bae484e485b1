/* The functions of the string library that replace LuaJIT's own, and tostring. Private to src/sandbox. */
#ifndef TOOLGATE_SANDBOX_STRING_LIBRARY_H
#define TOOLGATE_SANDBOX_STRING_LIBRARY_H

#include <lauxlib.h>

extern const luaL_Reg string_library[]; /* upvalue 1 of each: the stock function */

int string_library_gmatch_step(lua_State *L); /* the iterator that gmatch returns; it keeps its position */
int string_library_tostring(lua_State *L);

#endif

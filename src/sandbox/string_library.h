/* The functions of the string library that replace LuaJIT's own, and tostring. Private to src/sandbox. */
#ifndef TOOLGATE_SANDBOX_STRING_LIBRARY_H
#define TOOLGATE_SANDBOX_STRING_LIBRARY_H

#include <lua.h>

int string_library_find(lua_State *L);
int string_library_match(lua_State *L);
int string_library_gmatch(lua_State *L);
int string_library_gmatch_step(lua_State *L); /* the iterator that gmatch returns; it keeps its position */
int string_library_gsub(lua_State *L);

int string_library_rep(lua_State *L);    /* upvalue 1: the stock function */
int string_library_format(lua_State *L); /* likewise */
int string_library_tostring(lua_State *L);

#endif

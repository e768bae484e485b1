/* tostring, string.rep and string.format for policies; only files of this room include this header. */
#ifndef TOOLGATE_SANDBOX_TOSTRING_LIBRARY_H
#define TOOLGATE_SANDBOX_TOSTRING_LIBRARY_H

#include <lua.h>

int word_tostring(lua_State *L);

/* Upvalue 1 of both: the stock function. */
int texts_rep(lua_State *L);
int texts_format(lua_State *L);

#endif

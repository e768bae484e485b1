/* string.find, match, gmatch and gsub for policies; only files of this room include this header. */
#ifndef TOOLGATE_SANDBOX_STRING_LIBRARY_H
#define TOOLGATE_SANDBOX_STRING_LIBRARY_H

#include <lua.h>

int string_library_find(lua_State *L);
int string_library_match(lua_State *L);
int string_library_gmatch(lua_State *L);
int string_library_gmatch_step(lua_State *L); /* what gmatch returns: it knows where it is */
int string_library_gsub(lua_State *L);

#endif

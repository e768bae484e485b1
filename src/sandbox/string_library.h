/* string.find, match, gmatch and gsub for policies; only files of this room include this header. */
#ifndef TOOLGATE_SANDBOX_STRING_LIBRARY_H
#define TOOLGATE_SANDBOX_STRING_LIBRARY_H

#include <lua.h>

int strings_find(lua_State *L);
int strings_match(lua_State *L);
int strings_gmatch(lua_State *L);
int strings_gmatch_step(lua_State *L); /* what gmatch returns: it knows where it is */
int strings_gsub(lua_State *L);

#endif

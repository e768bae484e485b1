/* The functions that the Lua files of this room receive as `builtins`. Only files of this room include this
 * header. */
#ifndef TOOLGATE_POLICY_VOCABULARY_BUILTINS_H
#define TOOLGATE_POLICY_VOCABULARY_BUILTINS_H

#include <lauxlib.h>

extern const luaL_Reg builtins[];

#endif

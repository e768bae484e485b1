/* What the Lua files of this room are given, as their `native`. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_NATIVES_H
#define TOOLGATE_POLICY_NATIVES_H

#include <lauxlib.h>

#define NATIVES_CHUNK "=(words)" /* what those files are called: no error names a line in them */

extern const luaL_Reg natives[];

#endif

/* Finds names that do not exist in the bytecode of a file, before any of it runs: globals, fields of
 * libraries, and fields of `call`. Only files of this room include this header. */
#ifndef TOOLGATE_POLICY_STATIC_CHECK_H
#define TOOLGATE_POLICY_STATIC_CHECK_H

#include "sandbox/bytecode.h"
#include "sandbox/diagnostics.h"

/* Globals and fields of libraries in the whole file. */
void static_check_file(lua_State *L, const struct bytecode *file, struct diagnostics *complaints);

/* Fields of the second parameter of a hook, if that surely is `call`. */
void static_check_call(lua_State *L, const struct bytecode *hook, struct diagnostics *complaints);

/* Fields that repair { … }, ok { … } and tool_return { … } do not take, and tables for words that take their
 * values in order, where they are written out. */
struct token;
void static_check_outcomes(const struct token *t, struct diagnostics *complaints);

#endif

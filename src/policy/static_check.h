/*
 * Names that do not exist, found in what a file was compiled to, before any
 * of it runs: globals, fields of the libraries, and fields of `call` where a
 * hook reads them by name. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_STATIC_CHECK_H
#define TOOLGATE_POLICY_STATIC_CHECK_H

#include "sandbox/bytecode.h"
#include "sandbox/diagnostics.h"

/* A whole file. */
void static_check_file(lua_State *L, const struct bytecode *file, struct diagnostics *complaints);

/* A hook (anything, call): fields of its second parameter, as far as that is `call` for sure. */
void static_check_call(lua_State *L, const struct bytecode *hook, struct diagnostics *complaints);

#endif

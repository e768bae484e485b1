/*
 * After a file is loaded, makes everything that its functions can reach
 * read-only, so that no call can leave data for another, of any session. Data
 * could only be kept in an upvalue (the bytecode is searched for assignments to
 * those), in a table that existed before the call (each becomes a read-only
 * proxy), or in an iterator.
 */
#ifndef TOOLGATE_SANDBOX_FREEZE_H
#define TOOLGATE_SANDBOX_FREEZE_H

#include "sandbox/bytecode.h"
#include "sandbox/diagnostics.h"

/* `file` is the bytecode, `environment` its globals, `declared` the value that it returned, whose functions
 * are all taken for hooks. Replaces tables by proxies and adds diagnostics for anything that cannot be made
 * read-only. */
void freeze_file(lua_State *L, const struct bytecode *file, int environment, int declared,
                 struct diagnostics *diagnostics);

/* The same for a file whose value others share: replaces the table at `value` by its proxy. `name` is used in
 * the error for writes. */
void freeze_module(lua_State *L, const struct bytecode *file, int environment, int value, const char *name,
                   struct diagnostics *diagnostics);

#endif

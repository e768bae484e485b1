/*
 * After a file was loaded: what its functions can reach is read-only from
 * then on, so that nothing of one call is there in another, of whichever
 * session. A value could only stay in a variable that a function has from
 * outside of it (its code is searched for assignments to such), in a table
 * that is older than the call (all of those are frozen), or in an iterator.
 * Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_FREEZE_H
#define TOOLGATE_SANDBOX_FREEZE_H

#include "sandbox/bytecode.h"
#include "sandbox/diagnostics.h"

/* `file` is what was run, `environment` its globals, `declared` is what it returned: all functions in there
 * are taken for such as will be called. Freezes tables, adds diagnostics about what cannot be made read-only.
 */
void freeze_file(lua_State *L, const struct bytecode *file, int environment, int declared,
                 struct diagnostics *diagnostics);

#endif

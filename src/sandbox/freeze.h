/*
 * After a file is loaded, makes everything that its functions can reach
 * read-only, so that no call can leave data for another, of any session. Data
 * could only be kept in an upvalue (the bytecode is searched for assignments to
 * those), in a table that existed before the call, or in an iterator.
 *
 * Such a table becomes a read-only proxy: a userdata, as LuaJIT consults no
 * metatable for writes to existing keys of a table. type, pairs, ipairs, next,
 * unpack and the table library treat it as a table. C code must unwrap a value
 * from a policy before it checks for a table.
 */
#ifndef TOOLGATE_SANDBOX_FREEZE_H
#define TOOLGATE_SANDBOX_FREEZE_H

#include "sandbox/diagnostics.h"

#include <stdbool.h>

#define PROXY_WRITE_HINT "to keep data between calls, use facts (ok { facts = … }, read as call.facts)"

/* Replaces tables by proxies and adds diagnostics for what cannot be made read-only. `environment`: the
 * file's globals. `value`: with `name` NULL a list of the functions that calls run; else a module's value,
 * which others share: it is replaced by a proxy of that name. */
void freeze_file(lua_State *L, int environment, int value, const char *name, struct diagnostics *diagnostics);

/* Replaces the globals type, pairs, ipairs, next and unpack by functions that accept proxies, too. Once for
 * each state, after the stock libraries are open. */
void proxy_open(lua_State *L);

bool proxy_is(lua_State *L, int at);

/* Replaces a proxy at `at` by its table, for C code that only reads it. Leaves any other value. */
void proxy_unwrap(lua_State *L, int at);

/* Replaces a proxy on top by a writable copy of its table. Leaves any other value. */
void proxy_copy(lua_State *L);

/* Raises an error if the argument is a proxy, for functions that change tables. */
void proxy_refuse_write(lua_State *L, int at);

#endif

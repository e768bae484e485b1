/*
 * Read-only proxies for the tables that a file made while it was loaded, so that
 * no call can leave state for the next. A proxy is a userdata, as LuaJIT consults
 * no metatable for writes to existing keys of a table. type, pairs, ipairs,
 * next, unpack and the table library treat it as a table.
 *
 * C code must unwrap a value from a policy before it checks for a table.
 */
#ifndef TOOLGATE_SANDBOX_READ_ONLY_PROXY_H
#define TOOLGATE_SANDBOX_READ_ONLY_PROXY_H

#include <lua.h>
#include <stdbool.h>

/* Replaces the globals type, pairs, ipairs, next and unpack of the state by variants that accept proxies. The
 * fast pairs and ipairs expose the table behind a proxy to the loop, so they are only for files that use them
 * directly in `for` (bytecode.h), such as our own. Once for each state, after the stock libraries are
 * open.
 */
void proxy_open(lua_State *L);

/* Replace the function on top by the stock function that it replaces, or by its variant that accepts proxies
 * and is safe anywhere; by nil if there is none. */
void proxy_stock_function(lua_State *L);
void proxy_aware_function(lua_State *L);

/* Pushes a proxy for the table on top. `name` is used in the error for writes; not empty. */
void proxy_push(lua_State *L, const char *name);

bool proxy_is(lua_State *L, int at);

/* Replaces a proxy at `at` by its table, for C code that only reads it. Leaves any other value. */
void proxy_unwrap(lua_State *L, int at);

/* Replaces a proxy on top by a writable copy of its table. Leaves any other value. */
void proxy_copy(lua_State *L);

/* The name of the proxy at `at`. */
const char *proxy_name(lua_State *L, int at);

/* Raises an error if the argument is a proxy, for functions that change tables. */
void proxy_refuse_write(lua_State *L, int at);

#define PROXY_WRITE_HINT "to keep data between calls, use facts (ok { facts = … }, read as call.facts)"

#endif

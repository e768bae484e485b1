/*
 * Stand-ins for the tables that a file made while it was loaded: they read
 * like the table and cannot be written to, so that nothing of one call is
 * there in the next. LuaJIT asks no metatable where a key exists already, so a
 * stand-in is a userdata, and the words that look at tables know it: type,
 * pairs, ipairs, next, unpack and the table library take it for one.
 *
 * C that is handed a value by a policy unwraps it before it looks whether it
 * is a table. Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_READ_ONLY_PROXY_H
#define TOOLGATE_SANDBOX_READ_ONLY_PROXY_H

#include <lua.h>
#include <stdbool.h>

/* Replaces the globals type, pairs, ipairs, next and unpack of the state by such as know stand-ins. Its pairs
 * and ipairs are as quick as the stock ones and hand out the table behind a stand-in: they are for whoever
 * uses them in loops only (iterator_check.h), as our own files do. Once a state, when the stock libraries are
 * open. */
void proxy_open(lua_State *L);

/* Replaces the function on top by the stock one that it stands for, or by the one that stands for it and is
 * right anywhere; by nil where there is none. */
void proxy_stock_function(lua_State *L);
void proxy_aware_function(lua_State *L);

/* Pushes a stand-in for the table on top. `name`: what it is called where somebody writes to it; not empty.
 */
void proxy_push(lua_State *L, const char *name);

bool proxy_is(lua_State *L, int at);

/* Replaces a stand-in at `at` by its table, for C that reads it and gives it to nobody; others stay. */
void proxy_unwrap(lua_State *L, int at);

/* Replaces a stand-in on top by a copy of its table, which may be written to; others stay. */
void proxy_copy(lua_State *L);

/* The name that the stand-in at `at` was given. */
const char *proxy_name(lua_State *L, int at);

/* Raises an error where the argument is a stand-in: for words that change tables. */
void proxy_refuse_write(lua_State *L, int at);

#define PROXY_WRITE_HINT                                                                                     \
    "what must be remembered between calls belongs in facts (ok { facts = … }, read as call.facts)"

#endif

/*
 * Lua that several policies share: the files of policies/lib, which policies and each other get by require
 * "lib.NAME". Each runs once per set, before all policies, in the same sandbox with an environment of its
 * own; what it returns is read-only. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_LUA_MODULES_H
#define TOOLGATE_POLICY_LUA_MODULES_H

#include "policy/policy_set.h"

#include <lua.h>

#define LUA_MODULES_MAX 256u /* files in lib */

enum lua_module_state { MODULE_UNLOADED, MODULE_LOADING, MODULE_LOADED, MODULE_BROKEN, MODULE_QUARANTINED };

struct lua_module {
    struct str name, file, source; /* "lib.paths", "policies/lib/paths.lua" */
    enum lua_module_state state;
    int ref;                   /* its value in the registry, once it is loaded */
    struct policy_wants wants; /* what its functions read of `call` */
    bool walks;                /* they iterate over tables (bridge_needs_eager) */
};

struct lua_modules {
    struct lua_module *list; /* by name */
    size_t count, next;      /* next: the first that lua_modules_step has not loaded yet */
    uint64_t hash;           /* of all names and texts; 0: there are none */
};

/* What one file requires, gathered while it loads. */
struct lua_module_use {
    const struct policy_set *set;
    struct policy_wants wants;
    bool walks;
    const struct lua_module *stalled; /* one that is quarantined; NULL: none */
};

/* Reads the files of FOLDER/lib; without that folder there are none. False: `why` has an error. */
bool lua_modules_read(struct policy_set *set, struct why *why);

/* Loads one more, with those that it requires. False: there was none left. Errors go to `errors`, and *failed
 * is set. */
bool lua_modules_step(struct policy_set *set, struct policy_load_errors *errors, bool *failed);

/* The hash by which a stalled file is known: of its text, and of all modules if it requires any. */
uint64_t lua_modules_text_hash(const struct policy_set *set, struct str source);

/* Of `code`: the builtins of its environment must accept the proxies that require returns. */
struct bytecode;
void lua_modules_prepare(lua_State *L, const struct bytecode *code, int environment);

/* The word require. */
int lua_modules_require(lua_State *L);

#endif

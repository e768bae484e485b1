/* The return value of a hook as struct policy_outcome. Only files of this room include this header. */
#ifndef TOOLGATE_POLICY_OUTCOME_H
#define TOOLGATE_POLICY_OUTCOME_H

#include "policy/policy_hooks.h"

#include <lua.h>

void outcome_init(struct policy_outcome *outcome, struct arena *arena);

/* The value at `at` was made by repair, ok, … */
bool outcome_is(lua_State *L, int at);

/* Reads it, inside a protected call; raises an error if this hook may not return it. */
void outcome_read(lua_State *L, int at, enum policy_hook hook, struct arena *arena,
                  struct policy_outcome *outcome);

/* "check", "run", … */
const char *outcome_hook_name(enum policy_hook hook);

#endif

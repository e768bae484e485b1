/*
 * From what a hook returned to struct policy_outcome. Only files of this room
 * include this header.
 */
#ifndef TOOLGATE_POLICY_OUTCOME_H
#define TOOLGATE_POLICY_OUTCOME_H

#include "policy/policy.h"
#include "policy/policy_hooks.h"

#include <lua.h>

void outcome_init(struct policy_outcome *outcome, struct arena *arena);

/* Is the value at `at` one that repair, ok, … made. */
bool outcome_is(lua_State *L, int at);

/* Reads it, inside a protected call. Raises an error where this hook has no use for it. */
void outcome_read(lua_State *L, int at, enum policy_hook hook, struct arena *arena,
                  struct policy_outcome *outcome);

/* "check", "run", … */
const char *outcome_hook_name(enum policy_hook hook);

#endif

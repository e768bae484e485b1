/*
 * What policy/ itself knows of a loaded set: the state that all its policies
 * share, and what belongs to each. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_HOME_H
#define TOOLGATE_POLICY_HOME_H

#include "policy/policy.h"
#include "policy/rule.h"
#include "policy/sandbox.h"

#define HOOK_NONE LUA_NOREF

struct policy_hook_code {
    int ref;  /* the function in the registry, or HOOK_NONE */
    int line; /* where it begins */
};

struct policy_code {
    struct policy_hook_code hooks[HOOK_COUNT];
    struct rules rules;
    bool quarantined;
};

struct policies {
    struct arena *arena; /* everything below, and the sources */
    struct sandbox *sandbox;
    struct policies_options options;
    const char *folder; /* NULL: loaded from text */
    struct policy **list;
    size_t count;
    struct str gateway_file, instructions; /* gateway_file empty: there is none */
    struct policy_hook_code prepare_tools;
    uint64_t hash;
};

#endif

/*
 * What policy/ itself knows of a loaded set: the state that all its policies
 * share, and what belongs to each. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_POLICY_INTERNAL_H
#define TOOLGATE_POLICY_POLICY_INTERNAL_H

#include "policy/policy.h"
#include "policy/rule/rule.h"
#include "sandbox/sandbox.h"
#include "policy/vocabulary/vocabulary.h"

#define HOOK_NONE LUA_NOREF

struct policy_hook_code {
    int ref;  /* the function in the registry, or HOOK_NONE */
    int line; /* where it begins */
};

struct policy_code {
    uint64_t text; /* hash of its file's */
    struct policy_hook_code hooks[HOOK_COUNT];
    struct rules rules;
    bool quarantined;
    bool walks;                    /* its text goes over tables (bridge_needs_eager) */
    struct policy_failures *fault; /* NULL: it never broke */
};

struct policy_set {
    struct arena *examples; /* theirs; NULL once they have been let go of */
    struct arena *arena;    /* everything below */
    struct sandbox *sandbox;
    struct policy_set_options options;
    const char *folder; /* NULL: loaded from text */
    struct policy **list;
    struct map *by_name;
    size_t count;
    struct json_files files;
    struct str gateway_file, instructions; /* gateway_file empty: there is none */
    uint64_t gateway_text;                 /* hash of its file's text */
    struct policy_hook_code prepare_tools;
    struct policy_failures *gateway_fault; /* NULL: it never broke */
    struct policy_stall *stalls;           /* that hold */
    size_t stall_count;
    uint64_t hash;
};

/* For policy_failures, or policy_set_gateway_failures where `policy` is NULL. */
void policy_add_failure(struct policy_set *set, const struct policy *policy, const struct why *why);

#endif

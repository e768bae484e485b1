/* The private part of policies and their set: Lua references, rules and counters. Only files of this room
 * include this header. */
#ifndef TOOLGATE_POLICY_POLICY_INTERNAL_H
#define TOOLGATE_POLICY_POLICY_INTERNAL_H

#include "policy/lua_modules.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"
#include "policy/rule.h"
#include "policy/vocabulary/vocabulary.h"
#include "sandbox/sandbox.h"

#define HOOK_NONE LUA_NOREF

struct policy_hook_code {
    int ref;  /* the function in the registry, or HOOK_NONE */
    int line; /* its first line */
};

struct policy_code {
    uint64_t source_hash;
    struct policy_hook_code hooks[HOOK_COUNT];
    struct rules rules;
    bool quarantined;
    struct str stalled;               /* the file that stalled: its own, or one that it requires */
    bool walks;                       /* its source iterates over tables (bridge_needs_eager) */
    struct policy_failures *failures; /* NULL: none */
};

/* Policies for several tools: those with a glob, or those that name one tool. */
struct overlays {
    struct policy **list;
    size_t count;
};

struct policy_set {
    struct arena *examples; /* holds the examples; NULL once they are freed */
    struct arena *arena;    /* holds everything else */
    struct sandbox *sandbox;
    struct policy_set_options options;
    const char *folder; /* NULL: loaded from a string */
    struct policy **list;
    struct map *by_name;          /* policies of one tool */
    struct map *overlays_by_name; /* tools to struct overlays */
    struct overlays *globs;
    size_t count;
    struct json_files files;
    struct lua_modules modules;
    struct str gateway_file, instructions; /* gateway_file empty: there is none */
    uint64_t gateway_source_hash;
    struct policy_hook_code prepare_tools;
    struct policy_wants gateway_wants;
    struct policy_failures *gateway_failures; /* NULL: none */
    struct policy_stall *stalls;              /* the quarantined files */
    size_t stall_count;
    uint64_t hash;
};

static inline void policy_wants_add(struct policy_wants *wants, const struct policy_wants *more)
{
    wants->history |= more->history;
    wants->facts |= more->facts;
    wants->progress |= more->progress;
}

/* Adds the errors in the text, one a line. */
void policy_set_add_errors(struct policy_load_errors *errors, const struct why *why);

/* True: the file stalled the process before, with the same text. It is then one of the quarantined files. */
bool policy_set_note_stall(struct policy_set *set, struct str file, uint64_t text);

/* A *.lua that is neither hidden nor *_spec.lua, which is an operator's own, for busted. */
struct dirent;
int policy_set_is_source(const struct dirent *entry);

#endif

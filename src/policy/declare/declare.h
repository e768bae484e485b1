/*
 * From the table that a policy's file returned to struct policy. Every field
 * is known by name and type; a mistake is an error with its line, what was
 * expected and what was found. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_DECLARE_DECLARE_H
#define TOOLGATE_POLICY_DECLARE_DECLARE_H

#include "policy/policy_internal.h"

#include <lua.h>

struct declaration {
    lua_State *L;
    struct policy_set *set;
    struct str file, source;
    struct arena *arena;   /* where what is read goes: the set's */
    struct arena *scratch; /* until the file is read */
    struct policy *policy; /* out: NULL where the file declares the gateway */
    const struct json
        *annotated; /* the lines of arguments that are annotated, by their names; NULL: none are */
};

/* Reads the value at `at`, inside a protected call. */
void declare_read(struct declaration *d, int at);

/* A policy with nothing declared: the defaults of every field. */
struct policy *declare_blank(struct policy_set *set, struct str name, struct str file);

#endif

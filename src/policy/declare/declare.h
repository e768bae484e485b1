/*
 * From the table that a policy file returned to struct policy. Every field is
 * known by name and type; a mistake is an error with its line, what was
 * expected and what was found. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_DECLARE_DECLARE_H
#define TOOLGATE_POLICY_DECLARE_DECLARE_H

#include "policy/policy_internal.h"

#include <lua.h>

/* One file while it is read. */
struct declaration {
    lua_State *L;
    struct policy_set *set;
    struct str file, source;
    struct arena *arena;          /* holds what is read: the set's, or that of its examples */
    struct arena *scratch;        /* freed when the file has been read */
    struct policy *policy;        /* out; NULL: the file declares the gateway */
    const char *parent;           /* the field whose table is being read, as "retry.again"; NULL: the tool */
    void *out;                    /* the struct that the table is read into */
    int line;                     /* of the list item that is being read, for errors; 0: the field's own */
    const struct json *annotated; /* the lines of annotated arguments, by name; NULL: there are none */
};

/* Reads the value at `at`, inside a protected call. */
void declare_read(struct declaration *d, int at);

/* What the functions of a source read of `call`. */
struct policy_wants declare_wants(struct str source);

/* A policy with nothing declared: the default of every field. */
struct policy *declare_blank(struct policy_set *set, struct str name, struct str file);

#endif

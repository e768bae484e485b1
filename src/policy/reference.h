/*
 * The vocabulary of policies as data: for the reference in the docs, for
 * `toolgate words` and for completion in editors. Types are in LuaCATS.
 */
#ifndef TOOLGATE_POLICY_REFERENCE_H
#define TOOLGATE_POLICY_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* A word that a policy may call. `type`: one form per line, `fun(…): …`, that of a method with `self: CLASS`
 * first; NULL: editors know the word. */
struct vocabulary_word {
    const char *name, *group, *signature, *sentence, *type;
};
const struct vocabulary_word *vocabulary_words(size_t *count);

/* A field of a table that policies write, or that toolgate fills in for them. `form`: an example value. */
struct reference_field {
    const char *name, *form, *type, *sentence;
    bool required;
};

struct reference_table {
    const char *of;   /* "tool", "retry", "loop.poll", "call" */
    const char *type; /* its class: "toolgate.Retry", or "toolgate.TextOptions: toolgate.TypeOptions" */
    const char *sentence;
    bool given; /* toolgate fills it in */
    const struct reference_field *fields;
    size_t count;
    const char *items[2]; /* the types of its items without a name; NULL: it has none */
};
const struct reference_table *reference_tables(struct arena *arena, size_t *count);

/* Other types that words and fields name; `is` is NULL if only words make one. */
struct reference_type {
    const char *name, *is, *sentence;
};
const struct reference_type *reference_types(size_t *count);

#endif

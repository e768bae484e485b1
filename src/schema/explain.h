/*
 * The collecting pass in three parts: explain.c walks, anyof_selection.c chooses
 * which alternative of an anyOf or oneOf was meant, words.c makes sentences.
 * Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_EXPLAIN_H
#define TOOLGATE_SCHEMA_EXPLAIN_H

#include "schema/node.h"

#include "base/arena.h"

/* The way to a value, innermost step first; NULL is the whole instance. */
struct path {
    const struct path *up;
    struct str key; /* at NULL: an index */
    uint32_t index;
};

struct explain {
    struct pass pass;
    struct problems *problems;
    struct arena *arena; /* the problems' */
    unsigned guesses;    /* alternatives being tried within alternatives */
    const struct node
        *node; /* what describes `place`: the node reached last, or one before it that says more */
    const struct path *place; /* of the value that is looked at */
};

/* ---- explain.c ---- */

/* Adds what is wrong with v by the node; v is known to fail, or may be. */
void explain_node(struct explain *e, const struct node *node, const struct json *v, const struct path *path);

/* ---- anyof_selection.c ---- */

void anyof_explain(struct explain *e, const struct op *op, const struct json *v, const struct path *path);

/* ---- words.c ---- */

/* "items[0].price" */
struct str message_path(struct arena *arena, const struct path *path);

/* A value as JSON, cut to PROBLEM_GOT_MAX_BYTES; a container by its type's name. */
struct str quote(struct arena *arena, const struct json *v);

/* Keeps the problem unless the same was said of the same place. */
void say(struct explain *e, const struct path *path, struct problem problem);

void say_type(struct explain *e, unsigned types, const struct json *v, const struct path *path);

/* A schema that no value at all can fit: false, or one that contradicts itself. */
void message_nothing_fits(struct explain *e, const struct node *node, const struct json *v,
                          const struct path *path);

/* `with`: the field it goes with; `sent_as`: a name that may have been sent instead; either may be empty. */
void message_missing(struct explain *e, struct str name, const struct node *node, struct str with,
                     struct str sent_as, const struct path *path);
void message_unknown_field(struct explain *e, struct str close, bool warning, const struct path *path);

/* `lists`: choices of one property in several branches, as one list. */
void message_choices(struct explain *e, const struct choices *const *lists, size_t count,
                     unsigned other_types, const struct json *v, const struct path *path);

/* Every op that looks at one value alone. */
void message_op(struct explain *e, const struct op *op, const struct json *v, const struct path *path);

/* "string or null" */
void message_put_types(struct buf *out, unsigned types);

#endif

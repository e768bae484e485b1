/*
 * The collecting pass in three parts: explain.c walks, anyof_selection.c chooses
 * which alternative of an anyOf or oneOf was meant, words.c makes sentences.
 * Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_EXPLAIN_H
#define TOOLGATE_SCHEMA_EXPLAIN_H

#include "schema/node.h"

#include "base/arena.h"

/* The branch_entry to a value, innermost step first; NULL is the whole instance. */
struct location {
    const struct location *up;
    struct str key; /* at NULL: an index */
    uint32_t index;
};

struct explain_ctx {
    struct pass pass;
    struct problems *problems;
    struct arena *arena; /* the problems' */
    unsigned guesses;    /* alternatives being tried within alternatives */
    const struct node
        *node; /* what describes `place`: the node reached last, or one before it that says more */
    const struct location *place; /* of the value that is looked at */
};

/* ---- explain.c ---- */

/* Adds what is wrong with v by the node; v is known to fail, or may be. */
void explain_node(struct explain_ctx *e, const struct node *node, const struct json *v,
                  const struct location *path);

/* ---- anyof_selection.c ---- */

void anyof_explain(struct explain_ctx *e, const struct op *op, const struct json *v,
                   const struct location *path);

/* ---- words.c ---- */

/* "items[0].price" */
struct str message_path(struct arena *arena, const struct location *path);

/* A value as JSON, cut to PROBLEM_GOT_MAX_BYTES; a container by its type's name. */
struct str message_quote(struct arena *arena, const struct json *v);

/* Keeps the problem unless the same was value of the same place. */
void message_add(struct explain_ctx *e, const struct location *path, struct problem problem);

void say_type(struct explain_ctx *e, unsigned types, const struct json *v, const struct location *path);

/* A schema that no value at all can fit: false, or one that contradicts itself. */
void message_nothing_fits(struct explain_ctx *e, const struct node *node, const struct json *v,
                          const struct location *path);

/* `with`: the field it goes with; `sent_as`: a name that may have been sent instead; either may be empty. */
void message_missing(struct explain_ctx *e, struct str name, const struct node *node, struct str with,
                     struct str sent_as, const struct location *path);
void message_unknown_field(struct explain_ctx *e, struct str close, bool warning,
                           const struct location *path);

/* `lists`: choices of one property in several branches, as one list. */
void message_choices(struct explain_ctx *e, const struct choices *const *lists, size_t count,
                     unsigned other_types, const struct json *v, const struct location *path);

/* Every op that looks at one value alone. */
void message_op(struct explain_ctx *e, const struct op *op, const struct json *v,
                const struct location *path);

/* "string or null" */
void message_put_types(struct buf *out, unsigned types);

#endif

/*
 * The collecting pass in three parts: explain.c walks, anyof_selection.c
 * selects the alternative of an anyOf or oneOf that was meant, messages.c
 * writes the sentences. Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_EXPLAIN_H
#define TOOLGATE_SCHEMA_EXPLAIN_H

#include "schema/schema_node.h"

#include "base/arena.h"

/* The steps to a value, innermost first; NULL is the whole instance. */
struct location {
    const struct location *up;
    struct str key; /* at NULL: an index */
    uint32_t index;
};

struct explain_ctx {
    struct pass pass;
    struct problems *problems;
    struct arena *arena;     /* that of the problems */
    unsigned guesses;        /* alternatives being tried within alternatives */
    const struct node *node; /* whose description holds for `location`: the last one with a description */
    const struct location *location;
    /* Adds the problems of v by the node; v may also be valid. NULL if nothing is walked. */
    void (*explain_node)(struct explain_ctx *e, const struct node *node, const struct json *v,
                         const struct location *location);
};

/* ---- anyof_selection.c ---- */

void anyof_explain(struct explain_ctx *e, const struct op *op, const struct json *v,
                   const struct location *location);

/* ---- messages.c ---- */

/* A value as JSON, cut to PROBLEM_GOT_MAX_BYTES; a container by the name of its type. */
struct str message_quote(struct arena *arena, const struct json *v);

/* Adds the problem unless the list has the same message for the same location. */
void message_add(struct explain_ctx *e, const struct location *location, struct problem problem);

void message_type(struct explain_ctx *e, unsigned types, const struct json *v,
                  const struct location *location);

/* The schema accepts no value: it is false, or contradicts itself. */
void message_nothing_fits(struct explain_ctx *e, const struct node *node, const struct json *v,
                          const struct location *location);

/* `with`: the field that requires it; `sent_as`: a name probably sent instead; either may be empty. */
void message_missing(struct explain_ctx *e, struct str name, const struct node *node, struct str with,
                     struct str sent_as, const struct location *location);
void message_unknown_field(struct explain_ctx *e, struct str close, bool warning,
                           const struct location *location);

/* `lists`: choices of one property in several branches, shown as one list. */
void message_choices(struct explain_ctx *e, const struct choices *const *lists, size_t count,
                     unsigned other_types, const struct json *v, const struct location *location);

/* Any op that looks at one value alone. */
void message_op(struct explain_ctx *e, const struct op *op, const struct json *v,
                const struct location *location);

/* "string or null" */
void message_put_types(struct buf *out, unsigned types);

#endif

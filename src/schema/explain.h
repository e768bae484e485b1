/*
 * The collecting pass in three parts: explain.c walks, and selects the
 * alternative of an anyOf or oneOf that was meant; names.c finds what an
 * undeclared name was meant for; messages.c writes the sentences. Internal to
 * this room.
 */
#ifndef TOOLGATE_SCHEMA_EXPLAIN_H
#define TOOLGATE_SCHEMA_EXPLAIN_H

#include "schema/schema_node.h"

#include "base/arena.h"

struct json_out;

/* The steps to a value, innermost first; NULL is the whole instance. */
struct location {
    const struct location *up;
    struct str key; /* at NULL: an index */
    uint32_t index; /* of a key: LOCATION_FREE or 0 */
};

#define LOCATION_FREE 1u /* no schema declares the key: it is the user's */

struct name_matches;

/* An object on the way to the value that is explained. */
struct object_scope {
    const struct object_scope *up;
    const struct node *node; /* the outermost that applies to it */
    const struct json *v;
    const struct location *location;
    struct name_matches *matches; /* NULL: no caller asked yet */
};

struct explain_ctx {
    struct pass pass;
    struct problems *problems;
    struct arena *arena;     /* that of the problems */
    unsigned guesses;        /* alternatives being tried within alternatives */
    const struct node *node; /* whose description holds for `location`: the last one with a description */
    const struct location *location;
    struct object_scope *object; /* the innermost */
};

static inline struct location location_of_member(const struct location *object, struct str key)
{
    return (struct location){object, key.at ? key : STR_LIT(""), 0};
}

/* ---- names.c ---- */

/* A required field of e->object is missing, or was sent under another name or in another place. */
void names_explain_missing(struct explain_ctx *e, struct str name, const struct node *node,
                           const struct location *location);

/* e->object has a name that no schema declares; `location` is its own. `warning`: the object is open, and the
 * name only advised about. */
void names_explain_undeclared(struct explain_ctx *e, struct str name, bool warning,
                              const struct location *location);

/* ---- messages.c ---- */

/* A value as JSON, cut to PROBLEM_GOT_MAX_BYTES; a container by the name of its type. */
struct str message_quote(struct arena *arena, const struct json *v);

/* The value as JSON for programs; empty if it is long. */
struct str message_got(struct arena *arena, const struct json *v);

/* Adds the problem unless the list has the same message for the same location. */
void message_add(struct explain_ctx *e, const struct location *location, struct problem problem);

/* v has none of the node's types. `branches` (may be NULL): of an anyOf or oneOf, instead of the node. */
void message_type(struct explain_ctx *e, const struct node *node, const struct nodes *branches,
                  const struct json *v, const struct location *location);

/* The schema accepts no value: it is false, or contradicts itself. */
void message_nothing_fits(struct explain_ctx *e, const struct node *node, const struct json *v,
                          const struct location *location);

/* `with`: the field that requires it; `more`: a clause that follows; either may be empty. */
void message_missing(struct explain_ctx *e, struct str name, const struct node *node, struct str with,
                     struct str more, const struct location *location);

/* `lists`: choices of one property in several branches, shown as one list. */
void message_choices(struct explain_ctx *e, const struct choices *const *lists, size_t count,
                     unsigned other_types, const struct json *v, const struct location *location);

/* Any op that looks at one value alone. */
void message_op(struct explain_ctx *e, const struct op *op, const struct json *v,
                const struct location *location);

/* "string or null" */
void message_put_types(struct buf *out, unsigned types);

/* The member "type" of a JSON Schema; none if all types are allowed. */
void message_put_types_json(struct json_out *out, unsigned types);

/* "items[0].price" */
struct str message_path(struct arena *arena, const struct location *location);

#endif

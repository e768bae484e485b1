/*
 * The walk of coerce.c and its parts: names of members, texts and numbers,
 * lists. Each part returns the value itself, or the one other reading that the
 * node accepts. Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_COERCER_H
#define TOOLGATE_SCHEMA_COERCER_H

#include "schema/coerce.h"
#include "schema/schema_node.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"

#define STRING    TYPE_BIT(JSON_STRING)
#define ARRAY     TYPE_BIT(JSON_ARRAY)
#define OBJECT    TYPE_BIT(JSON_OBJECT)
#define BOOLEAN   TYPE_BIT(JSON_BOOL)
#define NULL_TYPE TYPE_BIT(JSON_NULL)

struct coercer {
    struct pass pass;
    struct arena *arena;
    const struct coerce_options *options;
    unsigned depth; /* 1: at the arguments themselves */
    bool valid;     /* inside a value that fits, where only names and the spelling of whole numbers change */
    bool renames;   /* also walk values that fit: an open object may hold a misspelled name */
};

/* Whether only values of this type fit, and perhaps null. */
static inline bool takes_only(const struct node *node, unsigned type)
{
    return (node->types & ~NULL_TYPE) == type;
}

static inline bool same_word(struct str a, struct str b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* ---- coerce.c ---- */

const struct json *coerce_value(struct coercer *c, const struct node *node, const struct json *v);
bool coerce_accepts(struct coercer *c, const struct node *node, const struct json *v);

/* A whole number with a point or an exponent. */
bool coerce_is_spelled_float(const struct json *v);

/* A whole number without point or exponent, if the node takes only whole numbers. */
const struct json *coerce_respell(struct coercer *c, const struct node *node, const struct json *v);

/* ---- coerce_text.c ---- */

/* Of a string, number or boolean that the node rejects. */
const struct json *coerce_scalar(struct coercer *c, const struct node *node, const struct json *v);

/* "", "None" and "null" mean that no value was given. */
bool coerce_is_blank(struct str text);

/* Text that begins as JSON or a code fence does. It is read as JSON or not at all. */
bool coerce_looks_like_json(struct str text);

/* ---- coerce_lists.c ---- */

/* A list of the value if only a list fits. */
const struct json *coerce_wrap(struct coercer *c, const struct node *node, const struct json *v);

/* The text in a list of one, if only a text fits. */
const struct json *coerce_unwrap(struct coercer *c, const struct node *node, const struct json *v);

const struct json *coerce_array(struct coercer *c, const struct node *node, const struct json *v);

/* ---- coerce_names.c ---- */

/* Whose names count: those of the branches that certainly apply, or of any branch. */
enum name_scope { NAMES_THAT_APPLY, NAMES_OF_ANY_BRANCH };

/* The object with each undeclared name replaced by the one unused declared name that it spells. *misspelled
 * (may be NULL): whether there is such a name, whatever became of it. */
const struct json *coerce_names(struct coercer *c, const struct node *node, const struct json *v,
                                enum name_scope scope, bool *misspelled);

/* Whether an undeclared member of the object spells this declared name. */
bool coerce_names_misspelled(const struct node *node, const struct json *v, struct str declared_name);

#endif

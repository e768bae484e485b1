/* What coerce.c and the search for names (names.c) share. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_COERCER_H
#define TOOLGATE_SCHEMA_COERCER_H

#include "schema/coerce.h"
#include "schema/schema_node.h"

struct coercer {
    struct pass pass;
    struct arena *arena;
    const struct coerce_options *options;
    unsigned depth; /* 1: at the arguments themselves */
    bool valid;     /* inside a value that fits, where only names and the spelling of whole numbers change */
    bool renames;   /* also walk values that fit: an open object may hold a misspelled name */
};

/* Returns the value itself, or the one other reading that the node accepts. */
const struct json *coerce_value(struct coercer *c, const struct node *node, const struct json *v);
bool coerce_accepts(struct coercer *c, const struct node *node, const struct json *v);

/* Whose names count: those of the branches that certainly apply, or of any branch. */
enum name_scope { NAMES_THAT_APPLY, NAMES_OF_ANY_BRANCH };

/* The object with each undeclared name replaced by the one unused declared name that it spells. *misspelled
 * (may be NULL): whether there is such a name, whatever became of it. */
const struct json *coerce_names(struct coercer *c, const struct node *node, const struct json *v,
                                enum name_scope scope, bool *misspelled);

/* Whether an undeclared member of the object spells this declared name. */
bool coerce_names_misspelled(const struct node *node, const struct json *v, struct str declared_name);

#endif

/*
 * What a JSON Schema says plainly of an argument that a rule names: whether
 * there is such an argument, whether it is required, and which values it can
 * have at all. Where the schema is not plain, everything is taken to be
 * possible. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_SCHEMA_H
#define TOOLGATE_POLICY_RULE_RULE_SCHEMA_H

#include "policy/rule/rule_condition.h"

struct rule_schema {
    struct arena *arena;      /* for what is tried out */
    const struct json *root;  /* NULL: nothing is known */
    bool keeps_strangers_out; /* by the policy's unknown = "drop" or "refuse" */
};

enum rule_naming {
    NAMING_KNOWN,
    NAMING_UNTOLD,  /* the schema is not plain there, or names nothing at all */
    NAMING_STRANGE, /* not named, and let in all the same */
    NAMING_CLOSED   /* not named, and never let in */
};

/* *closest: what may have been meant, or STR_NONE. */
enum rule_naming rule_schema_naming(const struct rule_schema *s, struct str path, struct str *closest);

/* Without it no call gets as far as the rules. */
bool rule_schema_requires(const struct rule_schema *s, struct str path);

/* Could the argument be this value; false only where it surely could not. */
bool rule_schema_allows(const struct rule_schema *s, struct str path, const struct json *value);

/* The values that it can only be (enum, const, true and false), or NULL. */
const struct json *rule_schema_choices(const struct rule_schema *s, struct str path);

/* Its schema says everything in the keywords that are read here. */
bool rule_schema_is_plain(const struct rule_schema *s, struct str path);

/* Conditions may depend on each other: the schema has parts of its own for some combinations of arguments. */
bool rule_schema_is_conditional(const struct rule_schema *s);

/* The bounds that a number has there besides, into low and high; whether it must be whole. */
void rule_schema_bounds(const struct rule_schema *s, struct str path, struct bound *low, struct bound *high,
                        bool *whole);

#endif

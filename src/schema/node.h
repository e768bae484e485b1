/*
 * The compiled form that all passes walk: a node a subschema, its keywords as
 * a short array of ops, cheap ones first. Nodes never change once compiled.
 * Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_NODE_H
#define TOOLGATE_SCHEMA_NODE_H

#include "schema/format.h"
#include "schema/pattern.h"
#include "schema/schema.h"

/* A bit a JSON type; whole numbers have one of their own, so that "number" is both bits, "integer" one, and
 * types intersect by AND. */
#define TYPE_BIT(type) (1u << (type))
#define TYPE_INTEGER   64u
#define TYPES_NUMBER   (TYPE_BIT(JSON_NUMBER) | TYPE_INTEGER)
#define TYPES_ANY      127u

/* Only numbers are integral, and 2 + 4 is the bit of whole ones: no branch, which would be guessed wrongly.
 */
static inline unsigned type_bit_of(const struct json *v)
{
    return 1u << (v->type + 4u * v->integral);
}
_Static_assert(TYPE_INTEGER == 1u << (JSON_NUMBER + 4), "whole numbers have the bit that type_of makes");

/* The order is the order of evaluation: cheap before dear, unevaluated* after all that may evaluate. */
enum op_code {
    OP_CHOICES, /* enum, const */
    OP_MINIMUM,
    OP_MAXIMUM,
    OP_COUNT, /* min/max of Length, Items, Properties */
    OP_MULTIPLE,
    OP_FORMAT,
    OP_PATTERN,
    OP_DEPENDENT_REQUIRED,
    OP_PROPERTIES, /* properties, required, patternProperties, additionalProperties */
    OP_NAMES,
    OP_ITEMS,
    OP_CONTAINS,
    OP_UNIQUE,
    OP_REF,
    OP_DYNAMIC_REF,
    OP_ALL_OF,
    OP_ANY_OF,
    OP_ONE_OF,
    OP_NOT,
    OP_IF,
    OP_DEPENDENT_SCHEMAS,
    OP_UNEVALUATED_ITEMS,
    OP_UNEVALUATED_PROPERTIES,
    OP_CODES
};

struct node;
struct resource;

/* Branches of an anyOf or oneOf that a property discriminators apart: required by all, of strings that each
 * takes alone. */
struct branch_map {
    struct str key;
    const struct branch_entry {
        struct str value;
        const struct node *node;
    } * entries;
    uint32_t count;
};

struct nodes {
    const struct node *const *at;
    uint32_t count;
    const struct branch_map *branch_map; /* NULL: all have to be tried */
};

struct choices {
    const struct json *const *at;
    uint32_t count;
    bool strings;  /* all of them */
    bool constant; /* value as const */
};

struct bound {
    const struct json *limit;
    struct json_small small; /* the limit, where it is one: compared without text */
    bool exclusive;
};

struct prop {
    struct str key;
    const struct node *node; /* NULL: required, but not described */
    bool required;
};

struct pattern_prop {
    struct pattern *pattern;
    const struct node *node;
};

#define PROPS_FEW 16u /* up to here looking through the names is faster than hashing one */

struct props {
    struct prop *list; /* those of `properties` in their order, then names that `required` alone mentions */
    uint32_t count, declared, required;
    uint32_t
        *slots; /* index + 1 by hash; mask + 1 of them, a power of two. NULL: few enough to look through */
    uint32_t mask;
    const struct pattern_prop *patterns;
    uint32_t pattern_count;
    const struct node *rest; /* additionalProperties; NULL: not value */
    bool value;              /* `properties` was there */
};

struct dependent {
    struct str key;
    const struct str *needs; /* dependentRequired */
    uint32_t need_count;
    const struct node *node; /* dependentSchemas */
};

struct op {
    uint8_t code;    /* enum op_code */
    uint8_t applies; /* types it looks at */
    const char *keyword;
    const struct json *value; /* the keyword's value, for the words; NULL where several make one op */
    union {
        struct choices choices;
        struct bound bound;
        struct {
            uint64_t min, max;
        } count;
        struct pattern *pattern;
        const struct format *format;
        const struct props *props;
        const struct node *node; /* names, not, ref, unevaluated* */
        struct nodes nodes;      /* allOf, anyOf, oneOf */
        struct {
            const struct node *rest; /* NULL: not value */
            struct nodes prefix;
        } items;
        struct {
            const struct node *node;
            uint64_t min, max;
            bool evaluates; /* 2020-12: what it matched counts as evaluated */
        } contains;
        struct {
            const struct node *condition, *then, *otherwise; /* NULL: not value */
        } branch;
        struct {
            const struct node *node; /* where it leads without a dynamic scope */
            struct str anchor;       /* at NULL: it is a plain reference after all */
        } dynamic;
        struct {
            const struct dependent *at;
            uint32_t count;
        } dependents;
    };
};

/*
 * A required property, at best one whose value is one of a few: what discriminators the
 * branches of an anyOf or oneOf apart before anything below is looked at.
 */
struct discriminator {
    struct str key;
    const struct choices *choices; /* NULL: any value */
};

struct node {
    uint8_t types;    /* of values that can pass at all, seen through references and branches */
    bool unevaluated; /* has an unevaluated* op: keeps evaluated */
    uint16_t op_count, discriminator_count;
    const struct op *ops;
    const struct discriminator *discriminators;
    const struct resource *resource;
    const struct json *source;
    struct str description; /* the first line of the schema's own, cut; empty: none */
};

struct schema {
    const struct node *root;
    const struct json *source;
    bool dynamic; /* some reference depends on the path taken here: the passes keep the scope */
};

/* ---- what the passes share ---- */

#define SCHEMA_MAX_FRAMES 2048u /* nodes under evaluation at once; bounds the C stack */

struct scope {
    const struct resource *resource;
    const struct scope *outer;
};

struct pass {
    const struct schema *schema;
    const struct scope *scope;
    uint32_t steps, frames;
    const char *too_complex; /* NULL: not (yet); then nothing else that the pass says counts */
};

struct evaluated_set;

struct pass pass_begin(const struct schema *schema);

/* The resource of the node joins the scope, kept in `here` until pass_leave. */
static inline const struct scope *pass_enter(struct pass *pass, const struct node *node, struct scope *here)
{
    const struct scope *outer = pass->scope;
    if (pass->schema->dynamic && !(outer && outer->resource == node->resource)) {
        *here = (struct scope){node->resource, outer};
        pass->scope = here;
    }
    pass->frames++;
    return outer;
}

static inline void pass_leave(struct pass *pass, const struct scope *outer)
{
    pass->scope = outer;
    pass->frames--;
}

/* The boolean pass over one node. `evaluated` (may be NULL) gathers which members or items were evaluated. */
bool node_accepts(struct pass *pass, const struct node *node, const struct json *v,
                  struct evaluated_set *evaluated);

/* Takes steps off the budget of SCHEMA_MAX_STEPS; false, with the reason kept, where it is spent. */
bool pass_spend(struct pass *pass, uint64_t steps);

/* Whether the expression is found in the string; false also where the pass gives up. */
bool pass_matches(struct pass *pass, const struct pattern *pattern, struct str s);
bool op_accepts(struct pass *pass, const struct op *op, const struct json *v,
                struct evaluated_set *evaluated);

bool choices_contain(const struct choices *choices, const struct json *v);

/* What a dynamic reference means here. */
const struct node *op_dynamic_target(const struct pass *pass, const struct op *op);

/* The declared property of that name, or NULL. */
const struct prop *props_find(const struct props *props, struct str key);

/* Whether an object has every discriminator of the node; any other value passes. */
bool discriminators_match(const struct node *node, const struct json *v);

/* Whether some discriminator is there with a value that is none of the node's. */
bool discriminators_exclude(const struct node *node, const struct json *v);

/* How often items that fit `contains` occur. */
uint64_t op_contains_count(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated);

/* The first pair of equal items, as indexes (both NULL: nobody asks which); false where all differ. */
bool unique_items_find_pair(const struct json *array, size_t *first, size_t *second);

/* Where the resource's own dynamic anchor of that name leads, or NULL. */
const struct node *resource_dynamic_anchor(const struct resource *resource, struct str name);

#endif

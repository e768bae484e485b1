/*
 * The compiled form that all passes walk: one node for each subschema, its
 * keywords as a short array of ops, cheap ones first. Nodes never change once
 * compiled. Internal to this room.
 */
#ifndef TOOLGATE_SCHEMA_SCHEMA_NODE_H
#define TOOLGATE_SCHEMA_SCHEMA_NODE_H

#include "base/map.h"
#include "schema/format.h"
#include "schema/schema.h"

/* One bit for each JSON type, and one for whole numbers: "number" is both bits, "integer" one, and types
 * intersect by AND. */
#define TYPE_BIT(type) (1u << (type))
#define TYPE_INTEGER   64u
#define TYPES_NUMBER   (TYPE_BIT(JSON_NUMBER) | TYPE_INTEGER)
#define TYPES_ANY      127u

/* Only numbers are integral, and 2 + 4 is their bit: no branch, which the CPU would mispredict. */
static inline unsigned type_bit_of(const struct json *v)
{
    return 1u << (v->type + 4u * v->integral);
}
/* The types of JSON Schema by name. "number" comes before "integer", which is part of it. */
struct type_name {
    const char *name;
    unsigned types;
};
#define TYPE_NAMES 7u
extern const struct type_name type_names[TYPE_NAMES];

/* The types that a name stands for: JSON Schema's, and Gemini's capitals or a word of programming languages
 * for it. TYPES_ANY: none. `spelling` may be NULL. */
enum type_spelling { TYPE_SPELLED, TYPE_SPELLED_OTHERWISE, TYPE_UNKNOWN };
unsigned type_by_name(struct str name, enum type_spelling *spelling);

_Static_assert(TYPE_INTEGER == 1u << (JSON_NUMBER + 4), "whole numbers have the bit that type_bit_of makes");

/* The order of evaluation: cheap before expensive, unevaluated* after all that may evaluate. */
enum op_code {
    OP_CHOICES, /* enum, const */
    OP_MINIMUM,
    OP_MAXIMUM,
    OP_COUNT, /* min and max of Length, Items, Properties */
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
struct node_entry;
struct resource;

/* Which members of an object or items of an array some keyword has evaluated: one bit each. Kept only for a
 * node with an unevaluated* keyword. */
#define EVALUATED_SET_INLINE_WORDS 4u

struct evaluated_set {
    uint64_t *bits; /* `small`, or on the heap */
    uint32_t words;
    uint64_t small[EVALUATED_SET_INLINE_WORDS];
};

void evaluated_set_init(struct evaluated_set *set, uint32_t count);
void evaluated_set_clear(struct evaluated_set *set);
bool evaluated_set_has(const struct evaluated_set *set, uint32_t at);
/* The branches of an anyOf or oneOf by the value of one property, which each branch requires to be one of its
 * own strings. */
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
    const struct branch_map *branch_map; /* NULL: every branch must be tried */
};

struct choices {
    const struct json **at;
    uint32_t count;
    uint32_t *slots; /* index + 1 by hash; mask + 1 of them, a power of two. NULL: search the list */
    uint32_t mask;
    bool strings;  /* all of them */
    bool constant; /* from const */
};

struct bound {
    const struct json *limit;
    struct json_small small; /* the limit, if it is small: compared without its text */
    bool exclusive;
};

struct prop {
    struct str key;
    const struct node *node; /* NULL: in `required` alone */
    bool required;
};

struct pattern_prop {
    struct pattern *pattern;
    const struct node *node;
};

#define PROPS_FEW 16u /* up to here a linear search is faster than hashing the name */

struct props {
    struct prop *list; /* those of `properties` in their order, then names that only `required` has */
    uint32_t count, declared, required;
    const struct map *index; /* by name; NULL: search the list */
    const struct pattern_prop *patterns;
    uint32_t pattern_count;
    const struct node *rest; /* additionalProperties; NULL: absent */
    bool has_properties;     /* the keyword `properties` is present */
};

struct dependent {
    struct str key;
    const struct str *needs; /* dependentRequired */
    uint32_t need_count;
    const struct node *node; /* dependentSchemas; NULL in dependentRequired */
};

struct op {
    uint8_t code;    /* enum op_code */
    uint8_t applies; /* types it looks at */
    const char *keyword;
    const struct json *value; /* the keyword's value, for messages; NULL if several keywords make one op */
    union {
        struct choices choices;
        struct bound bound;
        struct {
            uint64_t min, max;
        } count;
        struct pattern *pattern;
        const struct format *format;
        const struct props *props;
        const struct node *node; /* propertyNames, not, $ref, unevaluated* */
        struct nodes nodes;      /* allOf, anyOf, oneOf */
        struct {
            const struct node *rest; /* NULL: absent */
            struct nodes prefix;
        } items;
        struct {
            const struct node *node;
            uint64_t min, max;
            bool evaluates; /* 2020-12: items that match count as evaluated */
        } contains;
        struct {
            const struct node *condition, *then, *otherwise; /* NULL: absent */
        } branch;
        struct {
            const struct node *node; /* the target without a dynamic scope */
            struct str anchor;       /* at NULL: a plain reference after all */
        } dynamic;
        struct {
            const struct dependent *at;
            uint32_t count;
        } dependents;
    };
};

/* A required property, at best with a few allowed values: it decides between the branches of an anyOf or
 * oneOf before anything below is evaluated. */
struct discriminator {
    struct str key;
    const struct choices *choices; /* NULL: any value */
};

struct node {
    uint8_t types;    /* of values that can pass at all, seen through references and branches */
    bool unevaluated; /* has an unevaluated* op, so it keeps an evaluated set */
    uint8_t state;    /* of the walk over the finished graph */
    uint16_t op_count, discriminator_count;
    const struct op *ops;
    union {
        const struct discriminator *discriminators;
        struct node_entry *entry; /* until the walk is done with it */
    };
    const struct resource *resource;
    const struct json *source;
    struct str description; /* first line of the schema's own, cut; empty: none */
};

struct schema {
    const struct node *root;
    const struct json *source;
    bool dynamic;     /* has a reference that depends on the path taken: the passes keep the scope */
    bool local_times; /* schema_options, and it has a date-time */
    bool declares;    /* the root has properties of its own, so that it looks at every member */
};

/* ---- shared by the passes (validate.c) ---- */

#define SCHEMA_MAX_FRAMES 2048u /* nodes under evaluation at once; bounds the C stack */

struct scope {
    const struct resource *resource;
    const struct scope *outer;
};

struct pass {
    const struct schema *schema;
    const struct scope *scope;
    struct schema_work own, *work; /* NULL: its own */
    uint32_t frames;
    struct schema_remarks remarks;
    bool local_times; /* a date-time may lack its zone */
    /* the reason it gave up, after which its answers mean nothing; NULL: it has not */
    const char *too_complex;
};

struct pass pass_begin(const struct schema *schema, struct schema_work *work);

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

/* Takes steps off the budget; false, with the reason kept, if they exceed it. */
bool pass_spend(struct pass *pass, uint64_t steps);

/* The steps of looking at this many bytes, or at this many items, members or branches without what is in
 * them. */
#define STEPS_OF_BYTES(bytes)  (1u + (uint64_t)(bytes) / 32u)
#define STEPS_OF_PLACES(count) (1u + (uint64_t)(count) / 4u)

/* Whether the expression matches anywhere in the string; false also if the pass gives up. */
bool pass_matches(struct pass *pass, const struct pattern *pattern, struct str s);

/* The boolean pass over one node or op. `evaluated` (may be NULL) gathers the evaluated members or items. */
bool node_accepts(struct pass *pass, const struct node *node, const struct json *v);
bool op_accepts(struct pass *pass, const struct op *op, const struct json *v,
                struct evaluated_set *evaluated);

/* Whether the node accepts the value if date-times may lack their zone, where the schema allows that. For a
 * value that it rejects otherwise: an instance that fits with the strict format is never judged by the other.
 */
bool node_accepts_local_times(struct pass *pass, const struct node *node, const struct json *v);

/* False also if the pass gives up. */
bool choices_contain(struct pass *pass, const struct choices *choices, const struct json *v);

/* An empty list for at most `most` values, with slots if they are many; and a value added, unless an equal
 * one is there (then false). */
struct choices choices_new(struct arena *arena, uint32_t most);
bool choices_add(struct choices *choices, const struct json *v);

/* The declared property of that name, or NULL. */
const struct prop *props_find(const struct props *props, struct str key);

/* The nodes that apply to a member's value, one a call: that of the property, of each pattern that matches
 * the name, or else props->rest. NULL: there is no other. */
struct props_cursor { /* initially zero */
    uint32_t next;
    bool described;
};
const struct node *props_next_node(struct pass *pass, const struct props *props, struct str key,
                                   struct props_cursor *at);

/* The values that the node's discriminator of that name allows; NULL: any, or it has no such discriminator.
 */
const struct choices *discriminator_choices(const struct node *node, struct str key);

/* Whether an object has every discriminator of the node; true for any other value. */
bool discriminators_match(struct pass *pass, const struct node *node, const struct json *v);

/* What OP_COUNT counts: code points of a string, items, members. */
uint64_t op_count_size(const struct json *v);

/* How many items match `contains`. */
uint64_t op_contains_count(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated);

/* The target of a dynamic reference in the current scope. */
const struct node *op_dynamic_target(struct pass *pass, const struct op *op);

/* Of a schema for additional properties (may be NULL): it says more than that any member is allowed, so the
 * object is a map, whose names are data. */
static inline bool node_is_map_values(const struct node *rest)
{
    return rest && rest->source->type == JSON_OBJECT && rest->source->len > 0;
}

/* Of OP_ITEMS: the node for the item at that index, or NULL. */
static inline const struct node *op_item_node(const struct op *op, uint32_t index)
{
    return index < op->items.prefix.count ? op->items.prefix.at[index] : op->items.rest;
}

/* A member's name as the string that propertyNames judges. */
static inline struct json member_name(const struct json_member *m)
{
    return (struct json){
        .type = JSON_STRING, .len = (uint32_t)m->key.len, .text = m->key.at ? m->key.at : ""};
}

/* The first pair of equal items, as indexes; false if all differ, or the pass gives up. */
bool unique_items_find_pair(struct pass *pass, const struct json *array, size_t *first, size_t *second);

/* Whether v is an integer multiple of `divisor`, a number above 0: 19.99 of 0.01. Exact up to 36 significant
 * digits of the divisor; beyond that, by the nearest doubles. */
bool multiple_of_holds(const struct json *v, const struct json *divisor);

/* The node of the resource's own dynamic anchor of that name, or NULL. */
const struct node *resource_dynamic_anchor(const struct resource *resource, struct str name);

#define IN_PLACE_NODES_MAX 64u /* schemas of tools need a handful */

/* A node, its references and its branches: all apply to one value. 1.5 KB, of which `count` says how much is
 * written. */
struct in_place_nodes {
    const struct node *nodes[IN_PLACE_NODES_MAX];
    const struct props *props[IN_PLACE_NODES_MAX]; /* NULL: none */
    const struct op *items[IN_PLACE_NODES_MAX];    /* NULL: none */
    uint32_t count;
};

/* Those that apply to v: of the branches, the one that discriminators and type leave, if only one is left. v
 * NULL: all, whether their conditions hold or not. */
void in_place_collect(struct in_place_nodes *all, const struct node *node, const struct json *v,
                      struct pass *pass);

/* The property of that name that one of them declares, at best with a schema; NULL: none. */
const struct prop *in_place_prop(const struct in_place_nodes *all, struct str name);

#endif

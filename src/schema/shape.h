/*
 * The shape of a value that a schema accepts, short enough for a sentence: "list of {start: integer
 * (required), end: integer or null}"; and the same as a small JSON Schema for programs. References and allOf
 * are followed; what is left out is the depth beyond SHAPE_DEPTH_MAX and the rest of long lists.
 */
#ifndef TOOLGATE_SCHEMA_SHAPE_H
#define TOOLGATE_SCHEMA_SHAPE_H

#include "base/buf.h"

struct json;
struct json_out;
struct node;
struct nodes;
struct schema;

#define SHAPE_DEPTH_MAX         4u   /* objects and lists within each other; deeper ones by their type */
#define SHAPE_FIELDS_MAX        12u  /* of an object; the rest is counted */
#define SHAPE_BRANCHES_MAX      6u   /* of a union */
#define SHAPE_BRANCHES_READ     32u  /* alternatives that are described to find those */
#define SHAPE_CHOICES_MAX       30u  /* allowed values; the rest is counted */
#define SHAPE_CHOICES_MAX_BYTES 400u /* of all allowed values together */
#define SHAPE_VALUE_MAX_BYTES   40u  /* of a default or a pattern; a longer one is left out */
#define SHAPE_MAX_BYTES         600u /* from here on objects and lists inside are named by their type */

/* The shape of the node's values; "any value" if it takes all. NULL: writes nothing. */
void shape_put(struct buf *out, const struct node *node);

/* The shape of the branches of an anyOf or oneOf. */
void shape_put_branches(struct buf *out, const struct nodes *branches);

/* An allowed value: a word without quotes, else JSON. */
void shape_put_value(struct buf *out, const struct json *value);

/* {"type":"object","properties":{…},"required":[…]}: bounded like the text. */
void shape_put_json(struct json_out *out, const struct node *node);

/* A parameter of a tool. */
struct shape_parameter {
    struct str name, description; /* its first line, cut; empty: none */
    const struct node *node;      /* NULL: only `required` names it */
    bool required;
};

/* Those that the schema declares, in their order; returns how many it wrote to `out`. */
size_t shape_parameters(const struct schema *schema, struct shape_parameter *out, size_t max);

#endif

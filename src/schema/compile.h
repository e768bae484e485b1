/*
 * What compilation knows besides the nodes it makes: documents, resources and
 * the subschemas in them. Internal to this room.
 *
 *   resources.c  indexes every subschema, $id and anchor of a document, and finds what a reference names
 *   keywords.c   the table of keywords; makes the ops of one node
 *   compile.c    the queue of nodes; then refuses cycles, works out types and discriminators of each node
 */
#ifndef TOOLGATE_SCHEMA_COMPILE_H
#define TOOLGATE_SCHEMA_COMPILE_H

#include "schema/schema_node.h"

#include "base/arena.h"

enum draft { DRAFT_7 = 1, DRAFT_2019 = 2, DRAFT_2020 = 4 };
#define DRAFTS_ALL        (DRAFT_7 | DRAFT_2019 | DRAFT_2020)
#define DRAFTS_SINCE_2019 (DRAFT_2019 | DRAFT_2020)

enum vocabulary {
    VOCABULARY_CORE = 1,
    VOCABULARY_APPLICATOR = 2,
    VOCABULARY_UNEVALUATED = 4,
    VOCABULARY_VALIDATION = 8,
    VOCABULARY_FORMAT = 16
};
#define VOCABULARIES_ALL 31u

struct dialect {
    enum draft draft;
    unsigned vocabularies;
    bool asserts_format; /* its metaschema has the format-assertion vocabulary */
};

struct dynamic_anchor {
    struct str name; /* empty: $recursiveAnchor */
    struct subschema *subschema;
    const struct node *node;
    struct dynamic_anchor *next;
};

/* A schema with a URI of its own: the root of a document, or a subschema with an $id. */
struct resource {
    struct str uri;
    struct subschema *root;
    struct dialect dialect;
    struct map *anchors; /* name to subschema; NULL: none */
    struct dynamic_anchor *dynamic;
    struct resource *next;
};

struct subschema {
    const struct json *source;
    struct resource *resource;
    const struct subschema *parent; /* NULL: the root of a document, or reached by a reference alone */
    struct str keyword, key;        /* the step from the parent; key.at NULL: an index or nothing */
    int32_t index;                  /* -1: none */
    uint16_t nesting;
    struct node *node; /* NULL: not needed yet */
};

/* What only the compilation of a node needs. */
struct node_entry {
    struct node *node;
    struct subschema *subschema;
    struct node_entry *next;
};

struct compiler {
    struct arena *arena, *scratch; /* scratch: for what compilation alone needs */
    const struct schema_options *options;
    struct problems *warnings; /* may be NULL */
    struct why *why;
    struct map *subschemas; /* by the address of their JSON */
    struct map *resources;  /* by URI */
    struct resource *all_resources;
    struct node_entry *first, *last, *todo;
    uint32_t subschema_count, chain;
    size_t pattern_bytes;      /* compiled */
    bool dynamic, local_times; /* of the schema, as far as its nodes are compiled */
    struct map *faults;        /* schema_repair.c; NULL: the first fault ends the compilation */
    struct problems *fault_warnings;
};

/* The key of a schema in `subschemas` and `faults`. */
static inline struct str address_of(const struct json *const *source)
{
    return (struct str){(const char *)source, sizeof(*source)};
}

/* ---- compile.c ---- */

/* From schema->source; sets its root, `dynamic` and `local_times`. With faults, the nodes are not analyzed.
 */
enum err compile_document(struct compiler *c, struct schema *schema);

/* ---- schema_repair.c ---- */

/* Returns `err`; if faults are collected: OK, after noting that the keyword of `source` has to go (NULL:
 * `source` itself), with c->why as the warning. */
enum err compile_fault(struct compiler *c, const struct json *source, const char *keyword, struct str pointer,
                       enum err err);

/* ---- resources.c ---- */

/* Gives the document a root resource under `uri` and indexes all of it. */
enum err subschema_index_document(struct compiler *c, const struct json *document, struct str uri,
                                  struct resource **out);

/* Indexes a subschema that no keyword leads to. */
enum err subschema_index(struct compiler *c, const struct json *source, struct resource *resource,
                         struct subschema **out);

struct subschema *subschema_find(const struct compiler *c, const struct json *source);

/* The node of a subschema; its keywords are compiled later, from the queue. */
const struct node *subschema_node(struct compiler *c, struct subschema *subschema);

/* "#/properties/a/items", with the document's URI before it if it has one. */
struct str subschema_pointer(struct arena *arena, const struct subschema *subschema);

/* The subschema that `reference` names at `from`. *by_anchor (may be NULL): the plain-name fragment it used,
 * or STR_NONE. */
enum err ref_resolve(struct compiler *c, const struct subschema *from, struct str reference,
                     struct subschema **out, struct str *by_anchor);

/* ---- keywords.c ---- */

/* The subschemas in a keyword's value. */
enum keyword_holds { HOLDS_NONE, HOLDS_ONE, HOLDS_LIST, HOLDS_MAP, HOLDS_ONE_OR_LIST, HOLDS_MAP_OR_NAMES };

struct node_builder;

struct keyword {
    const char *name;
    uint8_t drafts, vocabulary, holds;
    enum err (*compile)(struct node_builder *b, const struct json *value); /* NULL: makes no op itself */
    uint8_t code, types;                                                   /* of its op */
};

/* NULL: not a keyword of this dialect (NULL: of any). */
const struct keyword *keyword_find(const struct dialect *dialect, struct str name);

enum err compile_node(struct compiler *c, struct node_entry *entry);

#endif

/* From JSON to nodes: index the document, compile nodes from a queue, so that references never recurse, then
 * analyze them. */
#include "schema/compile.h"

static enum err compile_queue(struct compiler *c)
{
    enum err err = OK;
    while (c->todo && !err) {
        struct node_entry *entry = c->todo;
        err = compile_node(c, entry); /* may append */
        c->todo = entry->next;
    }
    return err;
}

/* A dynamic reference may lead to any dynamic anchor; compiling one may index documents with more. */
static enum err compile_dynamic_anchors(struct compiler *c)
{
    enum err err = OK;
    for (bool more = c->dynamic; more && !err;) {
        more = false;
        for (struct resource *r = c->all_resources; r; r = r->next)
            for (struct dynamic_anchor *a = r->dynamic; a; a = a->next) {
                more |= !a->node;
                a->node = subschema_node(c, a->subschema);
            }
        err = compile_queue(c);
    }
    return err;
}

const struct node *resource_dynamic_anchor(const struct resource *resource, struct str name)
{
    for (const struct dynamic_anchor *a = resource->dynamic; a; a = a->next)
        if (str_eq(a->name, name))
            return a->node;
    return NULL;
}

static bool has_properties(const struct node *node)
{
    bool found = false;
    for (uint16_t i = 0; i < node->op_count; i++)
        found |= node->ops[i].code == OP_PROPERTIES && node->ops[i].props->declared;
    return found;
}

static bool has_date_times(const struct compiler *c)
{
    for (const struct node_entry *entry = c->first; entry; entry = entry->next)
        for (uint16_t i = 0; i < entry->node.op_count; i++)
            if (entry->node.ops[i].code == OP_FORMAT && entry->node.ops[i].format->check_local)
                return true;
    return false;
}

enum err compile_document(struct compiler *c, struct schema *schema)
{
    struct arena *scratch = arena_new(); /* for the maps, which compilation alone needs */
    c->subschemas = map_new(scratch);
    c->resources = map_new(scratch);
    struct resource *resource;
    enum err err = subschema_index_document(c, schema->source, STR_LIT(""), &resource);
    if (!err) {
        schema->root = subschema_node(c, resource->root);
        err = compile_queue(c);
    }
    if (!err)
        err = compile_dynamic_anchors(c);
    if (!err && !(c->faults && map_count(c->faults)))
        err = analyze_nodes(c);
    arena_free(scratch);
    schema->dynamic = c->dynamic;
    return err;
}

enum err schema_compile(struct arena *arena, const struct json *source, const struct schema_options *options,
                        struct schema **out, struct problems *warnings, struct why *why)
{
    struct compiler c = {.arena = arena,
                         .options = options,
                         .warnings = warnings,
                         .why = why,
                         .keyword_table = &keyword_table};
    struct schema *schema = ARENA_NEW(arena, struct schema);
    schema->source = source;
    enum err err = compile_document(&c, schema);
    schema->declares = !err && has_properties(schema->root);
    schema->local_times = !err && options && options->local_times && has_date_times(&c);
    *out = err ? NULL : schema;
    return err;
}

bool schema_takes_local_times(const struct schema *schema)
{
    return schema->local_times;
}

const struct json *schema_source(const struct schema *schema)
{
    return schema->source;
}

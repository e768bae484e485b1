/* From JSON to nodes: index the document, compile nodes from a queue, so that references never recurse, then
 * analyze them. */
#include "schema/compile.h"

const struct node *compile_queue_node(struct compiler *c, struct subschema *subschema)
{
    if (subschema->node)
        return subschema->node;
    struct node_entry *entry = ARENA_NEW(c->arena, struct node_entry);
    entry->subschema = subschema;
    entry->node.resource = subschema->resource;
    entry->node.source = subschema->source;
    struct str description = json_str(json_get_text(subschema->source, "description"));
    entry->node.description = arena_first_line(c->arena, description, PROBLEM_DESCRIPTION_MAX_BYTES);
    if (c->last)
        c->last->next = entry;
    else
        c->first = entry;
    c->last = entry;
    if (!c->todo)
        c->todo = entry;
    subschema->node = &entry->node;
    return subschema->node;
}

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
                a->node = compile_queue_node(c, a->subschema);
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

static enum err compile_all(struct compiler *c, struct schema *schema)
{
    struct resource *resource;
    enum err err = subschema_index_document(c, schema->source, STR_LIT(""), &resource);
    if (err)
        return err;
    schema->root = compile_queue_node(c, resource->root);
    err = compile_queue(c);
    if (!err)
        err = compile_dynamic_anchors(c);
    return err ? err : analyze_nodes(c);
}

enum err schema_compile(struct arena *arena, const struct json *source, const struct schema_options *options,
                        struct schema **out, struct problems *warnings, struct why *why)
{
    struct compiler c = {.arena = arena, .options = options, .warnings = warnings, .why = why};
    struct arena *scratch = arena_new(); /* for the maps, which compilation alone needs */
    struct schema *schema = ARENA_NEW(arena, struct schema);
    c.subschemas = map_new(scratch);
    c.resources = map_new(scratch);
    schema->source = source;
    enum err err = compile_all(&c, schema);
    arena_free(scratch);
    schema->dynamic = c.dynamic;
    *out = err ? NULL : schema;
    return err;
}

const struct json *schema_source(const struct schema *schema)
{
    return schema->source;
}

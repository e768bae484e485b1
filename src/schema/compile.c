/*
 * From JSON to nodes: index the document; compile nodes from a queue, so that references never recurse; then
 * walk the finished graph, each node after those it applies in place. The walk refuses a cycle of in-place
 * references, which would never end, narrows each node's types to what can pass, and finds the properties
 * that decide between the branches of an anyOf or oneOf.
 */
#include "schema/compile.h"

#define DISCRIMINATORS_MAX 4u
#define BRANCH_ENTRIES_MAX 64u /* searched one by one */
#define REFERENCE_CHAIN_LIMIT                                                                                \
    512u /* references and branches in a row for one value; bounds the C stack here */

enum state { UNSEEN, OPEN, DONE };

static enum err visit(struct compiler *c, const struct node *node);

/* Visits the nodes that an op applies to the same value. *types: those that can pass the op, as far as its
 * own value and these nodes decide. A dynamic reference may lead elsewhere: the passes bound it. */
static enum err visit_op(struct compiler *c, const struct op *op, unsigned *types)
{
    enum err err = OK;
    switch ((enum op_code)op->code) {
    case OP_CHOICES:
        *types = TYPES_ANY & ~op->applies;
        for (uint32_t i = 0; i < op->choices.count; i++)
            *types |= type_bit_of(op->choices.at[i]);
        return OK;
    case OP_REF:
        err = visit(c, op->node);
        *types = op->node->types;
        return err;
    case OP_NOT:
        return visit(c, op->node);
    case OP_ALL_OF:
        for (uint32_t i = 0; i < op->nodes.count && !err; i++) {
            err = visit(c, op->nodes.at[i]);
            *types &= op->nodes.at[i]->types;
        }
        return err;
    case OP_ANY_OF:
    case OP_ONE_OF:
        *types = 0;
        for (uint32_t i = 0; i < op->nodes.count && !err; i++) {
            err = visit(c, op->nodes.at[i]);
            *types |= op->nodes.at[i]->types;
        }
        return err;
    case OP_IF: {
        const struct node *parts[] = {op->branch.condition, op->branch.then, op->branch.otherwise};
        for (int i = 0; i < 3 && !err; i++)
            err = parts[i] ? visit(c, parts[i]) : OK;
        return err;
    }
    case OP_DEPENDENT_SCHEMAS:
        for (uint32_t i = 0; i < op->dependents.count && !err; i++)
            err = visit(c, op->dependents.at[i].node);
        return err;
    default:
        return OK;
    }
}

struct discriminators {
    struct discriminator list[DISCRIMINATORS_MAX];
    uint16_t count;
};

/* The choices of a property's schema, its own or behind one reference. */
static const struct choices *choices_of(const struct node *node)
{
    for (int hops = 0; node && hops < 2; hops++) {
        const struct op *op = node->op_count ? &node->ops[0] : NULL;
        if (op && op->code == OP_CHOICES && op->applies == TYPES_ANY)
            return &op->choices;
        node = op && op->code == OP_REF ? op->node : NULL;
    }
    return NULL;
}

static void add_inherited(struct discriminators *all, const struct node *node, bool with_choices)
{
    for (uint16_t i = 0; i < node->discriminator_count && all->count < DISCRIMINATORS_MAX; i++)
        if (with_choices == (node->discriminators[i].choices != NULL))
            all->list[all->count++] = node->discriminators[i];
}

/* Required properties with choices first, then those without. */
static void collect_discriminators(struct compiler *c, struct node *node)
{
    struct discriminators all = {.count = 0};
    for (int with_choices = 1; with_choices >= 0; with_choices--)
        for (uint16_t i = 0; i < node->op_count; i++) {
            const struct op *op = &node->ops[i];
            const struct props *props = op->code == OP_PROPERTIES ? op->props : NULL;
            for (uint32_t k = 0; props && k < props->count && all.count < DISCRIMINATORS_MAX; k++) {
                const struct prop *p = &props->list[k];
                const struct choices *choices = p->required ? choices_of(p->node) : NULL;
                if (p->required && with_choices == (choices != NULL))
                    all.list[all.count++] = (struct discriminator){p->key, choices};
            }
            if (op->code == OP_REF)
                add_inherited(&all, op->node, with_choices);
            else if (op->code == OP_ALL_OF)
                for (uint32_t k = 0; k < op->nodes.count; k++)
                    add_inherited(&all, op->nodes.at[k], with_choices);
        }
    struct discriminator *list = all.count ? ARENA_ARRAY(c->arena, struct discriminator, all.count) : NULL;
    if (list)
        memcpy(list, all.list, all.count * sizeof(*list));
    node->discriminators = list;
    node->discriminator_count = all.count;
}

const struct choices *discriminator_choices(const struct node *node, struct str key)
{
    for (uint16_t i = 0; i < node->discriminator_count; i++)
        if (str_eq(node->discriminators[i].key, key))
            return node->discriminators[i].choices;
    return NULL;
}

/* Returns the number of entries; 0 if a branch has no strings for the key, or shares one with another. */
static uint32_t fill_branch_map(const struct nodes *nodes, struct str key, struct branch_entry *entries)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const struct choices *choices = discriminator_choices(nodes->at[i], key);
        uint32_t of_others = count;
        if (!choices || !choices->strings)
            return 0;
        for (uint32_t k = 0; k < choices->count; k++) {
            struct str value = json_str(choices->at[k]);
            for (uint32_t other = 0; other < of_others; other++)
                if (str_eq(entries[other].value, value))
                    return 0;
            if (count == BRANCH_ENTRIES_MAX)
                return 0;
            entries[count++] = (struct branch_entry){value, nodes->at[i]};
        }
    }
    return count;
}

/* By the first discriminator of the first branch that decides between all of them. */
static void find_branch_map(struct compiler *c, struct op *op)
{
    const struct nodes *nodes = &op->nodes;
    struct branch_entry entries[BRANCH_ENTRIES_MAX];
    if ((op->code != OP_ANY_OF && op->code != OP_ONE_OF) || nodes->count < 2)
        return;
    for (uint16_t i = 0; i < nodes->at[0]->discriminator_count && !op->nodes.branch_map; i++) {
        struct str key = nodes->at[0]->discriminators[i].key;
        uint32_t count = fill_branch_map(nodes, key, entries);
        if (!count)
            continue;
        struct branch_map *map = ARENA_NEW(c->arena, struct branch_map);
        struct branch_entry *list = ARENA_ARRAY(c->arena, struct branch_entry, count);
        memcpy(list, entries, count * sizeof(*list));
        *map = (struct branch_map){key, list, count};
        op->nodes.branch_map = map;
    }
}

static enum err visit(struct compiler *c, const struct node *node)
{
    if (node->state == DONE)
        return OK;
    struct node_entry *entry = node->entry;
    struct node *own = entry->node;
    if (own->state == OPEN)
        return err_set(c->why, ERR_SCHEMA,
                       "the schema at " STR_FMT
                       " refers to itself for the same value, which never ends; put the reference under "
                       "'properties' or 'items', or remove it",
                       STR_ARG(subschema_pointer(c->arena, entry->subschema)));
    if (c->chain == REFERENCE_CHAIN_LIMIT)
        return err_set(c->why, ERR_LIMIT, "expected at most %u references in a row, found more at " STR_FMT,
                       REFERENCE_CHAIN_LIMIT, STR_ARG(subschema_pointer(c->arena, entry->subschema)));
    own->state = OPEN;
    c->chain++;
    enum err err = OK;
    for (uint16_t i = 0; i < node->op_count && !err; i++) {
        unsigned types = TYPES_ANY;
        err = visit_op(c, &node->ops[i], &types);
        if (err == ERR_SCHEMA && node->ops[i].code == OP_REF && c->faults) {
            compile_fault(c, node->source, node->ops[i].keyword,
                          subschema_pointer(c->arena, entry->subschema), err);
            err = OK;
        }
        if (err)
            break;
        own->types &= (uint8_t)types;
        find_branch_map(c, (struct op *)&node->ops[i]);
    }
    /* {"$ref": …} alone becomes its target, unless the path taken counts. */
    if (!err && !c->dynamic && node->op_count == 1 && node->ops[0].code == OP_REF && node->source->len == 1)
        *own = *node->ops[0].node;
    collect_discriminators(c, own);
    if (c->warnings && !own->types && own->source->type != JSON_BOOL)
        problems_add(c->warnings,
                     (struct problem){.path = subschema_pointer(c->warnings->arena, entry->subschema),
                                      .code = "schema",
                                      .message = STR_LIT("contradicts itself: no value can fit; is "
                                                         "a keyword of the items written on the list?"),
                                      .warning = true});
    own->state = DONE;
    c->chain--;
    return err;
}

/* ---- a document ---- */

const struct node *resource_dynamic_anchor(const struct resource *resource, struct str name)
{
    for (const struct dynamic_anchor *a = resource->dynamic; a; a = a->next)
        if (str_eq(a->name, name))
            return a->node;
    return NULL;
}

enum err compile_document(struct compiler *c, struct schema *schema)
{
    c->scratch = arena_new();
    c->subschemas = map_new(c->scratch);
    c->resources = map_new(c->scratch);
    struct resource *resource;
    enum err err = subschema_index_document(c, schema->source, STR_LIT(""), &resource);
    if (!err)
        schema->root = subschema_node(c, resource->root);
    while (c->todo && !err) {
        struct node_entry *entry = c->todo;
        err = compile_node(c, entry); /* may append */
        c->todo = entry->next;
        /* A dynamic reference may lead to any dynamic anchor; compiling one may index documents with more. */
        for (struct resource *r = c->dynamic && !c->todo ? c->all_resources : NULL; r && !err; r = r->next)
            for (struct dynamic_anchor *a = r->dynamic; a; a = a->next)
                a->node = subschema_node(c, a->subschema);
    }
    bool sound = !err && !(c->faults && map_count(c->faults));
    for (struct node_entry *entry = sound ? c->first : NULL; entry && !err; entry = entry->next)
        err = visit(c, entry->node);
    arena_free(c->scratch);
    schema->dynamic = c->dynamic;
    schema->local_times = c->local_times;
    return err;
}

enum err schema_compile(struct arena *arena, const struct json *source, const struct schema_options *options,
                        struct schema **out, struct problems *warnings, struct why *why)
{
    struct compiler c = {.arena = arena, .options = options, .warnings = warnings, .why = why};
    struct schema *schema = ARENA_NEW(arena, struct schema);
    schema->source = source;
    enum err err = compile_document(&c, schema);
    for (uint16_t i = 0; !err && i < schema->root->op_count; i++) {
        const struct op *op = &schema->root->ops[i];
        schema->declares |= op->code == OP_PROPERTIES && op->props->declared;
    }
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

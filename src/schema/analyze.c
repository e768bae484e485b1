/*
 * Over the finished graph, once, each node after those it applies in subschema:
 * refuses a cycle of in-subschema references, which would never end; narrows each
 * node's types to what can pass; gathers what discriminators branches apart.
 */
#include "schema/compile.h"

#define DISCRIMINATORS_MAX 4u
#define BRANCH_ENTRIES_MAX 64u  /* of a branch_map: as many as are looked through quickly */
#define CHAIN_MAX          512u /* references and branches in a row for one value; bounds the C stack here */

enum state { UNSEEN, OPEN, DONE };

static enum err visit(struct compiler *c, const struct node *node);

/* Nodes live in their struct node_entry; only compilation knows. */
static struct node_entry *entry_of(const struct node *node)
{
    return (struct node_entry *)node;
}

static enum err visit_nodes(struct compiler *c, const struct nodes *nodes)
{
    enum err err = OK;
    for (uint32_t i = 0; i < nodes->count && !err; i++)
        err = visit(c, nodes->at[i]);
    return err;
}

static enum err visit_dependents(struct compiler *c, const struct op *op)
{
    enum err err = OK;
    for (uint32_t i = 0; i < op->dependents.count && !err; i++)
        err = visit(c, op->dependents.at[i].node);
    return err;
}

/* The nodes an op applies to the very same value. A dynamic reference may lead elsewhere: the passes bound
 * it. */
static enum err visit_in_place(struct compiler *c, const struct op *op)
{
    enum err err = OK;
    switch ((enum op_code)op->code) {
    case OP_REF:
    case OP_NOT:
        return visit(c, op->node);
    case OP_ALL_OF:
    case OP_ANY_OF:
    case OP_ONE_OF:
        return visit_nodes(c, &op->nodes);
    case OP_IF:
        err = visit(c, op->branch.condition);
        if (!err && op->branch.then)
            err = visit(c, op->branch.then);
        return err || !op->branch.otherwise ? err : visit(c, op->branch.otherwise);
    case OP_DEPENDENT_SCHEMAS:
        return visit_dependents(c, op);
    default:
        return OK;
    }
}

static unsigned types_of_choices(const struct op *op)
{
    unsigned types = TYPES_ANY & ~op->applies;
    for (uint32_t i = 0; i < op->choices.count; i++)
        types |= type_bit_of(op->choices.at[i]);
    return types;
}

static unsigned types_of_any(const struct nodes *nodes)
{
    unsigned types = 0;
    for (uint32_t i = 0; i < nodes->count; i++)
        types |= nodes->at[i]->types;
    return types;
}

static unsigned types_of_all(const struct nodes *nodes)
{
    unsigned types = TYPES_ANY;
    for (uint32_t i = 0; i < nodes->count; i++)
        types &= nodes->at[i]->types;
    return types;
}

static unsigned types_through(const struct op *op)
{
    switch ((enum op_code)op->code) {
    case OP_CHOICES:
        return types_of_choices(op);
    case OP_REF:
        return op->node->types;
    case OP_ALL_OF:
        return types_of_all(&op->nodes);
    case OP_ANY_OF:
    case OP_ONE_OF:
        return types_of_any(&op->nodes);
    default:
        return TYPES_ANY;
    }
}

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

struct discriminators {
    struct discriminator list[DISCRIMINATORS_MAX];
    uint16_t count;
};

/* Those with choices; then, in a second round, those without. */
static void add_own(struct discriminators *discriminators, const struct props *props, bool with_choices)
{
    for (uint32_t i = 0; i < props->count && discriminators->count < DISCRIMINATORS_MAX; i++) {
        const struct prop *p = &props->list[i];
        const struct choices *choices = p->required ? choices_of(p->node) : NULL;
        if (p->required && with_choices == (choices != NULL))
            discriminators->list[discriminators->count++] = (struct discriminator){p->key, choices};
    }
}

static void add_those_of(struct discriminators *discriminators, const struct node *node, bool with_choices)
{
    for (uint16_t i = 0; i < node->discriminator_count && discriminators->count < DISCRIMINATORS_MAX; i++)
        if (with_choices == (node->discriminators[i].choices != NULL))
            discriminators->list[discriminators->count++] = node->discriminators[i];
}

static void add_all(struct discriminators *discriminators, const struct node *node, bool with_choices)
{
    for (uint16_t i = 0; i < node->op_count; i++) {
        const struct op *op = &node->ops[i];
        if (op->code == OP_PROPERTIES)
            add_own(discriminators, op->props, with_choices);
        else if (op->code == OP_REF)
            add_those_of(discriminators, op->node, with_choices);
        else if (op->code == OP_ALL_OF)
            for (uint32_t k = 0; k < op->nodes.count; k++)
                add_those_of(discriminators, op->nodes.at[k], with_choices);
    }
}

static void collect_discriminators(struct compiler *c, struct node *node)
{
    struct discriminators discriminators = {.count = 0};
    add_all(&discriminators, node, true);
    add_all(&discriminators, node, false);
    if (!discriminators.count)
        return;
    struct discriminator *list = ARENA_ARRAY(c->arena, struct discriminator, discriminators.count);
    memcpy(list, discriminators.list, discriminators.count * sizeof(*list));
    node->discriminators = list;
    node->discriminator_count = discriminators.count;
}

/* ---- forks ---- */

static const struct choices *choices_told(const struct node *node, struct str key)
{
    for (uint16_t i = 0; i < node->discriminator_count; i++)
        if (str_eq(node->discriminators[i].key, key))
            return node->discriminators[i].choices && node->discriminators[i].choices->strings
                       ? node->discriminators[i].choices
                       : NULL;
    return NULL;
}

static bool is_way(const struct branch_map *branch_map, struct str value)
{
    for (uint32_t i = 0; i < branch_map->count; i++)
        if (str_eq(branch_map->entries[i].value, value))
            return true;
    return false;
}

/* False where a branch does not discriminator its strings of that key, or shares one with another. */
static bool take_ways(struct branch_map *branch_map, const struct nodes *nodes, struct branch_entry *entries)
{
    branch_map->entries = entries;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const struct choices *choices = choices_told(nodes->at[i], branch_map->key);
        uint32_t before = branch_map->count;
        for (uint32_t k = 0; choices && k < choices->count; k++) {
            struct str value = json_str(choices->at[k]);
            if (is_way(&(struct branch_map){.entries = entries, .count = before}, value) ||
                branch_map->count == BRANCH_ENTRIES_MAX)
                return false;
            entries[branch_map->count++] = (struct branch_entry){value, nodes->at[i]};
        }
        if (!choices)
            return false;
    }
    return true;
}

static const struct branch_map *branch_map_by(struct compiler *c, const struct nodes *nodes, struct str key)
{
    struct branch_entry entries[BRANCH_ENTRIES_MAX], *list;
    struct branch_map branch_map = {.key = key}, *kept;
    if (!take_ways(&branch_map, nodes, entries))
        return NULL;
    list = ARENA_ARRAY(c->arena, struct branch_entry, branch_map.count);
    memcpy(list, entries, branch_map.count * sizeof(*list));
    branch_map.entries = list;
    kept = ARENA_NEW(c->arena, struct branch_map);
    *kept = branch_map;
    return kept;
}

/* The first of the first branch's discriminators that discriminators all branches apart. */
static void find_branch_map(struct compiler *c, struct op *op)
{
    const struct nodes *nodes = &op->nodes;
    if ((op->code != OP_ANY_OF && op->code != OP_ONE_OF) || nodes->count < 2)
        return;
    for (uint16_t i = 0; i < nodes->at[0]->discriminator_count && !op->nodes.branch_map; i++)
        op->nodes.branch_map = branch_map_by(c, nodes, nodes->at[0]->discriminators[i].key);
}

static enum err cycle(struct compiler *c, const struct node_entry *entry)
{
    return err_set(c->why, ERR_SCHEMA,
                   "the schema at " STR_FMT
                   " refers to itself for the same value, which never ends; put the reference under "
                   "'properties' or 'items', or remove it",
                   STR_ARG(subschema_pointer(c->arena, entry->subschema)));
}

static void warn_of_contradiction(struct compiler *c, const struct node_entry *entry)
{
    if (!c->warnings || entry->node.types || entry->node.source->type == JSON_BOOL)
        return;
    struct arena *arena = c->warnings->arena;
    problems_add(c->warnings,
                 (struct problem){.path = arena_dup(arena, subschema_pointer(c->arena, entry->subschema)),
                                  .code = "schema",
                                  .message = STR_LIT("contradicts itself: no value can fit; is a keyword "
                                                     "of the items written on the list?"),
                                  .warning = true});
}

/* {"$ref": …} and nothing else is what it refers to, unless the branch_entry here counts: it needn't be
 * walked through. */
static bool is_reference_alone(const struct compiler *c, const struct node *node)
{
    return !c->dynamic && node->op_count == 1 && node->ops[0].code == OP_REF && node->source->len == 1;
}

static enum err visit(struct compiler *c, const struct node *node)
{
    struct node_entry *entry = entry_of(node);
    if (entry->state == DONE)
        return OK;
    if (entry->state == OPEN)
        return cycle(c, entry);
    if (c->chain == CHAIN_MAX)
        return err_set(c->why, ERR_LIMIT, "expected at most %u references in a row, found more at " STR_FMT,
                       CHAIN_MAX, STR_ARG(subschema_pointer(c->arena, entry->subschema)));
    entry->state = OPEN;
    c->chain++;
    enum err err = OK;
    for (uint16_t i = 0; i < node->op_count && !err; i++) {
        err = visit_in_place(c, &node->ops[i]);
        if (!err)
            entry->node.types &= (uint8_t)types_through(&node->ops[i]);
        if (!err)
            find_branch_map(c, (struct op *)&node->ops[i]);
    }
    if (!err && is_reference_alone(c, node))
        entry->node = *node->ops[0].node;
    collect_discriminators(c, &entry->node);
    warn_of_contradiction(c, entry);
    entry->state = DONE;
    c->chain--;
    return err;
}

enum err analyze_nodes(struct compiler *c)
{
    enum err err = OK;
    for (struct node_entry *b = c->first; b && !err; b = b->next)
        err = visit(c, &b->node);
    return err;
}

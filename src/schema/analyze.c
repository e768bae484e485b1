/*
 * Over the finished graph, once, each node after those it applies in place:
 * refuses a cycle of in-place references, which would never end; narrows each
 * node's types to what can pass; gathers what tells branches apart.
 */
#include "schema/compile.h"

#define TELLS_MAX 4u
#define WAYS_MAX  64u  /* of a fork: as many as are looked through quickly */
#define CHAIN_MAX 512u /* references and branches in a row for one value; bounds the C stack here */

enum state { UNSEEN, OPEN, DONE };

static enum err visit(struct compiler *c, const struct node *node);

/* Nodes live in their struct built; only compilation knows. */
static struct built *built_of(const struct node *node)
{
    return (struct built *)node;
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
        types |= type_of(op->choices.at[i]);
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

struct tells {
    struct tell list[TELLS_MAX];
    uint16_t count;
};

/* Those with choices; then, in a second round, those without. */
static void add_own(struct tells *tells, const struct props *props, bool with_choices)
{
    for (uint32_t i = 0; i < props->count && tells->count < TELLS_MAX; i++) {
        const struct prop *p = &props->list[i];
        const struct choices *choices = p->required ? choices_of(p->node) : NULL;
        if (p->required && with_choices == (choices != NULL))
            tells->list[tells->count++] = (struct tell){p->key, choices};
    }
}

static void add_those_of(struct tells *tells, const struct node *node, bool with_choices)
{
    for (uint16_t i = 0; i < node->tell_count && tells->count < TELLS_MAX; i++)
        if (with_choices == (node->tells[i].choices != NULL))
            tells->list[tells->count++] = node->tells[i];
}

static void add_all(struct tells *tells, const struct node *node, bool with_choices)
{
    for (uint16_t i = 0; i < node->op_count; i++) {
        const struct op *op = &node->ops[i];
        if (op->code == OP_PROPERTIES)
            add_own(tells, op->props, with_choices);
        else if (op->code == OP_REF)
            add_those_of(tells, op->node, with_choices);
        else if (op->code == OP_ALL_OF)
            for (uint32_t k = 0; k < op->nodes.count; k++)
                add_those_of(tells, op->nodes.at[k], with_choices);
    }
}

static void gather_tells(struct compiler *c, struct node *node)
{
    struct tells tells = {.count = 0};
    add_all(&tells, node, true);
    add_all(&tells, node, false);
    if (!tells.count)
        return;
    struct tell *list = ARENA_ARRAY(c->arena, struct tell, tells.count);
    memcpy(list, tells.list, tells.count * sizeof(*list));
    node->tells = list;
    node->tell_count = tells.count;
}

/* ---- forks ---- */

static const struct choices *choices_told(const struct node *node, struct str key)
{
    for (uint16_t i = 0; i < node->tell_count; i++)
        if (str_eq(node->tells[i].key, key))
            return node->tells[i].choices && node->tells[i].choices->strings ? node->tells[i].choices : NULL;
    return NULL;
}

static bool is_way(const struct fork *fork, struct str value)
{
    for (uint32_t i = 0; i < fork->count; i++)
        if (str_eq(fork->ways[i].value, value))
            return true;
    return false;
}

/* False where a branch does not tell its strings of that key, or shares one with another. */
static bool take_ways(struct fork *fork, const struct nodes *nodes, struct way *ways)
{
    fork->ways = ways;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const struct choices *choices = choices_told(nodes->at[i], fork->key);
        uint32_t before = fork->count;
        for (uint32_t k = 0; choices && k < choices->count; k++) {
            struct str value = json_str(choices->at[k]);
            if (is_way(&(struct fork){.ways = ways, .count = before}, value) || fork->count == WAYS_MAX)
                return false;
            ways[fork->count++] = (struct way){value, nodes->at[i]};
        }
        if (!choices)
            return false;
    }
    return true;
}

static const struct fork *fork_by(struct compiler *c, const struct nodes *nodes, struct str key)
{
    struct way ways[WAYS_MAX], *list;
    struct fork fork = {.key = key}, *kept;
    if (!take_ways(&fork, nodes, ways))
        return NULL;
    list = ARENA_ARRAY(c->arena, struct way, fork.count);
    memcpy(list, ways, fork.count * sizeof(*list));
    fork.ways = list;
    kept = ARENA_NEW(c->arena, struct fork);
    *kept = fork;
    return kept;
}

/* The first of the first branch's tells that tells all branches apart. */
static void find_fork(struct compiler *c, struct op *op)
{
    const struct nodes *nodes = &op->nodes;
    if ((op->code != OP_ANY_OF && op->code != OP_ONE_OF) || nodes->count < 2)
        return;
    for (uint16_t i = 0; i < nodes->at[0]->tell_count && !op->nodes.fork; i++)
        op->nodes.fork = fork_by(c, nodes, nodes->at[0]->tells[i].key);
}

static enum err cycle(struct compiler *c, const struct built *built)
{
    return err_set(c->why, ERR_SCHEMA,
                   "the schema at " STR_FMT
                   " refers to itself for the same value, which never ends; put the reference under "
                   "'properties' or 'items', or remove it",
                   STR_ARG(subschema_pointer(c->arena, built->place)));
}

static void warn_of_contradiction(struct compiler *c, const struct built *built)
{
    if (!c->warnings || built->node.types || built->node.source->type == JSON_BOOL)
        return;
    struct arena *arena = c->warnings->arena;
    problems_add(c->warnings,
                 (struct problem){.path = arena_dup(arena, subschema_pointer(c->arena, built->place)),
                                  .code = "schema",
                                  .message = STR_LIT("contradicts itself: no value can fit; is a keyword "
                                                     "of the items written on the list?"),
                                  .warning = true});
}

/* {"$ref": …} and nothing else is what it refers to, unless the way here counts: it needn't be walked
 * through. */
static bool is_reference_alone(const struct compiler *c, const struct node *node)
{
    return !c->dynamic && node->op_count == 1 && node->ops[0].code == OP_REF && node->source->len == 1;
}

static enum err visit(struct compiler *c, const struct node *node)
{
    struct built *built = built_of(node);
    if (built->state == DONE)
        return OK;
    if (built->state == OPEN)
        return cycle(c, built);
    if (c->chain == CHAIN_MAX)
        return err_set(c->why, ERR_LIMIT, "expected at most %u references in a row, found more at " STR_FMT,
                       CHAIN_MAX, STR_ARG(subschema_pointer(c->arena, built->place)));
    built->state = OPEN;
    c->chain++;
    enum err err = OK;
    for (uint16_t i = 0; i < node->op_count && !err; i++) {
        err = visit_in_place(c, &node->ops[i]);
        if (!err)
            built->node.types &= (uint8_t)types_through(&node->ops[i]);
        if (!err)
            find_fork(c, (struct op *)&node->ops[i]);
    }
    if (!err && is_reference_alone(c, node))
        built->node = *node->ops[0].node;
    gather_tells(c, &built->node);
    warn_of_contradiction(c, built);
    built->state = DONE;
    c->chain--;
    return err;
}

enum err analyse(struct compiler *c)
{
    enum err err = OK;
    for (struct built *b = c->first; b && !err; b = b->next)
        err = visit(c, &b->node);
    return err;
}

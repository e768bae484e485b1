/* Gathering by a walk over in-place ops; the graph has no cycles but through dynamic references, left out
 * here. */
#include "schema/in_place_applicators.h"

struct gather {
    struct in_place_nodes *all;
    const struct json *v; /* NULL: everything */
    struct pass *pass;
};

static void gather(struct gather *g, const struct node *node);

static bool may_apply(const struct gather *g, const struct node *branch)
{
    return !g->v || ((branch->types & type_bit_of(g->v)) && !discriminators_exclude(branch, g->v));
}

static void gather_all(struct gather *g, const struct nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        gather(g, nodes->at[i]);
}

/* Of alternatives only a sole one that may apply is sure to be meant. */
static void gather_branches(struct gather *g, const struct nodes *nodes)
{
    uint32_t fit = 0;
    for (uint32_t i = 0; i < nodes->count; i++)
        fit += may_apply(g, nodes->at[i]);
    for (uint32_t i = 0; i < nodes->count && (!g->v || fit == 1); i++)
        if (may_apply(g, nodes->at[i]))
            gather(g, nodes->at[i]);
}

static void gather_if(struct gather *g, const struct op *op)
{
    bool holds = g->v && node_accepts(g->pass, op->branch.condition, g->v, NULL);
    if (!g->v || holds)
        gather(g, op->branch.condition);
    if (op->branch.then && (!g->v || holds))
        gather(g, op->branch.then);
    if (op->branch.otherwise && (!g->v || !holds))
        gather(g, op->branch.otherwise);
}

static void gather_dependents(struct gather *g, const struct op *op)
{
    for (uint32_t i = 0; i < op->dependents.count; i++)
        if (!g->v || json_get(g->v, op->dependents.at[i].key))
            gather(g, op->dependents.at[i].node);
}

static void gather_op(struct gather *g, const struct op *op, uint32_t at)
{
    switch ((enum op_code)op->code) {
    case OP_PROPERTIES:
        g->all->props[at] = op->props;
        break;
    case OP_ITEMS:
        g->all->items[at] = op;
        break;
    case OP_REF:
        gather(g, op->node);
        break;
    case OP_ALL_OF:
        gather_all(g, &op->nodes);
        break;
    case OP_ANY_OF:
    case OP_ONE_OF:
        gather_branches(g, &op->nodes);
        break;
    case OP_IF:
        gather_if(g, op);
        break;
    case OP_DEPENDENT_SCHEMAS:
        gather_dependents(g, op);
        break;
    default:
        break;
    }
}

static void gather(struct gather *g, const struct node *node)
{
    struct in_place_nodes *all = g->all;
    if (all->count == IN_PLACE_NODES_MAX)
        return;
    uint32_t at = all->count++;
    all->nodes[at] = node;
    all->props[at] = NULL;
    all->items[at] = NULL;
    for (uint16_t i = 0; i < node->op_count; i++)
        gather_op(g, &node->ops[i], at);
}

void in_place_collect(struct in_place_nodes *all, const struct node *node)
{
    struct gather g = {.all = all};
    all->count = 0;
    gather(&g, node);
}

void in_place_collect_for(struct in_place_nodes *all, const struct node *node, const struct json *v,
                          struct pass *pass)
{
    struct gather g = {all, v, pass};
    all->count = 0;
    gather(&g, node);
}

/* A walk over in-place ops. Their graph has no cycles but through dynamic references, which are left out. */
#include "schema/schema_node.h"

struct collector {
    struct in_place_nodes *all;
    const struct json *v; /* NULL: everything */
    struct pass *pass;
};

static void collect(struct collector *c, const struct node *node);

static bool may_apply(struct collector *c, const struct node *branch)
{
    return !c->v || ((branch->types & type_bit_of(c->v)) && !discriminators_exclude(c->pass, branch, c->v));
}

static void collect_op(struct collector *c, const struct op *op, uint32_t at)
{
    uint32_t possible = 0;
    bool holds;
    switch ((enum op_code)op->code) {
    case OP_PROPERTIES:
        c->all->props[at] = op->props;
        break;
    case OP_ITEMS:
        c->all->items[at] = op;
        break;
    case OP_REF:
        collect(c, op->node);
        break;
    case OP_ALL_OF:
        for (uint32_t i = 0; i < op->nodes.count; i++)
            collect(c, op->nodes.at[i]);
        break;
    case OP_ANY_OF:
    case OP_ONE_OF: /* for a value, only a branch that is the only possible one is certain */
        for (uint32_t i = 0; i < op->nodes.count; i++)
            possible += may_apply(c, op->nodes.at[i]);
        for (uint32_t i = 0; i < op->nodes.count && (!c->v || possible == 1); i++)
            if (may_apply(c, op->nodes.at[i]))
                collect(c, op->nodes.at[i]);
        break;
    case OP_IF:
        holds = c->v && node_accepts(c->pass, op->branch.condition, c->v, NULL);
        if (!c->v || holds)
            collect(c, op->branch.condition);
        if (op->branch.then && (!c->v || holds))
            collect(c, op->branch.then);
        if (op->branch.otherwise && !holds)
            collect(c, op->branch.otherwise);
        break;
    case OP_DEPENDENT_SCHEMAS:
        for (uint32_t i = 0; i < op->dependents.count; i++)
            if (!c->v || json_get(c->v, op->dependents.at[i].key))
                collect(c, op->dependents.at[i].node);
        break;
    default:
        break;
    }
}

static void collect(struct collector *c, const struct node *node)
{
    struct in_place_nodes *all = c->all;
    if (all->count == IN_PLACE_NODES_MAX)
        return;
    uint32_t at = all->count++;
    all->nodes[at] = node;
    all->props[at] = NULL;
    all->items[at] = NULL;
    for (uint16_t i = 0; i < node->op_count; i++)
        collect_op(c, &node->ops[i], at);
}

void in_place_collect(struct in_place_nodes *all, const struct node *node, const struct json *v,
                      struct pass *pass)
{
    struct collector c = {all, v, pass};
    all->count = 0;
    collect(&c, node);
}

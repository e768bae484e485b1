/*
 * The collecting pass: walks what the boolean pass rejected and asks the same
 * checks, so that it finds every problem and reports no valid value.
 */
#include "schema/explain.h"

#include "schema/evaluated_set.h"

#define EXPLAIN_MAX_STEPS                                                                                    \
    60000u /* of SCHEMA_MAX_STEPS, to find problems in what was judged: none is found then, not refused */

static void explain_node(struct explain_ctx *e, const struct node *node, const struct json *v,
                         const struct location *location);

static bool is_never(const struct node *node)
{
    return node->source->type == JSON_BOOL && !node->source->truth;
}

static void explain_member(struct explain_ctx *e, const struct props *props, const struct json_member *m,
                           const struct location *location)
{
    const struct prop *p = props_find(props, m->key);
    bool described = p && p->node;
    if (described)
        explain_node(e, p->node, &m->value, location);
    for (uint32_t i = 0; i < props->pattern_count; i++)
        if (pass_matches(&e->pass, props->patterns[i].pattern, m->key)) {
            described = true;
            explain_node(e, props->patterns[i].node, &m->value, location);
        }
    if (described || !props->rest)
        return;
    if (!is_never(props->rest)) {
        explain_node(e, props->rest, &m->value, location);
        return;
    }
    misplaced_explain_unknown(e, m->key, location);
}

static struct location step_to(const struct location *location, const struct json_member *m)
{
    return (struct location){location, m->key.at ? m->key : STR_LIT(""), 0};
}

static void explain_properties(struct explain_ctx *e, const struct op *op, const struct json *v,
                               const struct location *location)
{
    const struct props *props = op->props;
    pass_spend(&e->pass, STEPS_OF_PLACES(props->count + v->len));
    for (uint32_t i = 0; i < props->count && !e->pass.too_complex; i++)
        if (props->list[i].required && !json_get(v, props->list[i].key))
            misplaced_explain_missing(e, props->list[i].key, props->list[i].node, location);
    for (uint32_t i = 0; i < v->len && !e->pass.too_complex; i++) {
        struct location at = step_to(location, &v->members[i]);
        explain_member(e, props, &v->members[i], &at);
    }
}

static void explain_names(struct explain_ctx *e, const struct op *op, const struct json *v,
                          const struct location *location)
{
    for (uint32_t i = 0; i < v->len && !e->pass.too_complex; i++) {
        struct json name = member_name(&v->members[i]);
        if (node_accepts(&e->pass, op->node, &name, NULL))
            continue;
        struct problems found, *outer = e->problems;
        problems_init(&found, e->arena);
        e->problems = &found;
        explain_node(e, op->node, &name, NULL);
        e->problems = outer;
        struct str reason = found.count ? found.list[0].message : STR_LIT("it is not allowed");
        struct location at = step_to(location, &v->members[i]);
        message_add(e, &at,
                    (struct problem){
                        .code = "propertyNames",
                        .message = arena_printf(e->arena, "invalid field name: " STR_FMT, STR_ARG(reason)),
                        .suggestion = found.count ? found.list[0].suggestion : STR_NONE});
    }
}

static void explain_dependents(struct explain_ctx *e, const struct op *op, const struct json *v,
                               const struct location *location)
{
    pass_spend(&e->pass, op->dependents.count);
    for (uint32_t i = 0; i < op->dependents.count && !e->pass.too_complex; i++) {
        const struct dependent *d = &op->dependents.at[i];
        if (!json_get(v, d->key))
            continue;
        for (uint32_t k = 0; k < d->need_count; k++)
            if (!json_get(v, d->needs[k]))
                message_missing(e, d->needs[k], NULL, d->key, STR_NONE, location);
        if (d->node)
            explain_node(e, d->node, v, location);
    }
}

/* A `not` of values, types or fields has a sentence of its own. */
static void explain_not(struct explain_ctx *e, const struct op *op, const struct json *v,
                        const struct location *location)
{
    const struct node *node = op->node;
    const struct op *only = node->op_count == 1 ? &node->ops[0] : NULL;
    struct buf out = buf_in(e->arena);
    if (only && only->code == OP_CHOICES) {
        buf_text(&out, "must not be ");
        buf_str(&out, message_quote(e->arena, v));
    } else if (only && only->code == OP_PROPERTIES && only->props->required == only->props->count) {
        buf_text(&out, "must not have ");
        for (uint32_t i = 0; i < only->props->count; i++)
            buf_printf(&out, "%s'" STR_FMT "'", i > 0 ? " and " : "", STR_ARG(only->props->list[i].key));
        buf_text(&out, only->props->count > 1 ? " together" : "");
    } else if (!node->op_count && node->types != TYPES_ANY) {
        buf_text(&out, "must not be ");
        message_put_types(&out, node->types);
        buf_printf(&out, ", got " STR_FMT, STR_ARG(message_quote(e->arena, v)));
    } else {
        buf_printf(&out, "must not match the schema's 'not', got " STR_FMT,
                   STR_ARG(message_quote(e->arena, v)));
    }
    message_add(e, location, (struct problem){.code = "not", .message = buf_view(&out)});
}

static void explain_leftover(struct explain_ctx *e, const struct op *op, const struct json *v, uint32_t at,
                             const struct location *location)
{
    bool item = v->type == JSON_ARRAY;
    struct location here =
        item ? (struct location){location, STR_NONE, at} : step_to(location, &v->members[at]);
    const struct json *child = item ? &v->items[at] : &v->members[at].value;
    if (item || !is_never(op->node)) {
        explain_node(e, op->node, child, &here);
        return;
    }
    misplaced_explain_unknown(e, v->members[at].key, &here);
}

/* Only if all else fits: a failed neighbour evaluates nothing, and all its fields would look unknown. */
static void explain_unevaluated(struct explain_ctx *e, const struct node *node, uint16_t at,
                                const struct json *v, const struct location *location)
{
    struct evaluated_set evaluated;
    evaluated_set_init(&evaluated, v->len);
    unsigned type = type_bit_of(v);
    bool rest = true;
    for (uint16_t i = 0; i < at && rest; i++)
        rest = !(node->ops[i].applies & type) || op_accepts(&e->pass, &node->ops[i], v, &evaluated);
    const struct op *op = &node->ops[at];
    for (uint32_t i = 0; rest && i < v->len && !e->pass.too_complex; i++)
        if (!evaluated_set_has(&evaluated, i))
            explain_leftover(e, op, v, i, location);
    evaluated_set_clear(&evaluated);
}

/* Ops that only lead to other nodes. They are not asked first whether they fit, as that would evaluate
 * everything below once for each level above it. Returns false for any other op. */
static bool explain_children(struct explain_ctx *e, const struct op *op, const struct json *v,
                             const struct location *location)
{
    switch ((enum op_code)op->code) {
    case OP_PROPERTIES:
        explain_properties(e, op, v, location);
        return true;
    case OP_ITEMS:
        pass_spend(&e->pass, STEPS_OF_PLACES(v->len));
        for (uint32_t i = 0; i < v->len && !e->pass.too_complex; i++)
            if (op_item_node(op, i))
                explain_node(e, op_item_node(op, i), &v->items[i], &(struct location){location, STR_NONE, i});
        return true;
    case OP_REF:
        explain_node(e, op->node, v, location);
        return true;
    case OP_DYNAMIC_REF:
        explain_node(e, op_dynamic_target(&e->pass, op), v, location);
        return true;
    case OP_ALL_OF:
        for (uint32_t i = 0; i < op->nodes.count; i++)
            explain_node(e, op->nodes.at[i], v, location);
        return true;
    case OP_IF: {
        bool holds = node_accepts(&e->pass, op->branch.condition, v, NULL);
        const struct node *node = holds ? op->branch.then : op->branch.otherwise;
        if (node)
            explain_node(e, node, v, location);
        return true;
    }
    default:
        return false;
    }
}

static void explain_failed_op(struct explain_ctx *e, const struct op *op, const struct json *v,
                              const struct location *location)
{
    switch ((enum op_code)op->code) {
    case OP_NAMES:
        explain_names(e, op, v, location);
        break;
    case OP_DEPENDENT_REQUIRED:
    case OP_DEPENDENT_SCHEMAS:
        explain_dependents(e, op, v, location);
        break;
    case OP_ANY_OF:
    case OP_ONE_OF:
        anyof_explain(e, op, v, location);
        break;
    case OP_NOT:
        explain_not(e, op, v, location);
        break;
    default:
        message_op(e, op, v, location);
    }
}

static void explain_ops(struct explain_ctx *e, const struct node *node, const struct json *v,
                        const struct location *location)
{
    unsigned type = type_bit_of(v);
    for (uint16_t i = 0; i < node->op_count && !e->pass.too_complex; i++) {
        const struct op *op = &node->ops[i];
        if (!(op->applies & type))
            continue;
        if (op->code == OP_UNEVALUATED_ITEMS || op->code == OP_UNEVALUATED_PROPERTIES)
            explain_unevaluated(e, node, i, v, location);
        else if (!explain_children(e, op, v, location) && !op_accepts(&e->pass, op, v, NULL))
            explain_failed_op(e, op, v, location);
    }
}

/* A description beside a reference holds for the target, unless that has its own. */
static void explain_node(struct explain_ctx *e, const struct node *node, const struct json *v,
                         const struct location *location)
{
    const struct node *outer_node = e->node;
    const struct location *outer_location = e->location;
    if (e->pass.too_complex)
        return;
    if (!e->node || location != e->location || node->description.len) {
        e->node = node;
        e->location = location;
    }
    if (!(node->types & type_bit_of(v))) {
        /* A wrong type among a few allowed values is explained by the values. */
        const struct op *first = node->op_count ? &node->ops[0] : NULL;
        if (!node->types)
            message_nothing_fits(e, node, v, location);
        else if (first && first->code == OP_CHOICES && (first->applies & type_bit_of(v)))
            message_op(e, first, v, location);
        else
            message_type(e, node, NULL, v, location);
    } else if (node->op_count && e->pass.frames < SCHEMA_MAX_FRAMES && pass_spend(&e->pass, 1)) {
        struct scope here;
        const struct scope *outer = pass_enter(&e->pass, node, &here);
        struct object_scope *outer_object = e->object;
        struct object_scope object = {outer_object, node, v, location, NULL};
        if (v->type == JSON_OBJECT && !(outer_object && outer_object->v == v))
            e->object = &object;
        explain_ops(e, node, v, location);
        e->object = outer_object;
        pass_leave(&e->pass, outer);
    }
    e->node = outer_node;
    e->location = outer_location;
}

enum schema_validity schema_explain(const struct schema *schema, const struct json *instance,
                                    struct problems *problems, struct schema_work *work)
{
    struct pass pass = pass_begin(schema, work);
    bool ok = node_accepts(&pass, schema->root, instance, NULL);
    if (pass.too_complex) {
        struct str message = arena_printf(
            problems->arena, "could not be checked: %s; send less, or a simpler value", pass.too_complex);
        problems_add(problems, (struct problem){.code = "too_complex", .message = message});
        return SCHEMA_TOO_COMPLEX;
    }
    bool local = !ok && pass.remarks.local_times;
    if (ok || (local && node_accepts_local_times(&pass, schema->root, instance)))
        return SCHEMA_VALID;
    struct explain_ctx e = {.pass = pass_begin(schema, NULL),
                            .problems = problems,
                            .arena = problems->arena,
                            .explain_node = explain_node};
    e.pass.local_times = local;
    e.pass.own.steps = SCHEMA_MAX_STEPS - EXPLAIN_MAX_STEPS;
    size_t before = problems->errors + problems->more;
    explain_node(&e, schema->root, instance, NULL);
    if (e.pass.too_complex && problems->errors + problems->more > before) {
        problems->more++;
        problems->incomplete = true;
    }
    if (problems->errors + problems->more == before)
        problems_add(problems,
                     (struct problem){.code = "schema",
                                      .message = STR_LIT("does not match the schema; compare it with "
                                                         "the schema")});
    return SCHEMA_INVALID;
}

/*
 * The collecting pass: walks what the boolean pass rejected and asks the same
 * checks, so that it finds every problem and reports no valid value.
 *
 * Which alternative of an anyOf or oneOf was meant? By type, by discriminator,
 * by closeness, in this order. The problems of that alternative are reported,
 * or one problem for all of them if they differ in one thing.
 */
#include "schema/explain.h"

#include "json/write.h"
#include "schema/shape.h"

/* Adds the problems of v by the node; v may also be valid. */
static void explain_node(struct explain_ctx *e, const struct node *node, const struct json *v,
                         const struct location *location);

/* ---- anyOf, oneOf ---- */

#define BRANCHES_MAX    32u /* alternatives compared */
#define STEPS_TO_SELECT 40u /* and one for each alternative */
#define GUESSES_MAX     2u  /* nesting of alternatives that are tried */

struct branches {
    const struct node *at[BRANCHES_MAX];
    struct problems found[BRANCHES_MAX];
    uint32_t count;
};

static bool explain_values(struct explain_ctx *e, const struct branches *b, const struct nodes *nodes,
                           const struct json *v, const struct location *location)
{
    const struct choices *lists[BRANCHES_MAX];
    unsigned others = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct node *node = b->at[i];
        if (node->op_count != 1 || node->ops[0].code != OP_CHOICES)
            return false;
        lists[i] = &node->ops[0].choices;
    }
    for (uint32_t i = 0; i < nodes->count; i++)
        if (!(nodes->at[i]->types & type_bit_of(v)))
            others |= nodes->at[i]->types;
    message_choices(e, lists, b->count, others, v, location);
    return true;
}

/* By a discriminator of every alternative. True if it is wrong itself, and reported; else only the
 * alternatives it leaves remain. */
static bool explain_discriminator(struct explain_ctx *e, struct branches *b, const struct json *v,
                                  const struct location *location)
{
    const struct choices *lists[BRANCHES_MAX];
    const uint32_t count = b->count;
    uint32_t with = 0, kept = 0;
    struct str key = STR_NONE;
    for (uint16_t i = 0; i < b->at[0]->discriminator_count && with < count; i++) {
        key = b->at[0]->discriminators[i].key;
        for (with = 0; with < count && (lists[with] = discriminator_choices(b->at[with], key));)
            with++;
    }
    if (with < count || v->type != JSON_OBJECT)
        return false;
    const struct json *value = json_get(v, key);
    if (!value) {
        struct buf out = buf_in(e->arena); /* ": a|b" of all alternatives */
        for (uint32_t i = 0; i < count && i < SHAPE_CHOICES_MAX; i++)
            for (uint32_t k = 0; k < lists[i]->count && out.len < SHAPE_CHOICES_MAX_BYTES; k++) {
                buf_text(&out, out.len ? "|" : ": ");
                shape_put_value(&out, lists[i]->at[k]);
            }
        message_missing(e, key, NULL, STR_NONE, buf_view(&out), location);
        return true;
    }
    for (uint32_t i = 0; i < count; i++)
        if (choices_contain(&e->pass, lists[i], value))
            b->at[kept++] = b->at[i];
    b->count = kept;
    if (kept)
        return false;
    struct location at = {location, key, 0};
    message_choices(e, lists, count, 0, value, &at);
    return true;
}

/* The problems of v by one node, apart from those that are reported. */
static struct problems find_problems(struct explain_ctx *e, const struct node *node, const struct json *v,
                                     const struct location *location)
{
    struct problems found, *outer = e->problems;
    problems_init(&found, e->arena);
    e->problems = &found;
    explain_node(e, node, v, location);
    e->problems = outer;
    return found;
}
/* A wrong set of fields weighs more against an alternative than a wrong value in the right field. */
static size_t distance(const struct problems *found)
{
    size_t sum = 4 * found->more;
    for (size_t i = 0; i < found->count; i++) {
        const char *code = found->list[i].code;
        bool fields = strcmp(code, "missing") == 0 || strcmp(code, "unknown_field") == 0;
        bool kind = strcmp(code, "const") == 0 || strcmp(code, "type") == 0;
        sum += fields ? 4 : kind ? 3 : 2;
    }
    return found->count ? sum : SIZE_MAX;
}

static const struct props *props_of(const struct node *node)
{
    for (uint16_t i = 0; i < node->op_count; i++)
        if (node->ops[i].code == OP_PROPERTIES)
            return node->ops[i].props;
    return NULL;
}

static void put_required(struct buf *out, const struct node *node)
{
    const struct props *props = props_of(node);
    const char *before = "";
    for (uint32_t i = 0; props && i < props->count; i++)
        if (props->list[i].required) {
            buf_printf(out, "%s'" STR_FMT "'", before, STR_ARG(props->list[i].key));
            before = " with ";
        }
}

/* True if the only problem of each alternative is that all its required fields are missing; it is reported.
 */
static bool explain_fields(struct explain_ctx *e, const struct branches *b, const struct op *op,
                           const struct location *location)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const struct props *props = props_of(b->at[i]);
        const struct problems *found = &b->found[i];
        if (!props || !props->required || found->more || found->count != props->required)
            return false;
        for (size_t k = 0; k < found->count; k++)
            if (strcmp(found->list[k].code, "missing") != 0)
                return false;
    }
    struct buf out = buf_in(e->arena);
    buf_text(&out, op->code == OP_ONE_OF ? "exactly one is required: " : "at least one is required: ");
    for (uint32_t i = 0; i < b->count; i++) { /* "'contact_id', 'contact_query' or 'group_query'" */
        buf_text(&out, i == 0 ? "" : i + 1 == b->count ? " or " : ", ");
        put_required(&out, b->at[i]);
    }
    message_add(e, location, (struct problem){.code = "missing", .message = buf_view(&out)});
    return true;
}

/* True if more than one alternative accepts v, and that is reported. */
static bool explain_too_many(struct explain_ctx *e, const struct op *op, const struct json *v,
                             const struct location *location)
{
    struct buf out = buf_in(e->arena);
    uint32_t fit = 0;
    if (op->code != OP_ONE_OF)
        return false;
    buf_text(&out, "must fit exactly one alternative, but fits ");
    for (uint32_t i = 0; i < op->nodes.count; i++)
        if (node_accepts(&e->pass, op->nodes.at[i], v)) {
            buf_text(&out, fit++ ? " and " : "");
            struct str title = json_str(json_get_text(op->nodes.at[i]->source, "title"));
            const struct props *props = props_of(op->nodes.at[i]);
            if (title.len)
                buf_printf(&out, "'" STR_FMT "'", STR_ARG(title));
            else if (v->type == JSON_OBJECT && props && props->required)
                put_required(&out, op->nodes.at[i]);
            else
                buf_printf(&out, "alternative %u", i + 1);
        }
    if (fit < 2)
        return false;
    buf_text(&out, " — keep one");
    message_add(e, location, (struct problem){.code = "oneOf", .message = buf_view(&out)});
    return true;
}

static void explain_branches(struct explain_ctx *e, const struct op *op, const struct json *v,
                             const struct location *location)
{
    if (!pass_spend(&e->pass, STEPS_TO_SELECT + op->nodes.count))
        return;
    if (explain_too_many(e, op, v, location))
        return;
    struct branches *b = arena_alloc(e->arena, sizeof(*b)); /* of which `count` says how much is written */
    b->count = 0;
    for (uint32_t i = 0; i < op->nodes.count && b->count < BRANCHES_MAX; i++)
        if (op->nodes.at[i]->types & type_bit_of(v))
            b->at[b->count++] = op->nodes.at[i];
    if (!b->count) {
        message_type(e, NULL, &op->nodes, v, location);
        return;
    }
    if (explain_values(e, b, &op->nodes, v, location) || explain_discriminator(e, b, v, location))
        return;
    /* The only alternative whose discriminators the object has. */
    const struct node *match = NULL;
    uint32_t matches = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (v->type == JSON_OBJECT && b->at[i]->discriminator_count &&
            discriminators_match(&e->pass, b->at[i], v)) {
            match = b->at[i];
            matches++;
        }
    if (matches == 1 || b->count == 1 || e->guesses == GUESSES_MAX) {
        explain_node(e, matches == 1 ? match : b->at[0], v, location);
        return;
    }
    e->guesses++;
    for (uint32_t i = 0; i < b->count; i++)
        b->found[i] = find_problems(e, b->at[i], v, location);
    e->guesses--;
    if (!explain_fields(e, b, op, location)) {
        const struct problems *found = &b->found[0];
        for (uint32_t i = 1; i < b->count; i++)
            if (distance(&b->found[i]) < distance(found))
                found = &b->found[i];
        for (size_t i = 0; i < found->count; i++)
            problems_add_clean(e->problems, &found->list[i]);
        e->problems->more += found->more;
    }
}

/* ---- the walk ---- */

#define EXPLAIN_MAX_STEPS                                                                                    \
    60000u /* of SCHEMA_MAX_STEPS, to find problems in what was judged: none is found then, not refused */

/* A member that only a schema for the rest describes: `false` makes its name an unknown one. */
static void explain_leftover(struct explain_ctx *e, const struct node *rest, struct str key,
                             const struct json *value, const struct location *location)
{
    if (json_is_false(rest->source))
        names_explain_undeclared(e, key, false, location);
    else
        explain_node(e, rest, value, location);
}

static void explain_properties(struct explain_ctx *e, const struct op *op, const struct json *v,
                               const struct location *location)
{
    const struct props *props = op->props;
    pass_spend(&e->pass, STEPS_OF_PLACES(props->count + v->len));
    for (uint32_t i = 0; i < props->count && !e->pass.too_complex; i++)
        if (props->list[i].required && !json_get(v, props->list[i].key))
            names_explain_missing(e, props->list[i].key, props->list[i].node, location);
    for (uint32_t i = 0; i < v->len && !e->pass.too_complex; i++) {
        const struct json_member *m = &v->members[i];
        struct location at = location_of_member(location, m->key);
        struct props_cursor cursor = {0};
        const struct node *next;
        at.index = props_find(props, m->key) ? 0 : LOCATION_FREE;
        while ((next = props_next_node(&e->pass, props, m->key, &cursor)))
            if (next == props->rest)
                explain_leftover(e, next, m->key, &m->value, &at);
            else
                explain_node(e, next, &m->value, &at);
    }
}

static void explain_names(struct explain_ctx *e, const struct op *op, const struct json *v,
                          const struct location *location)
{
    for (uint32_t i = 0; i < v->len && !e->pass.too_complex; i++) {
        struct json name = member_name(&v->members[i]);
        if (node_accepts(&e->pass, op->node, &name))
            continue;
        struct problems found = find_problems(e, op->node, &name, NULL);
        struct str reason = found.count ? found.list[0].message : STR_LIT("it is not allowed");
        struct location at = location_of_member(location, v->members[i].key);
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
        for (uint32_t k = 0; k < d->need_count && !e->pass.too_complex; k++)
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
    const struct node *leftover = node->ops[at].node;
    for (uint32_t i = 0; rest && i < v->len && !e->pass.too_complex; i++) {
        if (evaluated_set_has(&evaluated, i))
            continue;
        if (v->type == JSON_ARRAY) {
            explain_node(e, leftover, &v->items[i], &(struct location){location, STR_NONE, i});
            continue;
        }
        struct location here = location_of_member(location, v->members[i].key);
        here.index = LOCATION_FREE;
        explain_leftover(e, leftover, v->members[i].key, &v->members[i].value, &here);
    }
    evaluated_set_clear(&evaluated);
}

static void explain_op(struct explain_ctx *e, const struct op *op, const struct json *v,
                       const struct location *location)
{
    /* Ops that only lead to other nodes are not asked first whether they fit, as that would evaluate
     * everything below once for each level above it. */
    switch ((enum op_code)op->code) {
    case OP_PROPERTIES:
        explain_properties(e, op, v, location);
        return;
    case OP_ITEMS:
        pass_spend(&e->pass, STEPS_OF_PLACES(v->len));
        for (uint32_t i = 0; i < v->len && !e->pass.too_complex; i++)
            if (op_item_node(op, i))
                explain_node(e, op_item_node(op, i), &v->items[i], &(struct location){location, STR_NONE, i});
        return;
    case OP_REF:
        explain_node(e, op->node, v, location);
        return;
    case OP_DYNAMIC_REF:
        explain_node(e, op_dynamic_target(&e->pass, op), v, location);
        return;
    case OP_ALL_OF:
        for (uint32_t i = 0; i < op->nodes.count; i++)
            explain_node(e, op->nodes.at[i], v, location);
        return;
    case OP_IF: {
        bool holds = node_accepts(&e->pass, op->branch.condition, v);
        const struct node *node = holds ? op->branch.then : op->branch.otherwise;
        if (node)
            explain_node(e, node, v, location);
        return;
    }
    default:
        break;
    }
    if (op_accepts(&e->pass, op, v, NULL))
        return;
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
        explain_branches(e, op, v, location);
        break;
    case OP_NOT:
        explain_not(e, op, v, location);
        break;
    default:
        message_op(e, op, v, location);
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
        for (uint16_t i = 0; i < node->op_count && !e->pass.too_complex; i++) {
            const struct op *op = &node->ops[i];
            if (!(op->applies & type_bit_of(v)))
                continue;
            if (op->code == OP_UNEVALUATED_ITEMS || op->code == OP_UNEVALUATED_PROPERTIES)
                explain_unevaluated(e, node, i, v, location);
            else
                explain_op(e, op, v, location);
        }
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
    bool ok = node_accepts(&pass, schema->root, instance);
    if (pass.too_complex) {
        struct str message = arena_printf(
            problems->arena, "could not be checked: %s; send less, or a simpler value", pass.too_complex);
        problems_add(problems, (struct problem){.code = "too_complex", .message = message});
        return SCHEMA_TOO_COMPLEX;
    }
    bool local = !ok && pass.remarks.local_times;
    if (ok || (local && node_accepts_local_times(&pass, schema->root, instance)))
        return SCHEMA_VALID;
    struct explain_ctx e = {.pass = pass_begin(schema, NULL), .problems = problems, .arena = problems->arena};
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

/*
 * The collecting pass: walks only what the boolean pass refused, and asks the
 * same checks, so that it finds every problem and none that is none.
 */
#include "schema/explain.h"

#include "schema/in_place_applicators.h"
#include "schema/evaluated_set.h"
#include "base/suggest.h"

#define NAMES_COMPARED 256u /* declared names a suggestion is looked for among */

/* ---- objects ---- */

struct names {
    struct str *at;
    size_t count;
};

/* Declared names that the object does not use yet: only those can have been meant. */
static void add_unused(struct names *names, const struct props *props, const struct json *v)
{
    for (uint32_t i = 0; i < props->declared && names->count < NAMES_COMPARED; i++)
        if (!json_get(v, props->list[i].key))
            names->at[names->count++] = props->list[i].key;
}

static struct str closest(struct explain_ctx *e, const struct props *props, const struct json *v,
                          struct str key)
{
    if (problems_full(e->problems))
        return STR_NONE;
    struct names names = {arena_alloc(e->arena, props->declared * sizeof(struct str)), 0};
    add_unused(&names, props, v);
    return suggest_closest(key, names.at, names.count);
}

static bool is_never(const struct node *node)
{
    return node->source->type == JSON_BOOL && !node->source->truth;
}

static void explain_patterns(struct explain_ctx *e, const struct props *props, const struct json_member *m,
                             bool *described, const struct location *path)
{
    for (uint32_t i = 0; i < props->pattern_count; i++)
        if (pass_matches(&e->pass, props->patterns[i].pattern, m->key)) {
            *described = true;
            explain_node(e, props->patterns[i].node, &m->value, path);
        }
}

static void explain_member(struct explain_ctx *e, const struct props *props, const struct json *v,
                           const struct json_member *m, const struct location *path)
{
    const struct prop *p = props_find(props, m->key);
    bool described = p && p->node;
    if (described)
        explain_node(e, p->node, &m->value, path);
    explain_patterns(e, props, m, &described, path);
    if (described || !props->rest)
        return;
    if (is_never(props->rest))
        message_unknown_field(e, closest(e, props, v, m->key), false, path);
    else
        explain_node(e, props->rest, &m->value, path);
}

static struct location step_to(const struct location *path, const struct json_member *m)
{
    return (struct location){path, m->key.at ? m->key : STR_LIT(""), 0};
}

/* What an open object was given instead of a required field: a name that is not declared and close to it. A
 * closed one refuses that name, and says so there. */
static struct str sent_as(struct explain_ctx *e, const struct props *props, const struct json *v,
                          struct str missing)
{
    if ((props->rest && is_never(props->rest)) || problems_full(e->problems))
        return STR_NONE;
    size_t room = v->len < NAMES_COMPARED ? v->len : NAMES_COMPARED;
    struct names names = {arena_alloc(e->arena, room * sizeof(struct str)), 0};
    for (uint32_t i = 0; i < v->len && names.count < room; i++)
        if (!props_find(props, v->members[i].key))
            names.at[names.count++] = v->members[i].key;
    return suggest_closest(missing, names.at, names.count);
}

static void explain_properties(struct explain_ctx *e, const struct op *op, const struct json *v,
                               const struct location *path)
{
    const struct props *props = op->props;
    for (uint32_t i = 0; i < props->count; i++)
        if (props->list[i].required && !json_get(v, props->list[i].key))
            message_missing(e, props->list[i].key, props->list[i].node, STR_NONE,
                            sent_as(e, props, v, props->list[i].key), path);
    for (uint32_t i = 0; i < v->len; i++) {
        struct location at = step_to(path, &v->members[i]);
        explain_member(e, props, v, &v->members[i], &at);
    }
}

static void explain_names(struct explain_ctx *e, const struct op *op, const struct json *v,
                          const struct location *path)
{
    for (uint32_t i = 0; i < v->len; i++) {
        struct str key = v->members[i].key;
        struct json name = {.type = JSON_STRING, .len = (uint32_t)key.len, .text = key.at ? key.at : ""};
        if (node_accepts(&e->pass, op->node, &name, NULL))
            continue;
        struct problems found, *kept = e->problems;
        problems_init(&found, e->arena);
        e->problems = &found;
        explain_node(e, op->node, &name, NULL);
        e->problems = kept;
        struct str reason = found.count ? found.list[0].message : STR_LIT("it is not allowed");
        struct location at = step_to(path, &v->members[i]);
        message_add(e, &at,
                    (struct problem){.code = "propertyNames",
                                     .message = arena_printf(e->arena, "the field's name is wrong: " STR_FMT,
                                                             STR_ARG(reason)),
                                     .suggestion = found.count ? found.list[0].suggestion : STR_NONE});
    }
}

static void explain_dependent_required(struct explain_ctx *e, const struct op *op, const struct json *v,
                                       const struct location *path)
{
    for (uint32_t i = 0; i < op->dependents.count; i++) {
        const struct dependent *d = &op->dependents.at[i];
        for (uint32_t k = 0; json_get(v, d->key) && k < d->need_count; k++)
            if (!json_get(v, d->needs[k]))
                message_missing(e, d->needs[k], NULL, d->key, STR_NONE, path);
    }
}

static void explain_dependent_schemas(struct explain_ctx *e, const struct op *op, const struct json *v,
                                      const struct location *path)
{
    for (uint32_t i = 0; i < op->dependents.count; i++)
        if (json_get(v, op->dependents.at[i].key))
            explain_node(e, op->dependents.at[i].node, v, path);
}

/* ---- arrays ---- */

static void explain_items(struct explain_ctx *e, const struct op *op, const struct json *v,
                          const struct location *path)
{
    for (uint32_t i = 0; i < v->len; i++) {
        const struct node *node = i < op->items.prefix.count ? op->items.prefix.at[i] : op->items.rest;
        struct location at = {path, STR_NONE, i};
        if (node)
            explain_node(e, node, &v->items[i], &at);
    }
}

/* ---- in place ---- */

static void explain_ref(struct explain_ctx *e, const struct op *op, const struct json *v,
                        const struct location *path)
{
    explain_node(e, op->node, v, path);
}

static void explain_dynamic_ref(struct explain_ctx *e, const struct op *op, const struct json *v,
                                const struct location *path)
{
    explain_node(e, op_dynamic_target(&e->pass, op), v, path);
}

static void explain_all_of(struct explain_ctx *e, const struct op *op, const struct json *v,
                           const struct location *path)
{
    for (uint32_t i = 0; i < op->nodes.count; i++)
        explain_node(e, op->nodes.at[i], v, path);
}

static void explain_if(struct explain_ctx *e, const struct op *op, const struct json *v,
                       const struct location *path)
{
    bool holds = node_accepts(&e->pass, op->branch.condition, v, NULL);
    const struct node *node = holds ? op->branch.then : op->branch.otherwise;
    if (node)
        explain_node(e, node, v, path);
}

/* `not` of a short list of values, of types or of fields can be value; anything else only as such. */
static void explain_not(struct explain_ctx *e, const struct op *op, const struct json *v,
                        const struct location *path)
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
        buf_printf(&out, "must not fit what the schema's 'not' describes, got " STR_FMT,
                   STR_ARG(message_quote(e->arena, v)));
    }
    message_add(e, path, (struct problem){.code = "not", .message = buf_view(&out)});
}

/* ---- unevaluated ---- */

static void explain_leftover(struct explain_ctx *e, const struct node *node, const struct op *op,
                             const struct json *v, uint32_t at, const struct location *path)
{
    bool item = v->type == JSON_ARRAY;
    struct location here = item ? (struct location){path, STR_NONE, at} : step_to(path, &v->members[at]);
    const struct json *child = item ? &v->items[at] : &v->members[at].value;
    if (item || !is_never(op->node)) {
        explain_node(e, op->node, child, &here);
        return;
    }
    struct in_place_nodes all = {.count = 0};
    struct names names = {ARENA_ARRAY(e->arena, struct str, NAMES_COMPARED), 0};
    in_place_collect(&all, node);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.props[i])
            add_unused(&names, all.props[i], v);
    message_unknown_field(e, suggest_closest(v->members[at].key, names.at, names.count), false, &here);
}

/* Only where all else fits: a failed neighbour evaluates nothing, and its fields would all look unknown. */
static void explain_unevaluated(struct explain_ctx *e, const struct node *node, uint16_t at,
                                const struct json *v, const struct location *path)
{
    struct evaluated_set evaluated;
    evaluated_set_init(&evaluated, v->len);
    unsigned type = type_bit_of(v);
    bool rest = true;
    for (uint16_t i = 0; i < at && rest; i++)
        rest = !(node->ops[i].applies & type) || op_accepts(&e->pass, &node->ops[i], v, &evaluated);
    const struct op *op = &node->ops[at];
    for (uint32_t i = 0; rest && i < v->len; i++)
        if (!evaluated_set_has(&evaluated, i))
            explain_leftover(e, node, op, v, i, path);
    evaluated_set_clear(&evaluated);
}

/* ---- the walk ---- */

typedef void explain_function(struct explain_ctx *e, const struct op *op, const struct json *v,
                              const struct location *path);

static explain_function *const walks[OP_CODES] = {
    [OP_PROPERTIES] = explain_properties,
    [OP_NAMES] = explain_names,
    [OP_DEPENDENT_REQUIRED] = explain_dependent_required,
    [OP_DEPENDENT_SCHEMAS] = explain_dependent_schemas,
    [OP_ITEMS] = explain_items,
    [OP_REF] = explain_ref,
    [OP_DYNAMIC_REF] = explain_dynamic_ref,
    [OP_ALL_OF] = explain_all_of,
    [OP_ANY_OF] = anyof_explain,
    [OP_ONE_OF] = anyof_explain,
    [OP_NOT] = explain_not,
    [OP_IF] = explain_if,
};

/* A wrong type among a few allowed values is best told by the values. */
static void explain_type(struct explain_ctx *e, const struct node *node, const struct json *v,
                         const struct location *path)
{
    const struct op *first = node->op_count ? &node->ops[0] : NULL;
    if (!node->types)
        message_nothing_fits(e, node, v, path);
    else if (first && first->code == OP_CHOICES && (first->applies & type_bit_of(v)))
        message_op(e, first, v, path);
    else
        say_type(e, node->types, v, path);
}

/* These only lead on to other nodes and add nothing themselves where all of those fit: asking first whether
 * they do would look at everything below once for each level above it. */
static bool is_walked(const struct op *op)
{
    return op->code == OP_PROPERTIES || op->code == OP_ITEMS || op->code == OP_REF ||
           op->code == OP_DYNAMIC_REF || op->code == OP_ALL_OF || op->code == OP_IF;
}

static void explain_ops(struct explain_ctx *e, const struct node *node, const struct json *v,
                        const struct location *path)
{
    unsigned type = type_bit_of(v);
    for (uint16_t i = 0; i < node->op_count && !e->pass.too_complex; i++) {
        const struct op *op = &node->ops[i];
        if (!(op->applies & type))
            continue;
        if (op->code == OP_UNEVALUATED_ITEMS || op->code == OP_UNEVALUATED_PROPERTIES)
            explain_unevaluated(e, node, i, v, path);
        else if (!is_walked(op) && op_accepts(&e->pass, op, v, NULL))
            continue;
        else if (walks[op->code])
            walks[op->code](e, op, v, path);
        else
            message_op(e, op, v, path);
    }
}

static void explain_here(struct explain_ctx *e, const struct node *node, const struct json *v,
                         const struct location *path)
{
    if (!(node->types & type_bit_of(v))) {
        explain_type(e, node, v, path);
        return;
    }
    if (!node->op_count || e->pass.frames == SCHEMA_MAX_FRAMES || !pass_spend(&e->pass, 1))
        return;
    struct scope here;
    const struct scope *outer = pass_enter(&e->pass, node, &here);
    explain_ops(e, node, v, path);
    pass_leave(&e->pass, outer);
}

/* A description beside a reference holds for what it leads to, unless that has one of its own. */
void explain_node(struct explain_ctx *e, const struct node *node, const struct json *v,
                  const struct location *path)
{
    const struct node *outer_node = e->node;
    const struct location *outer_place = e->place;
    if (!e->node || path != e->place || node->description.len) {
        e->node = node;
        e->place = path;
    }
    explain_here(e, node, v, path);
    e->node = outer_node;
    e->place = outer_place;
}

static void say_too_complex(struct problems *problems, const char *reason)
{
    problems_add(problems,
                 (struct problem){.code = "too_complex",
                                  .message = arena_printf(problems->arena,
                                                          "could not be checked: %s; send less, or a "
                                                          "simpler value",
                                                          reason)});
}

enum schema_validity schema_explain(const struct schema *schema, const struct json *instance,
                                    struct problems *problems)
{
    struct pass pass = pass_begin(schema);
    bool ok = node_accepts(&pass, schema->root, instance, NULL);
    if (pass.too_complex) {
        say_too_complex(problems, pass.too_complex);
        return SCHEMA_TOO_COMPLEX;
    }
    if (ok)
        return SCHEMA_VALID;
    struct explain_ctx e = {.pass = pass_begin(schema), .problems = problems, .arena = problems->arena};
    size_t before = problems->errors + problems->more;
    explain_node(&e, schema->root, instance, NULL);
    if (problems->errors + problems->more == before)
        problems_add(problems,
                     (struct problem){.code = "schema",
                                      .message = STR_LIT("does not fit the schema, in a way too involved "
                                                         "to explain; compare it with the schema")});
    return SCHEMA_INVALID;
}

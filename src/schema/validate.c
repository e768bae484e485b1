/*
 * The boolean pass: does the instance fit? It allocates nothing, and each node
 * it enters is a step of the budget. The collecting pass (explain.c) asks the
 * same functions, so the two cannot disagree.
 */
#include "schema/schema_node.h"

#include "base/alloc.h"

/* A set of up to 256 places is on the stack, a larger one on the heap. */
void evaluated_set_init(struct evaluated_set *set, uint32_t count)
{
    memset(set, 0, sizeof(*set));
    set->words = (count + 63) / 64;
    bool is_small = set->words <= EVALUATED_SET_INLINE_WORDS;
    set->bits = is_small ? set->small : calloc(set->words, sizeof(uint64_t));
    if (!set->bits)
        alloc_failed("%u bytes for an evaluated set", set->words * 8);
}

void evaluated_set_clear(struct evaluated_set *set)
{
    if (set->bits != set->small)
        free(set->bits);
}

bool evaluated_set_has(const struct evaluated_set *set, uint32_t at)
{
    return set->bits[at / 64] >> (at % 64) & 1;
}

/* `set` may be NULL: not kept. */
static inline void evaluated_set_add(struct evaluated_set *set, uint32_t at)
{
    if (set)
        set->bits[at / 64] |= (uint64_t)1 << (at % 64);
}

/* `into` may be NULL: not kept. Both are of the same value. */
static void evaluated_set_merge(struct evaluated_set *into, const struct evaluated_set *from)
{
    for (uint32_t i = 0; into && i < from->words; i++)
        into->bits[i] |= from->bits[i];
}

#define PLAIN_NUMBER_BYTES 32u /* of a number that is compared within the step of its node */
#define TOO_MANY_STEPS     "it took more than 300000 steps"
#define TOO_MANY_FRAMES    "its subschemas nest too deeply"
#define TOO_MUCH_REGEX     "its pattern needs too much work on this text"

struct pass pass_begin(const struct schema *schema, struct schema_work *work)
{
    return (struct pass){.schema = schema, .work = work};
}

/* Ends the pass as one that gave up. */
static bool give_up(struct pass *pass, const char *reason)
{
    if (!pass->too_complex)
        pass->too_complex = reason;
    return false;
}

bool pass_spend(struct pass *pass, uint64_t steps)
{
    struct schema_work *work = pass->work ? pass->work : &pass->own;
    if (pass->too_complex || steps > SCHEMA_MAX_STEPS - work->steps)
        return give_up(pass, TOO_MANY_STEPS);
    work->steps += (uint32_t)steps;
    return true;
}

static int compare_bound(const struct bound *bound, const struct json *v)
{
    struct json_small small = json_small(v);
    if (!small.scale || !bound->small.scale)
        return json_number_cmp(v, bound->limit);
    int64_t m = small.whole * bound->small.scale, n = bound->small.whole * small.scale;
    return (m > n) - (m < n);
}

uint64_t op_count_size(const struct json *v)
{
    return v->type == JSON_STRING ? str_characters(json_str(v)) : v->len;
}

bool pass_matches(struct pass *pass, const struct pattern *pattern, struct str s)
{
    if (!pass_spend(pass, STEPS_OF_BYTES(s.len)))
        return false;
    uint32_t before = SCHEMA_MAX_STEPS - (pass->work ? pass->work : &pass->own)->steps, left = before;
    enum pattern_result result = pattern_match(pattern, s, &left);
    pass_spend(pass, before - left);
    return result == PATTERN_TOO_COMPLEX ? give_up(pass, TOO_MUCH_REGEX) : result == PATTERN_MATCH;
}

static bool node_runs_ops(struct pass *pass, const struct node *node, const struct json *v,
                          struct evaluated_set *evaluated);

/* Most nodes are one type and nothing more. */
static inline bool fits(struct pass *pass, const struct node *node, const struct json *v,
                        struct evaluated_set *evaluated)
{
    return (node->types & type_bit_of(v)) && (!node->op_count || node_runs_ops(pass, node, v, evaluated));
}

/* From `next` on, then before it: of few names most differ in length already. */
static const struct prop *find_linear(const struct props *props, struct str key, uint32_t next)
{
    for (uint32_t i = next; i < props->count; i++)
        if (str_eq(props->list[i].key, key))
            return &props->list[i];
    for (uint32_t i = 0; i < next; i++)
        if (str_eq(props->list[i].key, key))
            return &props->list[i];
    return NULL;
}

const struct prop *props_find(const struct props *props, struct str key)
{
    return props->index ? map_get(props->index, key) : find_linear(props, key, 0);
}

const struct node *props_next_node(struct pass *pass, const struct props *props, struct str key,
                                   struct props_cursor *at)
{
    const struct prop *p = at->next == 0 ? props_find(props, key) : NULL;
    at->next += at->next == 0;
    if (p && p->node) {
        at->described = true;
        return p->node;
    }
    while (at->next <= props->pattern_count) {
        const struct pattern_prop *pattern = &props->patterns[at->next++ - 1];
        if (pass_matches(pass, pattern->pattern, key)) {
            at->described = true;
            return pattern->node;
        }
    }
    bool rest = !at->described;
    at->described = true;
    return rest ? props->rest : NULL;
}

/* Models write fields in the order in which the schema declares them, so the property after the last one is
 * compared first. */
static inline const struct prop *props_find_from(const struct props *props, const struct json_member *m,
                                                 uint32_t *next)
{
    if (*next < props->count && str_eq(props->list[*next].key, m->key))
        return &props->list[(*next)++];
    const struct prop *p = props->index ? map_get(props->index, m->key) : find_linear(props, m->key, *next);
    if (p)
        *next = (uint32_t)(p - props->list) + 1;
    return p;
}

/* Every patternProperties entry that matches the name must accept the value. */
static bool patterns_accept(struct pass *pass, const struct props *props, const struct json_member *m,
                            bool *described)
{
    for (uint32_t i = 0; i < props->pattern_count; i++) {
        if (!pass_matches(pass, props->patterns[i].pattern, m->key)) {
            if (pass->too_complex)
                return false;
            continue;
        }
        *described = true;
        if (!fits(pass, props->patterns[i].node, &m->value, NULL))
            return false;
    }
    return true;
}

static bool accepts_properties(struct pass *pass, const struct op *op, const struct json *v,
                               struct evaluated_set *evaluated)
{
    const struct props *props = op->props;
    uint32_t required = 0, next = 0;
    if (v->len < props->required || !pass_spend(pass, STEPS_OF_PLACES(v->len)))
        return false;
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *m = &v->members[i];
        const struct prop *p = props_find_from(props, m, &next);
        bool described = p && p->node;
        required += p && p->required;
        if (described && !fits(pass, p->node, &m->value, NULL))
            return false;
        if (props->pattern_count && !patterns_accept(pass, props, m, &described))
            return false;
        const struct node *rest = props->rest;
        if (!described && props->declared) /* a schema for the rest that takes anything declares nothing */
            pass->remarks.undeclared |= !rest || (rest->types == TYPES_ANY && !rest->op_count);
        if (!described && rest) {
            if (!fits(pass, rest, &m->value, NULL))
                return false;
            described = true;
        }
        if (described)
            evaluated_set_add(evaluated, i);
    }
    return required == props->required;
}

static bool accepts_names(struct pass *pass, const struct op *op, const struct json *v)
{
    if (!pass_spend(pass, STEPS_OF_PLACES(v->len)))
        return false;
    for (uint32_t i = 0; i < v->len; i++) {
        struct json name = member_name(&v->members[i]);
        if (!fits(pass, op->node, &name, NULL))
            return false;
    }
    return true;
}

static bool accepts_dependents(struct pass *pass, const struct op *op, const struct json *v,
                               struct evaluated_set *evaluated)
{
    if (!pass_spend(pass, op->dependents.count))
        return false;
    for (uint32_t i = 0; i < op->dependents.count; i++) {
        const struct dependent *d = &op->dependents.at[i];
        if (!json_get(v, d->key))
            continue;
        if (!pass_spend(pass, d->need_count))
            return false;
        for (uint32_t k = 0; k < d->need_count; k++)
            if (!json_get(v, d->needs[k]))
                return false;
        if (d->node && !fits(pass, d->node, v, evaluated))
            return false;
    }
    return true;
}

static bool accepts_items(struct pass *pass, const struct op *op, const struct json *v,
                          struct evaluated_set *evaluated)
{
    if (!pass_spend(pass, STEPS_OF_PLACES(v->len)))
        return false;
    for (uint32_t i = 0; i < v->len; i++) {
        const struct node *node = op_item_node(op, i);
        if (!node)
            break;
        if (!fits(pass, node, &v->items[i], NULL))
            return false;
        evaluated_set_add(evaluated, i);
    }
    return true;
}

uint64_t op_contains_count(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated)
{
    uint64_t found = 0;
    pass_spend(pass, STEPS_OF_PLACES(v->len));
    for (uint32_t i = 0; i < v->len && !pass->too_complex; i++)
        if (fits(pass, op->contains.node, &v->items[i], NULL)) {
            found++;
            if (op->contains.evaluates)
                evaluated_set_add(evaluated, i);
        }
    return found;
}

static bool accepts_unevaluated(struct pass *pass, const struct op *op, const struct json *v,
                                struct evaluated_set *evaluated)
{
    if (!pass_spend(pass, STEPS_OF_PLACES(v->len)))
        return false;
    for (uint32_t i = 0; evaluated && i < v->len; i++) {
        if (evaluated_set_has(evaluated, i))
            continue;
        const struct json *child = v->type == JSON_ARRAY ? &v->items[i] : &v->members[i].value;
        if (!fits(pass, op->node, child, NULL))
            return false;
        evaluated_set_add(evaluated, i);
    }
    return true;
}

/* The outermost resource of the dynamic scope that has the anchor wins. */
const struct node *op_dynamic_target(struct pass *pass, const struct op *op)
{
    const struct node *target = op->dynamic.node;
    if (!op->dynamic.anchor.at)
        return target;
    for (const struct scope *s = pass->scope; s && pass_spend(pass, 1); s = s->outer) {
        const struct node *node = resource_dynamic_anchor(s->resource, op->dynamic.anchor);
        target = node ? node : target;
    }
    return target;
}

bool discriminators_match(struct pass *pass, const struct node *node, const struct json *v)
{
    if (v->type != JSON_OBJECT)
        return true;
    for (uint16_t i = 0; i < node->discriminator_count; i++) {
        const struct discriminator *d = &node->discriminators[i];
        const struct json *m = pass_spend(pass, 1) ? json_get(v, d->key) : NULL;
        if (!m || (d->choices && !choices_contain(pass, d->choices, m)))
            return false;
    }
    return true;
}

/* A branch that fails has evaluated nothing. */
static __attribute__((noinline)) bool branch_accepts_marked(struct pass *pass, const struct node *node,
                                                            const struct json *v,
                                                            struct evaluated_set *evaluated)
{
    struct evaluated_set own;
    if (!pass_spend(pass, STEPS_OF_PLACES(evaluated->words)))
        return false;
    evaluated_set_init(&own, evaluated->words * 64);
    bool ok = fits(pass, node, v, &own);
    if (ok)
        evaluated_set_merge(evaluated, &own);
    evaluated_set_clear(&own);
    return ok;
}

static inline bool branch_accepts(struct pass *pass, const struct node *node, const struct json *v,
                                  struct evaluated_set *evaluated)
{
    if (!(node->types & type_bit_of(v)) || !discriminators_match(pass, node, v))
        return false;
    return evaluated ? branch_accepts_marked(pass, node, v, evaluated) : fits(pass, node, v, NULL);
}

/* anyOf needs one branch, but all of them count for unevaluated*; oneOf needs exactly one. */
static bool accepts_branches(struct pass *pass, const struct op *op, const struct json *v,
                             struct evaluated_set *evaluated)
{
    bool one_of = op->code == OP_ONE_OF;
    uint32_t found = 0;
    const struct branch_map *map = v->type == JSON_OBJECT ? op->nodes.branch_map : NULL;
    if (map) { /* only the branch that the discriminator selects can accept */
        const struct json *value = json_get(v, map->key);
        for (uint32_t i = 0; json_is(value, JSON_STRING) && i < map->count; i++)
            if (str_eq(map->entries[i].value, json_str(value)))
                return fits(pass, map->entries[i].node, v, evaluated);
        return false;
    }
    if (!pass_spend(pass, STEPS_OF_PLACES(op->nodes.count)))
        return false;
    for (uint32_t i = 0; i < op->nodes.count && (one_of ? found < 2 : evaluated || !found); i++)
        found += branch_accepts(pass, op->nodes.at[i], v, evaluated);
    return one_of ? found == 1 : found > 0;
}

/* Of a string that is not of the format. It is noted, so that the instance is looked at again if it is
 * invalid. */
static __attribute__((noinline)) bool lacks_zone(struct pass *pass, const struct op *op, const struct json *v)
{
    if (!pass->schema->local_times || !op->format->check_local || !op->format->check_local(json_str(v)))
        return false;
    pass->remarks.local_times = true;
    return pass->local_times;
}

/* Inlined into the loop of ops_accept: a call for each op would cost more than most ops do. */
static inline __attribute__((always_inline)) bool
run_op(struct pass *pass, const struct op *op, const struct json *v, struct evaluated_set *evaluated)
{
    if (op->code == OP_PROPERTIES) /* most ops: predicted, unlike the jump below */
        return accepts_properties(pass, op, v, evaluated);
    switch ((enum op_code)op->code) {
    case OP_CHOICES:
        return pass_spend(pass, 1) && choices_contain(pass, &op->choices, v);
    case OP_MINIMUM:
    case OP_MAXIMUM: {
        if (v->len > PLAIN_NUMBER_BYTES && !pass_spend(pass, STEPS_OF_BYTES(v->len)))
            return false;
        int order = compare_bound(&op->bound, v);
        return (op->code == OP_MINIMUM ? order : -order) >= op->bound.exclusive;
    }
    case OP_COUNT: {
        /* A code point is one to four bytes: usually that decides without counting. */
        if (v->type == JSON_STRING && v->len <= op->count.max && v->len / 4 >= op->count.min)
            return true;
        if (v->type == JSON_STRING && !pass_spend(pass, STEPS_OF_BYTES(v->len)))
            return false;
        uint64_t size = op_count_size(v);
        return size >= op->count.min && size <= op->count.max;
    }
    case OP_MULTIPLE:
        return pass_spend(pass, STEPS_OF_BYTES(v->len)) && multiple_of_holds(v, op->value);
    case OP_FORMAT:
        return pass_spend(pass, op->format->steps + STEPS_OF_BYTES(v->len)) &&
               (op->format->check(json_str(v)) || lacks_zone(pass, op, v));
    case OP_PATTERN:
        return pass_matches(pass, op->pattern, json_str(v));
    case OP_DEPENDENT_REQUIRED:
    case OP_DEPENDENT_SCHEMAS:
        return accepts_dependents(pass, op, v, evaluated);
    case OP_NAMES:
        return accepts_names(pass, op, v);
    case OP_ITEMS:
        return accepts_items(pass, op, v, evaluated);
    case OP_CONTAINS: {
        uint64_t found = op_contains_count(pass, op, v, evaluated);
        return found >= op->contains.min && found <= op->contains.max;
    }
    case OP_UNIQUE: {
        size_t first, second;
        return !unique_items_find_pair(pass, v, &first, &second) && !pass->too_complex;
    }
    case OP_REF:
        return fits(pass, op->node, v, evaluated);
    case OP_DYNAMIC_REF:
        return fits(pass, op_dynamic_target(pass, op), v, evaluated);
    case OP_ALL_OF: {
        bool all = pass_spend(pass, STEPS_OF_PLACES(op->nodes.count));
        for (uint32_t i = 0; i < op->nodes.count && all; i++)
            all = fits(pass, op->nodes.at[i], v, evaluated);
        return all;
    }
    case OP_ANY_OF:
    case OP_ONE_OF:
        return accepts_branches(pass, op, v, evaluated);
    case OP_NOT:
        return !fits(pass, op->node, v, NULL);
    case OP_IF: {
        bool holds = branch_accepts(pass, op->branch.condition, v, evaluated);
        const struct node *node = holds ? op->branch.then : op->branch.otherwise;
        return !node || fits(pass, node, v, evaluated);
    }
    case OP_UNEVALUATED_ITEMS:
    case OP_UNEVALUATED_PROPERTIES:
        return accepts_unevaluated(pass, op, v, evaluated);
    case OP_PROPERTIES:
    case OP_CODES:
        break;
    }
    return true;
}

bool op_accepts(struct pass *pass, const struct op *op, const struct json *v, struct evaluated_set *evaluated)
{
    return run_op(pass, op, v, evaluated);
}

static inline bool ops_accept(struct pass *pass, const struct node *node, const struct json *v,
                              struct evaluated_set *evaluated)
{
    unsigned type = type_bit_of(v);
    for (const struct op *op = node->ops, *end = op + node->op_count; op < end; op++)
        if ((op->applies & type) && !run_op(pass, op, v, evaluated))
            return false;
    return true;
}

/* For a node with unevaluated*, or any node of a schema with dynamic references. */
static __attribute__((noinline)) bool ops_accept_scoped(struct pass *pass, const struct node *node,
                                                        const struct json *v, struct evaluated_set *evaluated)
{
    struct scope here;
    const struct scope *outer = pass_enter(pass, node, &here);
    bool ok;
    if (node->unevaluated && (v->type == JSON_ARRAY || v->type == JSON_OBJECT)) {
        struct evaluated_set own;
        if (!pass_spend(pass, STEPS_OF_PLACES(v->len / 64))) {
            pass_leave(pass, outer);
            return false;
        }
        evaluated_set_init(&own, v->len);
        ok = ops_accept(pass, node, v, &own);
        if (ok)
            evaluated_set_merge(evaluated, &own);
        evaluated_set_clear(&own);
    } else {
        ok = ops_accept(pass, node, v, evaluated);
    }
    pass_leave(pass, outer);
    return ok;
}

/* For a value of a type that the node takes. */
static bool node_runs_ops(struct pass *pass, const struct node *node, const struct json *v,
                          struct evaluated_set *evaluated)
{
    if (!pass_spend(pass, 1))
        return false;
    if (pass->frames == SCHEMA_MAX_FRAMES)
        return give_up(pass, TOO_MANY_FRAMES);
    if (node->unevaluated || pass->schema->dynamic)
        return ops_accept_scoped(pass, node, v, evaluated);
    pass->frames++;
    bool ok = ops_accept(pass, node, v, evaluated);
    pass->frames--;
    return ok;
}

bool node_accepts(struct pass *pass, const struct node *node, const struct json *v)
{
    return fits(pass, node, v, NULL);
}

bool node_accepts_local_times(struct pass *pass, const struct node *node, const struct json *v)
{
    bool outer = pass->local_times;
    pass->local_times = pass->schema->local_times;
    bool ok = pass->local_times && !pass->too_complex && node_accepts(pass, node, v);
    pass->local_times = outer;
    return ok;
}

enum schema_validity schema_validate(const struct schema *schema, const struct json *instance)
{
    struct schema_remarks ignored;
    return schema_inspect(schema, instance, &ignored, NULL);
}

enum schema_validity schema_inspect(const struct schema *schema, const struct json *instance,
                                    struct schema_remarks *remarks, struct schema_work *work)
{
    struct pass pass = pass_begin(schema, work);
    bool ok = node_accepts(&pass, schema->root, instance);
    bool local = !ok && pass.remarks.local_times && node_accepts_local_times(&pass, schema->root, instance);
    *remarks = pass.remarks;
    remarks->declared = ok && schema->declares && !remarks->undeclared;
    remarks->local_times = local;
    ok |= local;
    if (pass.too_complex)
        return SCHEMA_TOO_COMPLEX;
    return ok ? SCHEMA_VALID : SCHEMA_INVALID;
}

/* ---- what applies in place to one value: for the passes that look for a property or an item ---- */

/* Whether a branch can be the one that applies: of the type, and without a discriminator whose value is not
 * one of the branch's. v NULL: any can. */
static bool may_apply(const struct node *branch, const struct json *v, struct pass *pass)
{
    bool may = !v || (branch->types & type_bit_of(v));
    for (uint16_t i = 0; may && v && v->type == JSON_OBJECT && i < branch->discriminator_count; i++) {
        const struct discriminator *d = &branch->discriminators[i];
        const struct json *m = json_get(v, d->key);
        may = !(m && d->choices && pass_spend(pass, 1) && !choices_contain(pass, d->choices, m));
    }
    return may;
}

static void collect(struct in_place_nodes *all, const struct node *node, const struct json *v,
                    struct pass *pass);

static void collect_op(struct in_place_nodes *all, const struct op *op, const struct json *v,
                       struct pass *pass)
{
    uint32_t possible = 0;
    bool holds;
    switch ((enum op_code)op->code) {
    case OP_REF:
        collect(all, op->node, v, pass);
        break;
    case OP_ALL_OF:
        for (uint32_t i = 0; i < op->nodes.count; i++)
            collect(all, op->nodes.at[i], v, pass);
        break;
    case OP_ANY_OF:
    case OP_ONE_OF: /* for a value, only a branch that is the only possible one is certain */
        for (uint32_t i = 0; i < op->nodes.count; i++)
            possible += may_apply(op->nodes.at[i], v, pass);
        for (uint32_t i = 0; i < op->nodes.count && (!v || possible == 1); i++)
            if (may_apply(op->nodes.at[i], v, pass))
                collect(all, op->nodes.at[i], v, pass);
        break;
    case OP_IF:
        holds = v && node_accepts(pass, op->branch.condition, v);
        if (!v || holds)
            collect(all, op->branch.condition, v, pass);
        if (op->branch.then && (!v || holds))
            collect(all, op->branch.then, v, pass);
        if (op->branch.otherwise && !holds)
            collect(all, op->branch.otherwise, v, pass);
        break;
    case OP_DEPENDENT_SCHEMAS:
        for (uint32_t i = 0; i < op->dependents.count; i++)
            if (!v || json_get(v, op->dependents.at[i].key))
                collect(all, op->dependents.at[i].node, v, pass);
        break;
    default:
        break;
    }
}

/* The graph of in-place ops has no cycles but through dynamic references, which are left out. */
static void collect(struct in_place_nodes *all, const struct node *node, const struct json *v,
                    struct pass *pass)
{
    if (all->count == IN_PLACE_NODES_MAX)
        return;
    uint32_t at = all->count++;
    all->nodes[at] = node;
    all->props[at] = NULL;
    all->items[at] = NULL;
    for (uint16_t i = 0; i < node->op_count; i++) {
        const struct op *op = &node->ops[i];
        if (op->code == OP_PROPERTIES)
            all->props[at] = op->props;
        else if (op->code == OP_ITEMS)
            all->items[at] = op;
        else
            collect_op(all, op, v, pass);
    }
}

void in_place_collect(struct in_place_nodes *all, const struct node *node, const struct json *v,
                      struct pass *pass)
{
    all->count = 0;
    collect(all, node, v, pass);
}

const struct prop *in_place_prop(const struct in_place_nodes *all, struct str name)
{
    const struct prop *found = NULL;
    for (uint32_t i = 0; i < all->count && !(found && found->node); i++) {
        const struct prop *p = all->props[i] ? props_find(all->props[i], name) : NULL;
        found = p ? p : found;
    }
    return found;
}

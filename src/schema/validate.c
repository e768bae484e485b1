/*
 * The boolean pass: does the instance fit? One function an op, in a table; no
 * allocation, every node entered is a step of the budget. The collecting pass
 * (explain.c) asks the same functions, so the two cannot disagree.
 */
#include "schema/evaluated_set.h"
#include "schema/node.h"

#include "base/hash.h"
#include "schema/multiple_of.h"

#define HARD_MATCH_STEPS 2000u /* what a match that is not easy costs of SCHEMA_MAX_STEPS */
#define TOO_MANY_STEPS   "it took more than 200000 evaluation steps"
#define TOO_MANY_FRAMES  "its subschemas nest too deeply"
#define TOO_MUCH_REGEX   "its pattern needs too much work on this text"

struct pass pass_begin(const struct schema *schema)
{
    return (struct pass){.schema = schema};
}

static bool give_up(struct pass *pass, const char *reason)
{
    if (!pass->too_complex)
        pass->too_complex = reason;
    return false;
}

bool pass_spend(struct pass *pass, uint64_t steps)
{
    if (pass->too_complex || steps > SCHEMA_MAX_STEPS - pass->steps)
        return give_up(pass, TOO_MANY_STEPS);
    pass->steps += (uint32_t)steps;
    return true;
}

/* ---- scalars ---- */

bool choices_contain(const struct choices *choices, const struct json *v)
{
    if (choices->strings && v->type != JSON_STRING)
        return false;
    for (uint32_t i = 0; i < choices->count; i++) {
        const struct json *c = choices->at[i];
        if (c->type != v->type)
            continue;
        if (c->type == JSON_STRING ? c->len == v->len && str_bytes_eq(c->text, v->text, v->len)
                                   : json_equal(c, v))
            return true;
    }
    return false;
}

static bool accepts_choices(struct pass *pass, const struct op *op, const struct json *v,
                            struct evaluated_set *evaluated)
{
    (void)evaluated;
    return pass_spend(pass, 1) && choices_contain(&op->choices, v);
}

static int compare_bound(const struct bound *bound, const struct json *v)
{
    struct json_small small = json_small(v);
    if (!small.scale || !bound->small.scale)
        return json_number_cmp(v, bound->limit);
    int64_t m = small.whole * bound->small.scale, n = bound->small.whole * small.scale;
    return (m > n) - (m < n);
}

static bool accepts_minimum(struct pass *pass, const struct op *op, const struct json *v,
                            struct evaluated_set *evaluated)
{
    (void)pass, (void)evaluated;
    return compare_bound(&op->bound, v) >= op->bound.exclusive;
}

static bool accepts_maximum(struct pass *pass, const struct op *op, const struct json *v,
                            struct evaluated_set *evaluated)
{
    (void)pass, (void)evaluated;
    return compare_bound(&op->bound, v) <= -(int)op->bound.exclusive;
}

static bool accepts_multiple(struct pass *pass, const struct op *op, const struct json *v,
                             struct evaluated_set *evaluated)
{
    (void)evaluated;
    return pass_spend(pass, 1 + v->len / 64) && multiple_of_holds(v, op->value);
}

static uint64_t code_points(const struct json *v)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < v->len; i++)
        n += ((unsigned char)v->text[i] & 0xC0) != 0x80;
    return n;
}

static bool accepts_count(struct pass *pass, const struct op *op, const struct json *v,
                          struct evaluated_set *evaluated)
{
    (void)pass, (void)evaluated;
    /* A code point is one to four bytes: mostly that is enough to know. */
    if (v->type == JSON_STRING && !(v->len <= op->count.max && v->len / 4 >= op->count.min)) {
        uint64_t n = code_points(v);
        return n >= op->count.min && n <= op->count.max;
    }
    return v->len >= op->count.min && v->len <= op->count.max;
}

static bool accepts_format(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated)
{
    (void)evaluated;
    return pass_spend(pass, 1) && op->format->check(json_str(v));
}

/* A string that makes an expression work hard may do so a few times a call, not fifty thousand times. */
bool pass_matches(struct pass *pass, const struct pattern *pattern, struct str s)
{
    if (!pass_spend(pass, 1 + s.len / 256))
        return false;
    enum pattern_result answer = pattern_match_quick(pattern, s);
    if (answer == PATTERN_TOO_COMPLEX && pass_spend(pass, HARD_MATCH_STEPS))
        answer = pattern_match(pattern, s);
    return answer == PATTERN_TOO_COMPLEX ? give_up(pass, TOO_MUCH_REGEX) : answer == PATTERN_MATCH;
}

static bool accepts_pattern(struct pass *pass, const struct op *op, const struct json *v,
                            struct evaluated_set *evaluated)
{
    (void)evaluated;
    return pass_matches(pass, op->pattern, json_str(v));
}

/* ---- a node below; most are of one type and nothing more ---- */

static bool node_looks(struct pass *pass, const struct node *node, const struct json *v,
                       struct evaluated_set *evaluated);

static inline bool fits(struct pass *pass, const struct node *node, const struct json *v,
                        struct evaluated_set *evaluated)
{
    return (node->types & type_bit_of(v)) && (!node->op_count || node_looks(pass, node, v, evaluated));
}

/* ---- objects ---- */

/* Around the list from `next`: of few names most differ in their length already. */
static const struct prop *find_around(const struct props *props, struct str key, uint32_t next)
{
    for (uint32_t i = next; i < props->count; i++)
        if (str_eq(props->list[i].key, key))
            return &props->list[i];
    for (uint32_t i = 0; i < next; i++)
        if (str_eq(props->list[i].key, key))
            return &props->list[i];
    return NULL;
}

static const struct prop *find_by_hash(const struct props *props, struct str key)
{
    for (uint32_t at = (uint32_t)hash_seeded(key) & props->mask; props->slots[at];
         at = (at + 1) & props->mask) {
        const struct prop *p = &props->list[props->slots[at] - 1];
        if (str_eq(p->key, key))
            return p;
    }
    return NULL;
}

const struct prop *props_find(const struct props *props, struct str key)
{
    return props->slots ? find_by_hash(props, key) : find_around(props, key, 0);
}

/* Models write fields in the order in which the schema declares them: the one after the last is looked at
 * first. */
static inline const struct prop *props_find_from(const struct props *props, const struct json_member *m,
                                                 uint32_t *next)
{
    if (*next < props->count && str_eq(props->list[*next].key, m->key))
        return &props->list[(*next)++];
    const struct prop *p = props->slots ? find_by_hash(props, m->key) : find_around(props, m->key, *next);
    if (p)
        *next = (uint32_t)(p - props->list) + 1;
    return p;
}

/* Every pattern that fits the name must accept the value. */
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
    if (v->len < props->required)
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
        if (!described && props->rest) {
            if (!fits(pass, props->rest, &m->value, NULL))
                return false;
            described = true;
        }
        if (described)
            evaluated_set_add(evaluated, i);
    }
    return required == props->required;
}

static bool accepts_names(struct pass *pass, const struct op *op, const struct json *v,
                          struct evaluated_set *evaluated)
{
    (void)evaluated;
    for (uint32_t i = 0; i < v->len; i++) {
        struct str key = v->members[i].key;
        struct json name = {.type = JSON_STRING, .len = (uint32_t)key.len, .text = key.at ? key.at : ""};
        if (!fits(pass, op->node, &name, NULL))
            return false;
    }
    return true;
}

static bool has_all(const struct json *v, const struct str *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!json_get(v, names[i]))
            return false;
    return true;
}

static bool accepts_dependent_required(struct pass *pass, const struct op *op, const struct json *v,
                                       struct evaluated_set *evaluated)
{
    (void)pass, (void)evaluated;
    for (uint32_t i = 0; i < op->dependents.count; i++) {
        const struct dependent *d = &op->dependents.at[i];
        if (json_get(v, d->key) && !has_all(v, d->needs, d->need_count))
            return false;
    }
    return true;
}

static bool accepts_dependent_schemas(struct pass *pass, const struct op *op, const struct json *v,
                                      struct evaluated_set *evaluated)
{
    for (uint32_t i = 0; i < op->dependents.count; i++) {
        const struct dependent *d = &op->dependents.at[i];
        if (json_get(v, d->key) && !fits(pass, d->node, v, evaluated))
            return false;
    }
    return true;
}

/* ---- arrays ---- */

static bool accepts_items(struct pass *pass, const struct op *op, const struct json *v,
                          struct evaluated_set *evaluated)
{
    for (uint32_t i = 0; i < v->len; i++) {
        const struct node *node = i < op->items.prefix.count ? op->items.prefix.at[i] : op->items.rest;
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
    for (uint32_t i = 0; i < v->len && !pass->too_complex; i++)
        if (fits(pass, op->contains.node, &v->items[i], NULL)) {
            found++;
            if (op->contains.evaluates)
                evaluated_set_add(evaluated, i);
        }
    return found;
}

static bool accepts_contains(struct pass *pass, const struct op *op, const struct json *v,
                             struct evaluated_set *evaluated)
{
    uint64_t found = op_contains_count(pass, op, v, evaluated);
    return found >= op->contains.min && found <= op->contains.max;
}

static bool accepts_unique(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated)
{
    (void)op, (void)evaluated;
    return pass_spend(pass, v->len) && !unique_items_find_pair(v, NULL, NULL);
}

/* ---- in place ---- */

static bool accepts_ref(struct pass *pass, const struct op *op, const struct json *v,
                        struct evaluated_set *evaluated)
{
    return fits(pass, op->node, v, evaluated);
}

/* The outermost resource on the branch_entry here that has the anchor wins. */
const struct node *op_dynamic_target(const struct pass *pass, const struct op *op)
{
    const struct node *target = op->dynamic.node;
    if (!op->dynamic.anchor.at)
        return target;
    for (const struct scope *s = pass->scope; s; s = s->outer) {
        const struct node *node = resource_dynamic_anchor(s->resource, op->dynamic.anchor);
        target = node ? node : target;
    }
    return target;
}

static bool accepts_dynamic_ref(struct pass *pass, const struct op *op, const struct json *v,
                                struct evaluated_set *evaluated)
{
    return fits(pass, op_dynamic_target(pass, op), v, evaluated);
}

static bool accepts_all_of(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated)
{
    for (uint32_t i = 0; i < op->nodes.count; i++)
        if (!fits(pass, op->nodes.at[i], v, evaluated))
            return false;
    return true;
}

bool discriminators_match(const struct node *node, const struct json *v)
{
    if (v->type != JSON_OBJECT)
        return true;
    for (uint16_t i = 0; i < node->discriminator_count; i++) {
        const struct json *m = json_get(v, node->discriminators[i].key);
        if (!m || (node->discriminators[i].choices && !choices_contain(node->discriminators[i].choices, m)))
            return false;
    }
    return true;
}

bool discriminators_exclude(const struct node *node, const struct json *v)
{
    bool deny = false;
    for (uint16_t i = 0; v->type == JSON_OBJECT && i < node->discriminator_count && !deny; i++) {
        const struct json *m = json_get(v, node->discriminators[i].key);
        deny = m && node->discriminators[i].choices && !choices_contain(node->discriminators[i].choices, m);
    }
    return deny;
}

/* A branch that fails has evaluated nothing. */
static __attribute__((noinline)) bool branch_accepts_marked(struct pass *pass, const struct node *node,
                                                            const struct json *v,
                                                            struct evaluated_set *evaluated)
{
    struct evaluated_set own;
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
    if (!(node->types & type_bit_of(v)) || !discriminators_match(node, v))
        return false;
    return evaluated ? branch_accepts_marked(pass, node, v, evaluated) : fits(pass, node, v, NULL);
}

/* The one branch that an object can fit, or NULL. */
static const struct node *way_of(const struct branch_map *branch_map, const struct json *v)
{
    const struct json *told = json_get(v, branch_map->key);
    for (uint32_t i = 0; json_is(told, JSON_STRING) && i < branch_map->count; i++)
        if (str_eq(branch_map->entries[i].value, json_str(told)))
            return branch_map->entries[i].node;
    return NULL;
}

static bool accepts_way(struct pass *pass, const struct branch_map *branch_map, const struct json *v,
                        struct evaluated_set *evaluated)
{
    const struct node *node = way_of(branch_map, v);
    return node && fits(pass, node, v, evaluated);
}

static bool accepts_any_of(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated)
{
    bool any = false;
    if (op->nodes.branch_map && v->type == JSON_OBJECT)
        return accepts_way(pass, op->nodes.branch_map, v, evaluated);
    for (uint32_t i = 0; i < op->nodes.count && !(any && !evaluated); i++)
        any |= branch_accepts(pass, op->nodes.at[i], v, evaluated);
    return any;
}

static bool accepts_one_of(struct pass *pass, const struct op *op, const struct json *v,
                           struct evaluated_set *evaluated)
{
    uint32_t found = 0;
    if (op->nodes.branch_map && v->type == JSON_OBJECT)
        return accepts_way(pass, op->nodes.branch_map, v, evaluated);
    for (uint32_t i = 0; i < op->nodes.count && found < 2; i++)
        found += branch_accepts(pass, op->nodes.at[i], v, evaluated);
    return found == 1;
}

static bool accepts_not(struct pass *pass, const struct op *op, const struct json *v,
                        struct evaluated_set *evaluated)
{
    (void)evaluated;
    return !fits(pass, op->node, v, NULL);
}

static bool accepts_if(struct pass *pass, const struct op *op, const struct json *v,
                       struct evaluated_set *evaluated)
{
    bool holds = branch_accepts(pass, op->branch.condition, v, evaluated);
    const struct node *node = holds ? op->branch.then : op->branch.otherwise;
    return !node || fits(pass, node, v, evaluated);
}

/* ---- what nobody evaluated ---- */

static bool accepts_unevaluated(struct pass *pass, const struct op *op, const struct json *v,
                                struct evaluated_set *evaluated)
{
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

typedef bool op_check(struct pass *pass, const struct op *op, const struct json *v,
                      struct evaluated_set *evaluated);

static op_check *const checks[OP_CODES] = {
    [OP_CHOICES] = accepts_choices,
    [OP_MINIMUM] = accepts_minimum,
    [OP_MAXIMUM] = accepts_maximum,
    [OP_COUNT] = accepts_count,
    [OP_MULTIPLE] = accepts_multiple,
    [OP_FORMAT] = accepts_format,
    [OP_PATTERN] = accepts_pattern,
    [OP_DEPENDENT_REQUIRED] = accepts_dependent_required,
    [OP_PROPERTIES] = accepts_properties,
    [OP_NAMES] = accepts_names,
    [OP_ITEMS] = accepts_items,
    [OP_CONTAINS] = accepts_contains,
    [OP_UNIQUE] = accepts_unique,
    [OP_REF] = accepts_ref,
    [OP_DYNAMIC_REF] = accepts_dynamic_ref,
    [OP_ALL_OF] = accepts_all_of,
    [OP_ANY_OF] = accepts_any_of,
    [OP_ONE_OF] = accepts_one_of,
    [OP_NOT] = accepts_not,
    [OP_IF] = accepts_if,
    [OP_DEPENDENT_SCHEMAS] = accepts_dependent_schemas,
    [OP_UNEVALUATED_ITEMS] = accepts_unevaluated,
    [OP_UNEVALUATED_PROPERTIES] = accepts_unevaluated,
};

bool op_accepts(struct pass *pass, const struct op *op, const struct json *v, struct evaluated_set *evaluated)
{
    return checks[op->code](pass, op, v, evaluated);
}

/* ---- nodes ---- */

/* Inlined where most calls come by: a table of functions alone would cost more than they do. */
static inline bool ops_accept(struct pass *pass, const struct node *node, const struct json *v,
                              struct evaluated_set *evaluated)
{
    unsigned type = type_bit_of(v);
    for (const struct op *op = node->ops, *end = op + node->op_count; op < end; op++)
        if ((op->applies & type) && !checks[op->code](pass, op, v, evaluated))
            return false;
    return true;
}

static __attribute__((noinline)) bool ops_accept_marked(struct pass *pass, const struct node *node,
                                                        const struct json *v, struct evaluated_set *evaluated)
{
    struct evaluated_set own;
    evaluated_set_init(&own, v->len);
    bool ok = ops_accept(pass, node, v, &own);
    if (ok)
        evaluated_set_merge(evaluated, &own);
    evaluated_set_clear(&own);
    return ok;
}

static __attribute__((noinline)) bool ops_accept_scoped(struct pass *pass, const struct node *node,
                                                        const struct json *v, struct evaluated_set *evaluated)
{
    struct scope here;
    const struct scope *outer = pass_enter(pass, node, &here);
    bool container = v->type == JSON_ARRAY || v->type == JSON_OBJECT;
    bool ok = node->unevaluated && container ? ops_accept_marked(pass, node, v, evaluated)
                                             : ops_accept(pass, node, v, evaluated);
    pass_leave(pass, outer);
    return ok;
}

/* The ops of a node that has some, for a value of a type that it takes. */
static bool node_looks(struct pass *pass, const struct node *node, const struct json *v,
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

bool node_accepts(struct pass *pass, const struct node *node, const struct json *v,
                  struct evaluated_set *evaluated)
{
    return fits(pass, node, v, evaluated);
}

enum schema_validity schema_validate(const struct schema *schema, const struct json *instance)
{
    struct pass pass = pass_begin(schema);
    bool ok = node_accepts(&pass, schema->root, instance, NULL);
    if (pass.too_complex)
        return SCHEMA_TOO_COMPLEX;
    return ok ? SCHEMA_VALID : SCHEMA_INVALID;
}

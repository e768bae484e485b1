/*
 * Value by value: what the schema accepts is left alone; what it rejects is
 * read differently only if exactly one reading fits. Each reading is checked
 * against the value's own node, references and branches included, so it cannot
 * bypass a rule.
 */
#include "schema/coercer.h"

#define STEPS_OF_CONTAINER 60u
#define STEPS_OF_SCALAR    20u

const struct coerce_options coerce_options_all = {.json = true,
                                                  .strings = true,
                                                  .lists = true,
                                                  .nulls = true,
                                                  .enums = true,
                                                  .floats = true,
                                                  .names = true,
                                                  .words = true,
                                                  .wrapped = true};

bool coerce_accepts(struct coercer *c, const struct node *node, const struct json *v)
{
    c->pass.remarks.local_times = false;
    bool ok = node_accepts(&c->pass, node, v, NULL);
    if (!ok && c->pass.remarks.local_times)
        ok = node_accepts_local_times(&c->pass, node, v);
    return ok && !c->pass.too_complex;
}

bool coerce_is_spelled_float(const struct json *v)
{
    return v->type == JSON_NUMBER && v->integral &&
           (memchr(v->text, '.', v->len) || memchr(v->text, 'e', v->len) || memchr(v->text, 'E', v->len));
}

static bool holds_spelled_float(const struct json *v)
{
    bool found = coerce_is_spelled_float(v);
    for (uint32_t i = 0; v->type == JSON_ARRAY && i < v->len && !found; i++)
        found = holds_spelled_float(&v->items[i]);
    for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len && !found; i++)
        found = holds_spelled_float(&v->members[i].value);
    return found;
}

/* Asked again at each level, so it is counted. */
static bool may_hold_spelled_float(struct coercer *c, const struct json *v)
{
    bool plain = v->type != JSON_ARRAY && v->type != JSON_OBJECT;
    return (plain || pass_spend(&c->pass, STEPS_OF_BYTES(4 * (uint64_t)v->raw_len))) &&
           holds_spelled_float(v);
}

const struct json *coerce_respell(struct coercer *c, const struct node *node, const struct json *v)
{
    int64_t n;
    bool whole = (node->types & TYPES_NUMBER) == TYPE_INTEGER;
    if (!c->options->floats || !whole || !coerce_is_spelled_float(v) || !json_int(v, &n))
        return v;
    return json_keep(c->arena, json_integer(c->arena, n));
}

static const struct json *coerce_by_props(struct coercer *c, const struct props *props,
                                          const struct json_member *member, const struct json *v)
{
    const struct prop *p = props_find(props, member->key);
    bool described = p && p->node;
    if (described)
        v = coerce_value(c, p->node, v);
    for (uint32_t i = 0; i < props->pattern_count; i++)
        if (pass_matches(&c->pass, props->patterns[i].pattern, member->key)) {
            v = coerce_value(c, props->patterns[i].node, v);
            described = true;
        }
    return described || !props->rest ? v : coerce_value(c, props->rest, v);
}

static bool means_nothing(const struct coercer *c, const struct json *v)
{
    bool blank = v->type == JSON_STRING && coerce_is_blank(str_trim(json_str(v)));
    return v->type == JSON_NULL ? c->options->nulls : blank && c->options->words;
}

/* A null or blank that some part of the schema rejects, in a declared field that none requires. It stays if a
 * misspelling of the same field was sent too, because then either could have been meant. */
static bool is_needless(struct coercer *c, const struct node *node, const struct in_place_nodes *all,
                        const struct json *object, const struct json_member *member)
{
    bool refused = false;
    if (c->valid || !means_nothing(c, &member->value))
        return false;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct prop *p = all->props[i] ? props_find(all->props[i], member->key) : NULL;
        if (p && p->required)
            return false;
        refused |= p && p->node && !coerce_accepts(c, p->node, &member->value);
    }
    return refused && !coerce_names_misspelled(node, object, member->key);
}

static const struct json *coerce_members(struct coercer *c, const struct node *node, const struct json *v)
{
    struct in_place_nodes *all = ARENA_NEW(c->arena, struct in_place_nodes);
    struct json_member *members = NULL;
    uint32_t count = 0;
    in_place_collect(all, node, v, &c->pass);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *member = &v->members[i];
        const struct json *value = &member->value;
        for (uint32_t k = 0; k < all->count; k++)
            if (all->props[k])
                value = coerce_by_props(c, all->props[k], member, value);
        bool drop = value == &member->value && is_needless(c, node, all, v, member);
        if (!members && (drop || value != &member->value)) {
            members = ARENA_ARRAY(c->arena, struct json_member, v->len);
            memcpy(members, v->members, i * sizeof(*members));
        }
        if (members && !drop)
            members[count] = (struct json_member){member->key, *value};
        count += !drop;
    }
    return members ? json_keep(c->arena, json_object(c->arena, members, count)) : v;
}

/* Names first, since a member's name selects the schema of its value. The names of a branch that only may
 * apply are tried if the object fits in no other way. */
static const struct json *coerce_object(struct coercer *c, const struct node *node, const struct json *v)
{
    bool names = c->options->names && (!c->valid || c->renames), misspelled = false;
    const struct json *named = names ? coerce_names(c, node, v, NAMES_THAT_APPLY, &misspelled) : v;
    const struct json *coerced = coerce_members(c, node, named);
    if (!misspelled || coerce_accepts(c, node, coerced))
        return coerced;
    if (c->valid)
        return v;
    named = coerce_names(c, node, v, NAMES_OF_ANY_BRANCH, NULL);
    const struct json *other = named == v ? v : coerce_members(c, node, named);
    return coerce_accepts(c, node, other) ? other : coerced;
}

static const struct json *coerce_by_type(struct coercer *c, const struct node *node, const struct json *v)
{
    bool fits = node->types & type_bit_of(v);
    switch ((enum json_type)v->type) {
    case JSON_STRING:
    case JSON_BOOL:
        return c->valid ? v : coerce_scalar(c, node, v);
    case JSON_NUMBER:
        return fits ? coerce_respell(c, node, v) : coerce_scalar(c, node, v);
    case JSON_OBJECT:
        return fits ? coerce_object(c, node, v) : coerce_wrap(c, node, v);
    case JSON_ARRAY:
        return fits ? coerce_array(c, node, v) : coerce_unwrap(c, node, v);
    case JSON_NULL:
        break;
    }
    return v;
}

/* Reading a value in another way allocates, parses and compares names. */
static bool spend_reading(struct coercer *c, const struct json *v)
{
    uint64_t steps = v->type == JSON_ARRAY || v->type == JSON_OBJECT
                         ? STEPS_OF_CONTAINER + STEPS_OF_PLACES(v->len)
                     : v->type == JSON_STRING || v->type == JSON_NUMBER ? STEPS_OF_SCALAR + v->len / 4
                                                                        : STEPS_OF_SCALAR;
    return pass_spend(&c->pass, steps);
}

const struct json *coerce_value(struct coercer *c, const struct node *node, const struct json *v)
{
    if (c->pass.too_complex || c->depth == JSON_MAX_DEPTH)
        return v;
    bool outer = c->valid;
    c->valid = outer || coerce_accepts(c, node, v);
    c->depth++;
    const struct json *coerced = v;
    if (!c->valid || c->renames || (c->options->floats && may_hold_spelled_float(c, v)))
        coerced = spend_reading(c, v) ? coerce_by_type(c, node, v) : v;
    c->depth--;
    c->valid = outer;
    return coerced;
}

const struct json *schema_coerce(const struct schema *schema, const struct json *instance,
                                 const struct coerce_options *options, struct arena *arena,
                                 struct schema_work *work)
{
    static const struct coerce_options only_floats = {.floats = true};
    struct coercer c = {.pass = pass_begin(schema, work), .arena = arena, .options = options};
    if (memcmp(options, &only_floats, sizeof(only_floats)) == 0 && !holds_spelled_float(instance))
        return instance;
    const struct json *coerced = coerce_value(&c, schema->root, instance);
    return c.pass.too_complex ? instance : coerced;
}

const struct json *schema_coerce_names(const struct schema *schema, const struct json *instance,
                                       const struct coerce_options *options, struct arena *arena,
                                       struct schema_work *work)
{
    struct coerce_options without_floats = *options;
    without_floats.floats = false;
    struct coercer c = {
        .pass = pass_begin(schema, work), .arena = arena, .options = &without_floats, .renames = true};
    if (!options->names)
        return instance;
    const struct json *named = coerce_value(&c, schema->root, instance);
    if (c.pass.too_complex)
        return instance;
    struct schema_remarks ignored;
    return schema_inspect(schema, named, &ignored, work) == SCHEMA_VALID ? named : instance;
}

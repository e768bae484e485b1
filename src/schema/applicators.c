/* Keywords that hold other schemas, and `required`, which shares its op with `properties`. */
#include "schema/compile.h"

#include "base/hash.h"

#define OBJECT TYPE_BIT(JSON_OBJECT)
#define ARRAY  TYPE_BIT(JSON_ARRAY)

static struct props *add_props(struct node_builder *b)
{
    if (!b->props) {
        b->props = ARENA_NEW(b->c->arena, struct props);
        struct op *op = builder_op(b, OP_PROPERTIES, OBJECT);
        op->keyword = "properties";
        op->props = b->props;
    }
    return b->props;
}

enum err compile_properties(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_OBJECT)
        return builder_refuse(b, "an object of schemas", value);
    struct props *props = add_props(b);
    const struct json *required = json_get_text(b->source, "required");
    uint32_t room = value->len + (json_is(required, JSON_ARRAY) ? required->len : 0);
    struct prop *list = ARENA_ARRAY(b->c->arena, struct prop, room);
    enum err err = OK;
    for (uint32_t i = 0; i < value->len && !err; i++) {
        const struct json_member *member = &value->members[i];
        list[i] = (struct prop){.key = member->key};
        err = builder_node(b, &member->value, &list[i].node);
    }
    props->list = list;
    props->count = props->declared = value->len;
    props->has_properties = true;
    return err;
}

/* compile_props_finish reads the names, once `properties` is known. */
enum err compile_required(struct node_builder *b, const struct json *value)
{
    if (value->type == JSON_ARRAY)
        add_props(b);
    else
        builder_ignore(b, "expected a list of names (draft-03's boolean is no more)");
    return OK;
}

static uint32_t *prop_slot(struct props *props, struct str name)
{
    uint32_t at = (uint32_t)hash_seeded(name) & props->mask;
    while (props->slots[at] && !str_eq(props->list[props->slots[at] - 1].key, name))
        at = (at + 1) & props->mask;
    return &props->slots[at];
}

/* Slots for all names: a search for each of ten thousand would be a hundred million comparisons. */
static void add_slots(struct node_builder *b, uint32_t names)
{
    struct props *props = b->props;
    uint32_t size = PROPS_FEW;
    while (size < names * 2)
        size *= 2;
    props->slots = ARENA_ARRAY(b->c->arena, uint32_t, size);
    props->mask = size - 1;
    for (uint32_t i = 0; i < props->count; i++)
        *prop_slot(props, props->list[i].key) = i + 1;
}

static void add_required(struct node_builder *b, const struct json *names)
{
    struct props *props = b->props;
    if (!props->list)
        props->list = ARENA_ARRAY(b->c->arena, struct prop, names->len);
    for (uint32_t i = 0; i < names->len; i++) {
        struct str name = json_str(&names->items[i]);
        if (names->items[i].type != JSON_STRING) {
            builder_warn(b, "expected names in 'required'; one that is no string is ignored");
            continue;
        }
        uint32_t *slot = prop_slot(props, name);
        if (!*slot) {
            props->list[props->count++] = (struct prop){.key = name};
            *slot = props->count;
        }
        struct prop *p = &props->list[*slot - 1];
        props->required += !p->required;
        p->required = true;
    }
}

void compile_props_finish(struct node_builder *b)
{
    struct props *props = b->props;
    const struct keyword *k = keyword_find(b->c, &b->subschema->resource->dialect, STR_LIT("required"));
    const struct json *required = k ? json_get_text(b->source, "required") : NULL;
    bool has_required = json_is(required, JSON_ARRAY);
    add_slots(b, props->count + (has_required ? required->len : 0));
    if (has_required)
        add_required(b, required);
    if (props->count <= PROPS_FEW)
        props->slots = NULL; /* a linear search is faster */
}

enum err compile_pattern_properties(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_OBJECT)
        return builder_refuse(b, "an object of schemas by pattern", value);
    struct props *props = add_props(b);
    struct pattern_prop *list = ARENA_ARRAY(b->c->arena, struct pattern_prop, value->len);
    enum err err = OK;
    for (uint32_t i = 0; i < value->len && !err; i++) {
        err = builder_pattern(b, value->members[i].key, &list[i].pattern);
        if (!err)
            err = builder_node(b, &value->members[i].value, &list[i].node);
    }
    props->patterns = list;
    props->pattern_count = value->len;
    return err;
}

enum err compile_additional_properties(struct node_builder *b, const struct json *value)
{
    return builder_node(b, value, &add_props(b)->rest);
}

/* The entries of `value` that are lists of names, or those that are schemas. */
static enum err add_dependents(struct node_builder *b, const struct json *value, enum op_code code)
{
    struct dependent *list = ARENA_ARRAY(b->c->arena, struct dependent, value->len);
    bool lists = code == OP_DEPENDENT_REQUIRED;
    uint32_t count = 0;
    enum err err = OK;
    for (uint32_t i = 0; i < value->len && !err; i++) {
        const struct json_member *member = &value->members[i];
        if ((member->value.type == JSON_ARRAY) != lists)
            continue;
        struct dependent *d = &list[count++];
        d->key = member->key;
        if (!lists) {
            err = builder_node(b, &member->value, &d->node);
            continue;
        }
        struct str *needs = ARENA_ARRAY(b->c->arena, struct str, member->value.len);
        for (uint32_t k = 0; k < member->value.len; k++)
            if (member->value.items[k].type == JSON_STRING)
                needs[d->need_count++] = json_str(&member->value.items[k]);
        d->needs = needs;
    }
    if (count) {
        struct op *op = builder_add_op(b, code, OBJECT);
        op->dependents.at = list;
        op->dependents.count = count;
    }
    return err;
}

/* dependentRequired, dependentSchemas, and `dependencies`, which may hold both. */
enum err compile_dependencies(struct node_builder *b, const struct json *value)
{
    enum err err = OK;
    if (value->type != JSON_OBJECT)
        return builder_refuse(b, "an object", value);
    if (strcmp(b->keyword, "dependentSchemas") != 0)
        err = add_dependents(b, value, OP_DEPENDENT_REQUIRED);
    if (!err && strcmp(b->keyword, "dependentRequired") != 0)
        err = add_dependents(b, value, OP_DEPENDENT_SCHEMAS);
    return err;
}

/* Before 2020-12 a list is a tuple; since then it should be prefixItems, but the old form is still common. */
enum err compile_items(struct node_builder *b, const struct json *value)
{
    struct op *op = builder_op(b, OP_ITEMS, ARRAY);
    if (value->type != JSON_ARRAY)
        return builder_node(b, value, &op->items.rest);
    if (b->subschema->resource->dialect.draft == DRAFT_2020)
        builder_warn(b, "a list of schemas is 'prefixItems' since 2020-12; it is read as one");
    enum err err = builder_nodes(b, value, &op->items.prefix);
    const struct json *rest = json_get_text(b->source, "additionalItems");
    return err || !rest ? err : builder_node(b, rest, &op->items.rest);
}

enum err compile_prefix_items(struct node_builder *b, const struct json *value)
{
    return builder_nodes(b, value, &builder_op(b, OP_ITEMS, ARRAY)->items.prefix);
}

/* minContains or maxContains. */
static uint64_t count_beside(struct node_builder *b, const char *name, uint64_t otherwise)
{
    int64_t n;
    bool known = b->subschema->resource->dialect.draft != DRAFT_7 &&
                 (b->subschema->resource->dialect.vocabularies & VOCABULARY_VALIDATION);
    return known && json_int(json_get_text(b->source, name), &n) && n >= 0 ? (uint64_t)n : otherwise;
}

enum err compile_contains(struct node_builder *b, const struct json *value)
{
    struct op *op = builder_op(b, OP_CONTAINS, ARRAY);
    op->contains.min = count_beside(b, "minContains", 1);
    op->contains.max = count_beside(b, "maxContains", UINT64_MAX);
    op->contains.evaluates = b->subschema->resource->dialect.draft == DRAFT_2020;
    return builder_node(b, value, &op->contains.node);
}

enum err compile_schema_list(struct node_builder *b, const struct json *value)
{
    enum op_code code = str_is(str_of(b->keyword), "allOf")   ? OP_ALL_OF
                        : str_is(str_of(b->keyword), "anyOf") ? OP_ANY_OF
                                                              : OP_ONE_OF;
    if (value->type == JSON_ARRAY && value->len == 0) {
        builder_ignore(b, "expected at least one schema");
        return OK;
    }
    return builder_nodes(b, value, &builder_op(b, code, TYPES_ANY)->nodes);
}

enum err compile_if(struct node_builder *b, const struct json *value)
{
    struct op *op = builder_op(b, OP_IF, TYPES_ANY);
    const struct json *then = json_get_text(b->source, "then"), *otherwise = json_get_text(b->source, "else");
    enum err err = builder_node(b, value, &op->branch.condition);
    if (!err && then)
        err = builder_node(b, then, &op->branch.then);
    if (!err && otherwise)
        err = builder_node(b, otherwise, &op->branch.otherwise);
    return err;
}

enum err compile_ref(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_STRING)
        return builder_refuse(b, "a URI reference", value);
    struct subschema *target;
    enum err err = ref_resolve(b->c, b->subschema, json_str(value), &target, NULL);
    if (!err)
        builder_op(b, OP_REF, TYPES_ANY)->node = subschema_node(b->c, target);
    return err;
}

/* $dynamicRef, and 2019-09's $recursiveRef, whose anchor has no name. A reference whose target carries no
 * dynamic anchor of that name is a plain one. */
enum err compile_dynamic_ref(struct node_builder *b, const struct json *value)
{
    struct subschema *target;
    struct str anchor;
    bool recursive = strcmp(b->keyword, "$recursiveRef") == 0;
    if (value->type != JSON_STRING)
        return builder_refuse(b, recursive ? "\"#\"" : "a URI reference", value);
    enum err err = ref_resolve(b->c, b->subschema, json_str(value), &target, &anchor);
    if (err)
        return err;
    if (recursive)
        anchor = STR_LIT("");
    const struct dynamic_anchor *a = anchor.at ? target->resource->dynamic : NULL;
    while (a && !(a->subschema == target && str_eq(a->name, anchor)))
        a = a->next;
    if (!a) {
        builder_add_op(b, OP_REF, TYPES_ANY)->node = subschema_node(b->c, target);
        return OK;
    }
    struct op *op = builder_op(b, OP_DYNAMIC_REF, TYPES_ANY);
    op->dynamic.node = subschema_node(b->c, target);
    op->dynamic.anchor = anchor;
    b->c->dynamic = true;
    return OK;
}

enum err compile_one_schema(struct node_builder *b, const struct json *value)
{
    static const struct {
        const char *keyword;
        enum op_code code;
        unsigned types;
    } ops[] = {{"not", OP_NOT, TYPES_ANY},
               {"propertyNames", OP_NAMES, OBJECT},
               {"unevaluatedItems", OP_UNEVALUATED_ITEMS, ARRAY},
               {"unevaluatedProperties", OP_UNEVALUATED_PROPERTIES, OBJECT}};
    size_t i = 0;
    while (strcmp(ops[i].keyword, b->keyword) != 0)
        i++;
    b->node->unevaluated |= ops[i].code >= OP_UNEVALUATED_ITEMS;
    return builder_node(b, value, &builder_op(b, ops[i].code, ops[i].types)->node);
}

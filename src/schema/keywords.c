/*
 * From the keywords of one subschema to the ops of its node: what every keyword needs (node_builder), those
 * that hold other schemas, those that look at one value alone, and the table of all. Small faults of
 * real-world schemas are understood, with a warning.
 */
#include "schema/compile.h"

#include "json/write.h"

#include <stdlib.h>

#define OPS_MAX 48u /* more than there are keywords that make one */

#define STRING TYPE_BIT(JSON_STRING)
#define OBJECT TYPE_BIT(JSON_OBJECT)
#define ARRAY  TYPE_BIT(JSON_ARRAY)

/* One node while its keywords are compiled. */
struct node_builder {
    struct compiler *c;
    struct subschema *subschema;
    const struct dialect *dialect;
    struct node *node;
    const struct json *source;
    struct op ops[OPS_MAX];
    size_t op_count;
    struct props *props;           /* NULL: no keyword needed it */
    const struct keyword *keyword; /* being compiled */
};

/* ---- what every keyword needs ---- */

/* "#/properties/a/maximum": the place of the current keyword. */
static struct str pointer_of(const struct node_builder *b)
{
    return arena_printf(b->c->arena, STR_FMT "/%s", STR_ARG(subschema_pointer(b->c->arena, b->subschema)),
                        b->keyword ? b->keyword->name : "");
}

/* ERR_SCHEMA with "expected WHAT at POINTER, found VALUE" */
static enum err refuse(struct node_builder *b, const char *expected, const struct json *found)
{
    struct str text = json_to_str(b->c->arena, found);
    return err_set(b->c->why, ERR_SCHEMA, "expected %s at " STR_FMT ", found " STR_FMT, expected,
                   STR_ARG(pointer_of(b)), STR_ARG(str_cut(text, 100)));
}

static __attribute__((format(printf, 2, 3))) void warn(struct node_builder *b, const char *format, ...)
{
    struct problems *warnings = b->c->warnings;
    if (!warnings || problems_skip(warnings))
        return;
    va_list args;
    va_start(args, format);
    struct str message = arena_vprintf(warnings->arena, format, args);
    va_end(args);
    problems_add(warnings, (struct problem){.path = arena_dup(warnings->arena, pointer_of(b)),
                                            .code = "schema",
                                            .message = message,
                                            .warning = true});
}

/* The same, for a keyword that has no effect. */
static enum err ignore(struct node_builder *b, const char *text)
{
    warn(b, "%s; the keyword is ignored", text);
    if (b->c->faults) {
        err_set(b->c->why, ERR_SCHEMA, "%s", text);
        compile_fault(b->c, b->source, b->keyword->name, pointer_of(b), ERR_SCHEMA);
    }
    return OK;
}

/* Compiles an expression; ERR_LIMIT if those of the schema become too large. */
static enum err compile_expression(struct node_builder *b, struct str expression, struct pattern **out)
{
    enum err err = pattern_compile(b->c->arena, expression, out, b->c->why);
    if (err)
        return err;
    b->c->pattern_bytes += pattern_code_bytes(*out);
    if (b->c->pattern_bytes > SCHEMA_MAX_PATTERN_BYTES)
        return err_set(
            b->c->why, ERR_LIMIT,
            "expected patterns of at most %u bytes once compiled, found more; use fewer or smaller "
            "repeats such as {1,1000}",
            SCHEMA_MAX_PATTERN_BYTES);
    return OK;
}

static struct op *add_op(struct node_builder *b, enum op_code code, unsigned applies)
{
    struct op *op = &b->ops[b->op_count++];
    *op = (struct op){.code = (uint8_t)code, .applies = (uint8_t)applies, .keyword = b->keyword->name};
    return op;
}

/* The op of the keyword's row of the table: the one that another keyword made, or a new one. */
static struct op *own_op(struct node_builder *b)
{
    const struct keyword *k = b->keyword;
    for (size_t i = 0; i < b->op_count; i++)
        if (b->ops[i].code == k->code && b->ops[i].applies == k->types)
            return &b->ops[i];
    struct op *op = add_op(b, k->code, k->types);
    if (k->code == OP_COUNT)
        op->count.max = UINT64_MAX;
    return op;
}

/* The node of a subschema under the current keyword. */
static enum err node_of(struct node_builder *b, const struct json *source, const struct node **out)
{
    struct subschema *subschema = subschema_find(b->c, source);
    enum err err = subschema ? OK : subschema_index(b->c, source, b->subschema->resource, &subschema);
    if (!err)
        *out = subschema_node(b->c, subschema);
    return err;
}

static enum err nodes_of(struct node_builder *b, const struct json *list, struct nodes *out)
{
    if (list->type != JSON_ARRAY)
        return refuse(b, "an array of schemas", list);
    const struct node **nodes = ARENA_ARRAY(b->c->arena, const struct node *, list->len);
    enum err err = OK;
    for (uint32_t i = 0; i < list->len && !err; i++)
        err = node_of(b, &list->items[i], &nodes[i]);
    *out = (struct nodes){.at = nodes, .count = list->len};
    return err;
}

/* The node of the schema beside the current keyword, if there is one. */
static enum err node_beside(struct node_builder *b, const char *keyword, const struct node **out)
{
    const struct json *source = json_get_text(b->source, keyword);
    return source ? node_of(b, source, out) : OK;
}

/* ---- keywords that hold other schemas, and `required`, which shares its op with `properties` ---- */

static struct props *props_of(struct node_builder *b)
{
    if (!b->props) {
        b->props = ARENA_NEW(b->c->arena, struct props);
        struct op *op = add_op(b, OP_PROPERTIES, OBJECT);
        op->keyword = "properties";
        op->props = b->props;
    }
    return b->props;
}

static enum err compile_properties(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_OBJECT)
        return refuse(b, "an object of schemas", value);
    struct props *props = props_of(b);
    const struct json *required = json_get_text(b->source, "required");
    uint32_t room = value->len + (json_is(required, JSON_ARRAY) ? required->len : 0);
    struct prop *list = ARENA_ARRAY(b->c->arena, struct prop, room);
    enum err err = OK;
    for (uint32_t i = 0; i < value->len && !err; i++) {
        list[i].key = value->members[i].key;
        err = node_of(b, &value->members[i].value, &list[i].node);
    }
    props->list = list;
    props->count = props->declared = value->len;
    props->has_properties = true;
    return err;
}

/* finish_props reads the names, once `properties` is known. */
static enum err compile_required(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_ARRAY)
        return ignore(b, "expected a list of names (draft-03's boolean is no more)");
    props_of(b);
    return OK;
}

/* Completes and indexes the properties once all keywords of the node are compiled. The names of `required`
 * are found by hash: a search for each of ten thousand would be a hundred million comparisons. */
static void finish_props(struct node_builder *b)
{
    struct props *props = b->props;
    const struct json *names =
        keyword_find(b->dialect, STR_LIT("required")) ? json_get_text(b->source, "required") : NULL;
    uint32_t more = json_is(names, JSON_ARRAY) ? names->len : 0;
    bool few = props->count + more <= PROPS_FEW; /* then a linear search is faster in validation */
    b->keyword = more ? keyword_find(b->dialect, STR_LIT("required")) : b->keyword; /* for the warning */
    struct map *index = map_new(few ? b->c->scratch : b->c->arena);
    props->index = few ? NULL : index;
    for (uint32_t i = 0; i < props->count; i++)
        map_add(index, props->list[i].key, &props->list[i]);
    if (more && !props->list)
        props->list = ARENA_ARRAY(b->c->arena, struct prop, more);
    for (uint32_t i = 0; i < more; i++) {
        if (names->items[i].type != JSON_STRING) {
            warn(b, "expected names in 'required'; one that is no string is ignored");
            continue;
        }
        struct str name = json_str(&names->items[i]);
        struct prop *p = map_get(index, name);
        if (!p) {
            p = &props->list[props->count++];
            *p = (struct prop){.key = name};
            map_add(index, name, p);
        }
        props->required += !p->required;
        p->required = true;
    }
}

static enum err compile_pattern_properties(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_OBJECT)
        return refuse(b, "an object of schemas by pattern", value);
    struct props *props = props_of(b);
    struct pattern_prop *list = ARENA_ARRAY(b->c->arena, struct pattern_prop, value->len);
    enum err err = OK;
    for (uint32_t i = 0; i < value->len && !err; i++) {
        err = compile_expression(b, value->members[i].key, &list[i].pattern);
        if (!err)
            err = node_of(b, &value->members[i].value, &list[i].node);
    }
    props->patterns = list;
    props->pattern_count = value->len;
    return err;
}

static enum err compile_additional_properties(struct node_builder *b, const struct json *value)
{
    return node_of(b, value, &props_of(b)->rest);
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
            err = node_of(b, &member->value, &d->node);
            continue;
        }
        struct str *needs = ARENA_ARRAY(b->c->arena, struct str, member->value.len);
        for (uint32_t k = 0; k < member->value.len; k++)
            if (member->value.items[k].type == JSON_STRING)
                needs[d->need_count++] = json_str(&member->value.items[k]);
        d->needs = needs;
    }
    if (count) {
        struct op *op = add_op(b, code, OBJECT);
        op->dependents.at = list;
        op->dependents.count = count;
    }
    return err;
}

/* dependentRequired, dependentSchemas, and `dependencies`, which may hold both. */
static enum err compile_dependencies(struct node_builder *b, const struct json *value)
{
    enum err err = OK;
    if (value->type != JSON_OBJECT)
        return refuse(b, "an object", value);
    if (b->keyword->code != OP_DEPENDENT_SCHEMAS)
        err = add_dependents(b, value, OP_DEPENDENT_REQUIRED);
    if (!err && b->keyword->code != OP_DEPENDENT_REQUIRED)
        err = add_dependents(b, value, OP_DEPENDENT_SCHEMAS);
    return err;
}

/* Before 2020-12 a list is a tuple; since then it should be prefixItems, but the old form is still common. */
static enum err compile_items(struct node_builder *b, const struct json *value)
{
    struct op *op = own_op(b);
    if (value->type != JSON_ARRAY)
        return node_of(b, value, &op->items.rest);
    if (b->dialect->draft == DRAFT_2020)
        warn(b, "a list of schemas is 'prefixItems' since 2020-12; it is read as one");
    enum err err = nodes_of(b, value, &op->items.prefix);
    return err ? err : node_beside(b, "additionalItems", &op->items.rest);
}

static enum err compile_prefix_items(struct node_builder *b, const struct json *value)
{
    return nodes_of(b, value, &own_op(b)->items.prefix);
}

/* minContains or maxContains. */
static uint64_t count_beside(struct node_builder *b, const char *name, uint64_t otherwise)
{
    int64_t n;
    bool known = b->dialect->draft != DRAFT_7 && (b->dialect->vocabularies & VOCABULARY_VALIDATION);
    return known && json_int(json_get_text(b->source, name), &n) && n >= 0 ? (uint64_t)n : otherwise;
}

static enum err compile_contains(struct node_builder *b, const struct json *value)
{
    struct op *op = own_op(b);
    op->contains.min = count_beside(b, "minContains", 1);
    op->contains.max = count_beside(b, "maxContains", UINT64_MAX);
    op->contains.evaluates = b->dialect->draft == DRAFT_2020;
    return node_of(b, value, &op->contains.node);
}

static enum err compile_schema_list(struct node_builder *b, const struct json *value)
{
    if (value->type == JSON_ARRAY && value->len == 0)
        return ignore(b, "expected at least one schema");
    return nodes_of(b, value, &own_op(b)->nodes);
}

static enum err compile_if(struct node_builder *b, const struct json *value)
{
    struct op *op = own_op(b);
    enum err err = node_of(b, value, &op->branch.condition);
    if (!err)
        err = node_beside(b, "then", &op->branch.then);
    return err ? err : node_beside(b, "else", &op->branch.otherwise);
}

static enum err compile_ref(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_STRING)
        return refuse(b, "a URI reference", value);
    struct subschema *target;
    enum err err = ref_resolve(b->c, b->subschema, json_str(value), &target, NULL);
    if (!err)
        own_op(b)->node = subschema_node(b->c, target);
    return err;
}

/* $dynamicRef, and 2019-09's $recursiveRef, whose anchor has no name. A reference whose target carries no
 * dynamic anchor of that name is a plain one. */
static enum err compile_dynamic_ref(struct node_builder *b, const struct json *value)
{
    struct subschema *target;
    struct str anchor;
    bool recursive = b->keyword->drafts == DRAFT_2019;
    if (value->type != JSON_STRING)
        return refuse(b, recursive ? "\"#\"" : "a URI reference", value);
    enum err err = ref_resolve(b->c, b->subschema, json_str(value), &target, &anchor);
    if (err)
        return err;
    if (recursive)
        anchor = STR_LIT("");
    const struct dynamic_anchor *a = anchor.at ? target->resource->dynamic : NULL;
    while (a && !(a->subschema == target && str_eq(a->name, anchor)))
        a = a->next;
    if (!a) {
        add_op(b, OP_REF, TYPES_ANY)->node = subschema_node(b->c, target);
        return OK;
    }
    struct op *op = own_op(b);
    op->dynamic.node = subschema_node(b->c, target);
    op->dynamic.anchor = anchor;
    b->c->dynamic = true;
    return OK;
}

static enum err compile_one_schema(struct node_builder *b, const struct json *value)
{
    b->node->unevaluated |= b->keyword->code >= OP_UNEVALUATED_ITEMS;
    return node_of(b, value, &own_op(b)->node);
}

/* ---- keywords that look at one value alone ---- */

const struct type_name type_names[TYPE_NAMES] = {
    {"string", TYPE_BIT(JSON_STRING)}, {"number", TYPES_NUMBER},        {"integer", TYPE_INTEGER},
    {"boolean", TYPE_BIT(JSON_BOOL)},  {"array", TYPE_BIT(JSON_ARRAY)}, {"object", TYPE_BIT(JSON_OBJECT)},
    {"null", TYPE_BIT(JSON_NULL)},
};

unsigned type_by_name(struct str name, enum type_spelling *spelling)
{
    static const struct type_name others[] = {
        {"str", TYPE_BIT(JSON_STRING)},  {"int", TYPE_INTEGER},
        {"float", TYPES_NUMBER},         {"double", TYPES_NUMBER},
        {"bool", TYPE_BIT(JSON_BOOL)},   {"list", TYPE_BIT(JSON_ARRAY)},
        {"tuple", TYPE_BIT(JSON_ARRAY)}, {"dict", TYPE_BIT(JSON_OBJECT)},
        {"map", TYPE_BIT(JSON_OBJECT)},  {"any", TYPES_ANY},
    };
    enum type_spelling unused, *as = spelling ? spelling : &unused;
    for (size_t i = 0; i < TYPE_NAMES + sizeof(others) / sizeof(*others); i++) {
        const struct type_name *type = i < TYPE_NAMES ? &type_names[i] : &others[i - TYPE_NAMES];
        if (!name.len || name.len != strlen(type->name) || !str_starts_nocase(name, type->name))
            continue;
        *as = i < TYPE_NAMES && str_is(name, type->name) ? TYPE_SPELLED : TYPE_SPELLED_OTHERWISE;
        return type->types;
    }
    *as = TYPE_UNKNOWN;
    return TYPES_ANY;
}

static unsigned types_of(struct node_builder *b, struct str name)
{
    enum type_spelling spelling;
    unsigned types = type_by_name(name, &spelling);
    if (spelling == TYPE_SPELLED_OTHERWISE)
        warn(b, "'" STR_FMT "' is no type of JSON Schema; it is read as what it looks like", STR_ARG(name));
    else if (spelling == TYPE_UNKNOWN)
        warn(b,
             "expected string, number, integer, boolean, array, object or null, found '" STR_FMT
             "'; anything is accepted here",
             STR_ARG(name));
    return types;
}

static bool is_nullable(const struct node_builder *b)
{
    return json_is_true(json_get_text(b->source, "nullable"));
}

static enum err compile_type(struct node_builder *b, const struct json *value)
{
    unsigned types = 0;
    bool names = value->type == JSON_STRING || (value->type == JSON_ARRAY && value->len);
    for (uint32_t i = 0; names && value->type == JSON_ARRAY && i < value->len; i++)
        names = value->items[i].type == JSON_STRING;
    if (b->c->faults && !names)
        return ignore(b, "expected the name of a type, or a list of them");
    if (value->type == JSON_ARRAY)
        for (uint32_t i = 0; i < value->len; i++)
            types |= types_of(b, json_str(&value->items[i]));
    else
        types = types_of(b, json_str(value));
    if (is_nullable(b)) {
        types |= TYPE_BIT(JSON_NULL);
        warn(b, "'nullable' is OpenAPI's word; null is accepted here as \"type\": [..., \"null\"] would");
    }
    if (!types)
        warn(b, "an empty list of types accepts nothing");
    b->node->types &= (uint8_t)types;
    return OK;
}

static enum err add_choices(struct node_builder *b, const struct json *keyword_value, const struct json *list,
                            uint32_t count, bool constant)
{
    struct choices choices = choices_new(b->c->arena, count);
    choices.constant = constant;
    for (uint32_t i = 0; i < count; i++)
        if (!choices_add(&choices, &list[i]))
            warn(b, "the value at %u is there twice", i);
    struct op *op = add_op(b, OP_CHOICES, is_nullable(b) ? TYPES_ANY & ~TYPE_BIT(JSON_NULL) : TYPES_ANY);
    op->choices = choices;
    op->value = keyword_value;
    return OK;
}

static enum err compile_const(struct node_builder *b, const struct json *value)
{
    return add_choices(b, value, value, 1, true);
}

static enum err compile_enum(struct node_builder *b, const struct json *value)
{
    static const char nothing[] = "an empty list of values accepts nothing";
    if (value->type != JSON_ARRAY)
        return ignore(b, "expected a list of values");
    if (value->len == 0 && b->c->faults)
        return ignore(b, nothing);
    if (value->len == 0)
        warn(b, "%s", nothing);
    return add_choices(b, value, value->items, value->len, false);
}

/* minimum, maximum and their exclusive forms. */
static enum err compile_bound(struct node_builder *b, const struct json *value)
{
    const struct keyword *k = b->keyword;
    bool exclusive = str_starts(str_of(k->name), "exclusive");
    if (exclusive && value->type == JSON_BOOL) {
        warn(b, "a boolean is draft-04's form; since draft-06 the limit itself is the value");
        return OK;
    }
    if (value->type != JSON_NUMBER)
        return ignore(b, "expected a number");
    exclusive |= json_is_true(
        json_get_text(b->source, k->code == OP_MAXIMUM ? "exclusiveMaximum" : "exclusiveMinimum"));
    struct op *op = add_op(b, k->code, k->types);
    op->value = value;
    op->bound = (struct bound){.limit = value, .small = json_small(value), .exclusive = exclusive};
    return OK;
}

static enum err compile_multiple_of(struct node_builder *b, const struct json *value)
{
    static const struct json zero = {.type = JSON_NUMBER, .integral = true, .len = 1, .text = "0"};
    if (value->type != JSON_NUMBER || json_number_cmp(value, &zero) <= 0)
        return ignore(b, "expected a number above 0");
    own_op(b)->value = value;
    return OK;
}

/* Min and max of Length, Items, Properties. */
static enum err compile_count(struct node_builder *b, const struct json *value)
{
    int64_t n;
    if (!json_int(value, &n) || n < 0)
        return ignore(b, "expected a whole number from 0 on");
    struct op *op = own_op(b);
    *(str_starts(str_of(b->keyword->name), "min") ? &op->count.min : &op->count.max) = (uint64_t)n;
    return OK;
}

static enum err compile_unique(struct node_builder *b, const struct json *value)
{
    if (json_is_true(value))
        own_op(b);
    return OK;
}

static enum err compile_pattern(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_STRING)
        return refuse(b, "a regular expression", value);
    struct pattern *pattern;
    enum err err = compile_expression(b, json_str(value), &pattern);
    if (err) {
        err_prefix(b->c->why, pointer_of(b).at);
        return err;
    }
    struct op *op = own_op(b);
    op->pattern = pattern;
    op->value = value;
    return OK;
}

static enum err compile_format(struct node_builder *b, const struct json *value)
{
    const struct schema_options *options = b->c->options;
    const struct format *format = format_find(json_str(value));
    if (!format || (options && options->annotate_format && !b->dialect->asserts_format))
        return OK; /* unknown ones are common (int32, uuid4) and annotate */
    b->c->local_times |= options && options->local_times && format->check_local;
    struct op *op = own_op(b);
    op->format = format;
    op->value = value;
    return OK;
}

#define CORE        VOCABULARY_CORE
#define APPLICATOR  VOCABULARY_APPLICATOR
#define UNEVALUATED VOCABULARY_UNEVALUATED
#define VALIDATION  VOCABULARY_VALIDATION
#define FORMAT      VOCABULARY_FORMAT

/* Sorted by name. */
static const struct keyword keywords[] = {
    {"$defs", DRAFTS_ALL, CORE, HOLDS_MAP, NULL, 0, 0},
    {"$dynamicRef", DRAFT_2020, CORE, HOLDS_NONE, compile_dynamic_ref, OP_DYNAMIC_REF, TYPES_ANY},
    {"$recursiveRef", DRAFT_2019, CORE, HOLDS_NONE, compile_dynamic_ref, OP_DYNAMIC_REF, TYPES_ANY},
    {"$ref", DRAFTS_ALL, CORE, HOLDS_NONE, compile_ref, OP_REF, TYPES_ANY},
    {"additionalItems", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, NULL, 0, 0},
    {"additionalProperties", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_additional_properties, OP_PROPERTIES,
     OBJECT},
    {"allOf", DRAFTS_ALL, APPLICATOR, HOLDS_LIST, compile_schema_list, OP_ALL_OF, TYPES_ANY},
    {"anyOf", DRAFTS_ALL, APPLICATOR, HOLDS_LIST, compile_schema_list, OP_ANY_OF, TYPES_ANY},
    {"const", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_const, OP_CHOICES, TYPES_ANY},
    {"contains", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_contains, OP_CONTAINS, ARRAY},
    {"definitions", DRAFTS_ALL, CORE, HOLDS_MAP, NULL, 0, 0},
    {"dependencies", DRAFTS_ALL, APPLICATOR, HOLDS_MAP_OR_NAMES, compile_dependencies, OP_CODES, OBJECT},
    {"dependentRequired", DRAFTS_SINCE_2019, VALIDATION, HOLDS_NONE, compile_dependencies,
     OP_DEPENDENT_REQUIRED, OBJECT},
    {"dependentSchemas", DRAFTS_SINCE_2019, APPLICATOR, HOLDS_MAP, compile_dependencies, OP_DEPENDENT_SCHEMAS,
     OBJECT},
    {"else", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, NULL, 0, 0},
    {"enum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_enum, OP_CHOICES, TYPES_ANY},
    {"exclusiveMaximum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound, OP_MAXIMUM, TYPES_NUMBER},
    {"exclusiveMinimum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound, OP_MINIMUM, TYPES_NUMBER},
    {"format", DRAFTS_ALL, FORMAT, HOLDS_NONE, compile_format, OP_FORMAT, STRING},
    {"if", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_if, OP_IF, TYPES_ANY},
    {"items", DRAFTS_ALL, APPLICATOR, HOLDS_ONE_OR_LIST, compile_items, OP_ITEMS, ARRAY},
    {"maxItems", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count, OP_COUNT, ARRAY},
    {"maxLength", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count, OP_COUNT, STRING},
    {"maxProperties", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count, OP_COUNT, OBJECT},
    {"maximum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound, OP_MAXIMUM, TYPES_NUMBER},
    {"minItems", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count, OP_COUNT, ARRAY},
    {"minLength", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count, OP_COUNT, STRING},
    {"minProperties", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count, OP_COUNT, OBJECT},
    {"minimum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound, OP_MINIMUM, TYPES_NUMBER},
    {"multipleOf", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_multiple_of, OP_MULTIPLE, TYPES_NUMBER},
    {"not", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_one_schema, OP_NOT, TYPES_ANY},
    {"oneOf", DRAFTS_ALL, APPLICATOR, HOLDS_LIST, compile_schema_list, OP_ONE_OF, TYPES_ANY},
    {"pattern", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_pattern, OP_PATTERN, STRING},
    {"patternProperties", DRAFTS_ALL, APPLICATOR, HOLDS_MAP, compile_pattern_properties, OP_PROPERTIES,
     OBJECT},
    {"prefixItems", DRAFT_2020, APPLICATOR, HOLDS_LIST, compile_prefix_items, OP_ITEMS, ARRAY},
    {"properties", DRAFTS_ALL, APPLICATOR, HOLDS_MAP, compile_properties, OP_PROPERTIES, OBJECT},
    {"propertyNames", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_one_schema, OP_NAMES, OBJECT},
    {"required", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_required, OP_PROPERTIES, OBJECT},
    {"then", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, NULL, 0, 0},
    {"type", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_type, OP_CODES, TYPES_ANY},
    {"unevaluatedItems", DRAFTS_SINCE_2019, UNEVALUATED, HOLDS_ONE, compile_one_schema, OP_UNEVALUATED_ITEMS,
     ARRAY},
    {"unevaluatedProperties", DRAFTS_SINCE_2019, UNEVALUATED, HOLDS_ONE, compile_one_schema,
     OP_UNEVALUATED_PROPERTIES, OBJECT},
    {"uniqueItems", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_unique, OP_UNIQUE, ARRAY},
};

static int compare_name(const void *name, const void *keyword)
{
    return str_cmp(*(const struct str *)name, str_of(((const struct keyword *)keyword)->name));
}

const struct keyword *keyword_find(const struct dialect *dialect, struct str name)
{
    const struct keyword *k =
        bsearch(&name, keywords, sizeof(keywords) / sizeof(*keywords), sizeof(*keywords), compare_name);
    bool known = k && (!dialect || ((k->drafts & dialect->draft) && (k->vocabulary & dialect->vocabularies)));
    return known ? k : NULL;
}

/* In draft-07 $ref hides every keyword beside it. */
static enum err compile_keywords(struct node_builder *b)
{
    bool ref_only = b->dialect->draft == DRAFT_7 && json_is(json_get_text(b->source, "$ref"), JSON_STRING);
    enum err err = OK;
    for (uint32_t i = 0; i < b->source->len && !err; i++) {
        const struct json_member *m = &b->source->members[i];
        const struct keyword *k = keyword_find(b->dialect, m->key);
        if (!k || !k->compile || (ref_only && k->compile != compile_ref))
            continue;
        b->keyword = k;
        err = k->compile(b, &m->value);
        /* In draft-07 the keywords beside a reference would come into force without it. */
        bool of_pattern = k->compile == compile_pattern || k->compile == compile_pattern_properties;
        if (err == ERR_SCHEMA || (err && of_pattern))
            err = compile_fault(b->c, b->source, ref_only ? NULL : k->name, pointer_of(b), err);
    }
    return err;
}

enum err compile_node(struct compiler *c, struct node_entry *entry)
{
    const struct json *source = entry->subschema->source;
    entry->node->types = json_is_false(source) ? 0 : TYPES_ANY;
    if (source->type == JSON_BOOL)
        return OK;
    struct node_builder b = {.c = c,
                             .subschema = entry->subschema,
                             .dialect = &entry->subschema->resource->dialect,
                             .node = entry->node,
                             .source = source};
    enum err err = compile_keywords(&b);
    if (err)
        return err;
    if (b.props)
        finish_props(&b);
    /* Evaluation follows the order of the codes. */
    for (size_t i = 1; i < b.op_count; i++) {
        struct op op = b.ops[i];
        size_t at = i;
        for (; at > 0 && b.ops[at - 1].code > op.code; at--)
            b.ops[at] = b.ops[at - 1];
        b.ops[at] = op;
    }
    struct op *ops = ARENA_ARRAY(c->arena, struct op, b.op_count);
    memcpy(ops, b.ops, b.op_count * sizeof(*ops));
    entry->node->ops = ops;
    entry->node->op_count = (uint16_t)b.op_count;
    return OK;
}

/*
 * The table of keywords, and those that look at one value alone. What real
 * schemas get slightly wrong is understood, with a warning.
 */
#include "schema/compile.h"

#include "json/write.h"

#include <stdlib.h>

/* ---- what all keywords use ---- */

static struct str keyword_pointer(const struct making *m)
{
    return arena_printf(m->c->arena, STR_FMT "/%s", STR_ARG(subschema_pointer(m->c->arena, m->place)),
                        m->keyword);
}

enum err builder_refuse(struct making *m, const char *expected, const struct json *found)
{
    struct buf text = buf_in(m->c->arena);
    json_write(&text, found);
    return err_set(m->c->why, ERR_SCHEMA, "expected %s at " STR_FMT ", found " STR_FMT, expected,
                   STR_ARG(keyword_pointer(m)), STR_ARG(str_cut(buf_view(&text), 100)));
}

void builder_warn(struct making *m, const char *format, ...)
{
    struct problems *warnings = m->c->warnings;
    if (!warnings)
        return;
    va_list args;
    va_start(args, format);
    struct str message = arena_vprintf(warnings->arena, format, args);
    va_end(args);
    problems_add(warnings, (struct problem){.path = arena_dup(warnings->arena, keyword_pointer(m)),
                                            .code = "schema",
                                            .message = message,
                                            .warning = true});
}

struct op *builder_op(struct making *m, enum op_code code, unsigned applies)
{
    for (size_t i = 0; i < m->op_count; i++)
        if (m->ops[i].code == code && m->ops[i].applies == applies)
            return &m->ops[i];
    struct op *op = &m->ops[m->op_count++];
    *op = (struct op){.code = (uint8_t)code, .applies = (uint8_t)applies, .keyword = m->keyword};
    if (code == OP_COUNT)
        op->count.max = UINT64_MAX;
    return op;
}

static struct op *fresh_op(struct making *m, enum op_code code, unsigned applies)
{
    struct op *op = &m->ops[m->op_count++];
    *op = (struct op){.code = (uint8_t)code, .applies = (uint8_t)applies, .keyword = m->keyword};
    return op;
}

enum err builder_node(struct making *m, const struct json *source, const struct node **out)
{
    struct place *place = subschema_find(m->c, source);
    enum err err = place ? OK : subschema_index(m->c, source, m->place->resource, &place);
    if (!err)
        *out = compile_queue_node(m->c, place);
    return err;
}

enum err builder_nodes(struct making *m, const struct json *list, struct nodes *out)
{
    if (list->type != JSON_ARRAY)
        return builder_refuse(m, "an array of schemas", list);
    const struct node **nodes = ARENA_ARRAY(m->c->arena, const struct node *, list->len);
    enum err err = OK;
    for (uint32_t i = 0; i < list->len && !err; i++)
        err = builder_node(m, &list->items[i], &nodes[i]);
    *out = (struct nodes){.at = nodes, .count = list->len};
    return err;
}

/* ---- type ---- */

/* Names of the standard, and those that other languages' words slip in as. */
static const struct {
    const char *name;
    uint8_t types;
    bool standard;
} type_names[] = {
    {"string", TYPE_BIT(JSON_STRING), true},
    {"integer", TYPE_INTEGER, true},
    {"number", TYPES_NUMBER, true},
    {"boolean", TYPE_BIT(JSON_BOOL), true},
    {"array", TYPE_BIT(JSON_ARRAY), true},
    {"object", TYPE_BIT(JSON_OBJECT), true},
    {"null", TYPE_BIT(JSON_NULL), true},
    {"str", TYPE_BIT(JSON_STRING), false},
    {"int", TYPE_INTEGER, false},
    {"float", TYPES_NUMBER, false},
    {"double", TYPES_NUMBER, false},
    {"bool", TYPE_BIT(JSON_BOOL), false},
    {"list", TYPE_BIT(JSON_ARRAY), false},
    {"tuple", TYPE_BIT(JSON_ARRAY), false},
    {"dict", TYPE_BIT(JSON_OBJECT), false},
    {"map", TYPE_BIT(JSON_OBJECT), false},
    {"any", TYPES_ANY, false},
};

static unsigned type_by_name(struct making *m, const struct json *name)
{
    for (size_t i = 0; i < sizeof(type_names) / sizeof(*type_names); i++)
        if (str_is(json_str(name), type_names[i].name)) {
            if (!type_names[i].standard)
                builder_warn(m, "'%s' is no type of JSON Schema; it is read as what it looks like",
                             type_names[i].name);
            return type_names[i].types;
        }
    builder_warn(m,
                 "expected string, number, integer, boolean, array, object or null, found '" STR_FMT
                 "'; anything is accepted here",
                 STR_ARG(json_str(name)));
    return TYPES_ANY;
}

static bool is_nullable(const struct making *m)
{
    return json_is_true(json_get_text(m->source, "nullable"));
}

static enum err compile_type(struct making *m, const struct json *value)
{
    unsigned types = 0;
    if (value->type == JSON_ARRAY)
        for (uint32_t i = 0; i < value->len; i++)
            types |= type_by_name(m, &value->items[i]);
    else
        types = type_by_name(m, value);
    if (is_nullable(m)) {
        types |= TYPE_BIT(JSON_NULL);
        builder_warn(
            m, "'nullable' is OpenAPI's word; null is accepted here as \"type\": [..., \"null\"] would");
    }
    if (!types)
        builder_warn(m, "an empty list of types accepts nothing");
    m->node->types &= (uint8_t)types;
    return OK;
}

/* ---- values ---- */

static struct op *choices_op(struct making *m)
{
    return fresh_op(m, OP_CHOICES, is_nullable(m) ? TYPES_ANY & ~TYPE_BIT(JSON_NULL) : TYPES_ANY);
}

static bool is_among(const struct json *const *list, uint32_t count, const struct json *v)
{
    for (uint32_t i = 0; i < count; i++)
        if (json_equal(list[i], v))
            return true;
    return false;
}

static enum err compile_enum(struct making *m, const struct json *value)
{
    if (value->type != JSON_ARRAY) {
        builder_warn(m, "expected a list of values; the keyword is ignored");
        return OK;
    }
    if (value->len == 0)
        builder_warn(m, "an empty list of values accepts nothing");
    const struct json **list = ARENA_ARRAY(m->c->arena, const struct json *, value->len);
    struct choices choices = {.at = list, .strings = true};
    for (uint32_t i = 0; i < value->len; i++) {
        const struct json *v = &value->items[i];
        if (is_among(list, choices.count, v)) {
            builder_warn(m, "the value at %u is there twice", i);
            continue;
        }
        choices.strings &= v->type == JSON_STRING;
        list[choices.count++] = v;
    }
    struct op *op = choices_op(m);
    op->choices = choices;
    op->said = value;
    return OK;
}

static enum err compile_const(struct making *m, const struct json *value)
{
    const struct json **list = ARENA_ARRAY(m->c->arena, const struct json *, 1);
    list[0] = value;
    struct op *op = choices_op(m);
    op->choices = (struct choices){list, 1, value->type == JSON_STRING, true};
    op->said = value;
    return OK;
}

/* ---- numbers ---- */

static enum err add_bound(struct making *m, enum op_code code, const struct json *value, bool exclusive)
{
    if (value->type != JSON_NUMBER) {
        builder_warn(m, "expected a number; the keyword is ignored");
        return OK;
    }
    struct op *op = fresh_op(m, code, TYPES_NUMBER);
    op->said = value;
    op->bound = (struct bound){.limit = value, .exclusive = exclusive};
    op->bound.small = json_small(value);
    return OK;
}

static enum err compile_minimum(struct making *m, const struct json *value)
{
    return add_bound(m, OP_MINIMUM, value, json_is_true(json_get_text(m->source, "exclusiveMinimum")));
}

static enum err compile_maximum(struct making *m, const struct json *value)
{
    return add_bound(m, OP_MAXIMUM, value, json_is_true(json_get_text(m->source, "exclusiveMaximum")));
}

static enum err add_exclusive(struct making *m, enum op_code code, const struct json *value)
{
    if (value->type == JSON_BOOL) {
        builder_warn(m, "a boolean is draft-04's form; since draft-06 the limit itself stands here");
        return OK;
    }
    return add_bound(m, code, value, true);
}

static enum err compile_exclusive_minimum(struct making *m, const struct json *value)
{
    return add_exclusive(m, OP_MINIMUM, value);
}

static enum err compile_exclusive_maximum(struct making *m, const struct json *value)
{
    return add_exclusive(m, OP_MAXIMUM, value);
}

static enum err compile_multiple_of(struct making *m, const struct json *value)
{
    static const struct json zero = {.type = JSON_NUMBER, .integral = true, .len = 1, .text = "0"};
    if (value->type != JSON_NUMBER || json_number_cmp(value, &zero) <= 0)
        builder_warn(m, "expected a number above 0; the keyword is ignored");
    else
        fresh_op(m, OP_MULTIPLE, TYPES_NUMBER)->said = value;
    return OK;
}

/* ---- counts ---- */

static const struct {
    const char *minimum, *maximum;
    unsigned types;
} counts[] = {
    {"minLength", "maxLength", TYPE_BIT(JSON_STRING)},
    {"minItems", "maxItems", TYPE_BIT(JSON_ARRAY)},
    {"minProperties", "maxProperties", TYPE_BIT(JSON_OBJECT)},
};

static enum err compile_count(struct making *m, const struct json *value)
{
    int64_t n;
    if (!json_int(value, &n) || n < 0) {
        builder_warn(m, "expected a whole number from 0 on; the keyword is ignored");
        return OK;
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        bool low = strcmp(m->keyword, counts[i].minimum) == 0;
        if (!low && strcmp(m->keyword, counts[i].maximum) != 0)
            continue;
        struct op *op = builder_op(m, OP_COUNT, counts[i].types);
        *(low ? &op->count.min : &op->count.max) = (uint64_t)n;
    }
    return OK;
}

static enum err compile_unique(struct making *m, const struct json *value)
{
    if (json_is_true(value))
        fresh_op(m, OP_UNIQUE, TYPE_BIT(JSON_ARRAY));
    return OK;
}

/* ---- strings ---- */

static enum err compile_pattern(struct making *m, const struct json *value)
{
    if (value->type != JSON_STRING)
        return builder_refuse(m, "a regular expression", value);
    struct pattern *pattern;
    enum err err = pattern_compile(m->c->arena, json_str(value), &pattern, m->c->why);
    if (err) {
        err_prefix(m->c->why, keyword_pointer(m).at);
        return err;
    }
    struct op *op = fresh_op(m, OP_PATTERN, TYPE_BIT(JSON_STRING));
    op->pattern = pattern;
    op->said = value;
    return OK;
}

static enum err compile_format(struct making *m, const struct json *value)
{
    bool annotation = m->c->options && m->c->options->annotate_format;
    const struct format *format = format_find(json_str(value));
    if (!format || (annotation && !m->place->resource->dialect.asserts_format))
        return OK; /* unknown ones are common (int32, uuid4) and annotate */
    struct op *op = fresh_op(m, OP_FORMAT, TYPE_BIT(JSON_STRING));
    op->format = format;
    op->said = value;
    return OK;
}

/* ---- the table, sorted by name ---- */

#define CORE        VOCABULARY_CORE
#define APPLICATOR  VOCABULARY_APPLICATOR
#define UNEVALUATED VOCABULARY_UNEVALUATED
#define VALIDATION  VOCABULARY_VALIDATION
#define FORMAT      VOCABULARY_FORMAT

static const struct keyword keywords[] = {
    {"$defs", DRAFTS_ALL, CORE, SHAPE_MAP, NULL},
    {"$dynamicRef", DRAFT_2020, CORE, SHAPE_NONE, compile_dynamic_ref},
    {"$recursiveRef", DRAFT_2019, CORE, SHAPE_NONE, compile_recursive_ref},
    {"$ref", DRAFTS_ALL, CORE, SHAPE_NONE, compile_ref},
    {"additionalItems", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, NULL},
    {"additionalProperties", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, compile_additional_properties},
    {"allOf", DRAFTS_ALL, APPLICATOR, SHAPE_LIST, compile_schema_list},
    {"anyOf", DRAFTS_ALL, APPLICATOR, SHAPE_LIST, compile_schema_list},
    {"const", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_const},
    {"contains", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, compile_contains},
    {"definitions", DRAFTS_ALL, CORE, SHAPE_MAP, NULL},
    {"dependencies", DRAFTS_ALL, APPLICATOR, SHAPE_MAP_OR_NAMES, compile_dependencies},
    {"dependentRequired", DRAFTS_SINCE_2019, VALIDATION, SHAPE_NONE, compile_dependent_required},
    {"dependentSchemas", DRAFTS_SINCE_2019, APPLICATOR, SHAPE_MAP, compile_dependent_schemas},
    {"else", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, NULL},
    {"enum", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_enum},
    {"exclusiveMaximum", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_exclusive_maximum},
    {"exclusiveMinimum", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_exclusive_minimum},
    {"format", DRAFTS_ALL, FORMAT, SHAPE_NONE, compile_format},
    {"if", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, compile_if},
    {"items", DRAFTS_ALL, APPLICATOR, SHAPE_ONE_OR_LIST, compile_items},
    {"maxItems", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_count},
    {"maxLength", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_count},
    {"maxProperties", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_count},
    {"maximum", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_maximum},
    {"minItems", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_count},
    {"minLength", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_count},
    {"minProperties", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_count},
    {"minimum", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_minimum},
    {"multipleOf", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_multiple_of},
    {"not", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, compile_not},
    {"oneOf", DRAFTS_ALL, APPLICATOR, SHAPE_LIST, compile_schema_list},
    {"pattern", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_pattern},
    {"patternProperties", DRAFTS_ALL, APPLICATOR, SHAPE_MAP, compile_pattern_properties},
    {"prefixItems", DRAFT_2020, APPLICATOR, SHAPE_LIST, compile_prefix_items},
    {"properties", DRAFTS_ALL, APPLICATOR, SHAPE_MAP, compile_properties},
    {"propertyNames", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, compile_property_names},
    {"required", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_required},
    {"then", DRAFTS_ALL, APPLICATOR, SHAPE_ONE, NULL},
    {"type", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_type},
    {"unevaluatedItems", DRAFTS_SINCE_2019, UNEVALUATED, SHAPE_ONE, compile_unevaluated},
    {"unevaluatedProperties", DRAFTS_SINCE_2019, UNEVALUATED, SHAPE_ONE, compile_unevaluated},
    {"uniqueItems", DRAFTS_ALL, VALIDATION, SHAPE_NONE, compile_unique},
};

static int compare_name(const void *name, const void *keyword)
{
    return str_cmp(*(const struct str *)name, str_of(((const struct keyword *)keyword)->name));
}

const struct keyword *keyword_find(const struct dialect *dialect, struct str name)
{
    const struct keyword *k =
        bsearch(&name, keywords, sizeof(keywords) / sizeof(*keywords), sizeof(*keywords), compare_name);
    return k && (k->drafts & dialect->draft) && (k->vocabulary & dialect->vocabularies) ? k : NULL;
}

/* ---- one node ---- */

static enum err compile_keyword(struct making *m, const struct json_member *member)
{
    const struct keyword *k = keyword_find(&m->place->resource->dialect, member->key);
    if (!k || !k->compile)
        return OK;
    m->keyword = k->name;
    return k->compile(m, &member->value);
}

/* Evaluation runs in the order of the codes. */
static void sort_ops(struct making *m)
{
    for (size_t i = 1; i < m->op_count; i++) {
        struct op op = m->ops[i];
        size_t at = i;
        for (; at > 0 && m->ops[at - 1].code > op.code; at--)
            m->ops[at] = m->ops[at - 1];
        m->ops[at] = op;
    }
}

static void finish(struct making *m)
{
    if (m->props)
        compile_props_finish(m);
    sort_ops(m);
    struct op *ops = ARENA_ARRAY(m->c->arena, struct op, m->op_count);
    memcpy(ops, m->ops, m->op_count * sizeof(*ops));
    m->node->ops = ops;
    m->node->op_count = (uint16_t)m->op_count;
}

static enum err compile_object(struct making *m)
{
    const struct json *ref = json_get_text(m->source, "$ref");
    if (m->place->resource->dialect.draft == DRAFT_7 && json_is(ref, JSON_STRING)) {
        m->keyword = "$ref";
        return compile_ref(m, ref);
    }
    enum err err = OK;
    for (uint32_t i = 0; i < m->source->len && !err; i++)
        err = compile_keyword(m, &m->source->members[i]);
    return err;
}

enum err compile_node(struct compiler *c, struct built *built)
{
    const struct json *source = built->place->source;
    built->node.types = source->type == JSON_BOOL && !source->truth ? 0 : TYPES_ANY;
    if (source->type == JSON_BOOL)
        return OK;
    struct making m = {.c = c, .place = built->place, .node = &built->node, .source = source, .keyword = ""};
    enum err err = compile_object(&m);
    if (!err)
        finish(&m);
    return err;
}

/*
 * The table of keywords, and those that look at one value alone. Small faults
 * of real-world schemas are understood, with a warning.
 */
#include "schema/compile.h"

/* Those of the standard, and common names from programming languages. */
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

static unsigned type_by_name(struct node_builder *b, const struct json *name)
{
    for (size_t i = 0; i < sizeof(type_names) / sizeof(*type_names); i++)
        if (str_is(json_str(name), type_names[i].name)) {
            if (!type_names[i].standard)
                builder_warn(b, "'%s' is no type of JSON Schema; it is read as what it looks like",
                             type_names[i].name);
            return type_names[i].types;
        }
    builder_warn(b,
                 "expected string, number, integer, boolean, array, object or null, found '" STR_FMT
                 "'; anything is accepted here",
                 STR_ARG(json_str(name)));
    return TYPES_ANY;
}

static bool is_nullable(const struct node_builder *b)
{
    return json_is_true(json_get_text(b->source, "nullable"));
}

/* Strings alone; in a list, at least one. */
static bool names_types(const struct json *value)
{
    bool names = value->type == JSON_STRING || (value->type == JSON_ARRAY && value->len);
    for (uint32_t i = 0; names && value->type == JSON_ARRAY && i < value->len; i++)
        names = value->items[i].type == JSON_STRING;
    return names;
}

static enum err compile_type(struct node_builder *b, const struct json *value)
{
    unsigned types = 0;
    if (b->c->faults && !names_types(value)) {
        builder_ignore(b, "expected the name of a type, or a list of them");
        return OK;
    }
    if (value->type == JSON_ARRAY)
        for (uint32_t i = 0; i < value->len; i++)
            types |= type_by_name(b, &value->items[i]);
    else
        types = type_by_name(b, value);
    if (is_nullable(b)) {
        types |= TYPE_BIT(JSON_NULL);
        builder_warn(
            b, "'nullable' is OpenAPI's word; null is accepted here as \"type\": [..., \"null\"] would");
    }
    if (!types)
        builder_warn(b, "an empty list of types accepts nothing");
    b->node->types &= (uint8_t)types;
    return OK;
}

/* enum and const. */
static enum err compile_choices(struct node_builder *b, const struct json *value)
{
    bool constant = strcmp(b->keyword, "const") == 0;
    if (!constant && value->type != JSON_ARRAY) {
        builder_ignore(b, "expected a list of values");
        return OK;
    }
    if (!constant && value->len == 0 && b->c->faults) {
        builder_ignore(b, "an empty list of values accepts nothing");
        return OK;
    }
    if (!constant && value->len == 0)
        builder_warn(b, "an empty list of values accepts nothing");
    uint32_t count = constant ? 1 : value->len;
    struct choices choices = choices_new(b->c->arena, count);
    choices.constant = constant;
    for (uint32_t i = 0; i < count; i++) {
        const struct json *v = constant ? value : &value->items[i];
        if (!choices_add(&choices, v))
            builder_warn(b, "the value at %u is there twice", i);
    }
    unsigned types = is_nullable(b) ? TYPES_ANY & ~TYPE_BIT(JSON_NULL) : TYPES_ANY;
    struct op *op = builder_add_op(b, OP_CHOICES, types);
    op->choices = choices;
    op->value = value;
    return OK;
}

/* minimum, maximum and their exclusive forms. */
static enum err compile_bound(struct node_builder *b, const struct json *value)
{
    bool maximum = strstr(b->keyword, "aximum"), exclusive = str_starts(str_of(b->keyword), "exclusive");
    if (exclusive && value->type == JSON_BOOL) {
        builder_warn(b, "a boolean is draft-04's form; since draft-06 the limit itself is the value");
        return OK;
    }
    if (value->type != JSON_NUMBER) {
        builder_ignore(b, "expected a number");
        return OK;
    }
    const struct json *draft_04 = json_get_text(b->source, maximum ? "exclusiveMaximum" : "exclusiveMinimum");
    struct op *op = builder_add_op(b, maximum ? OP_MAXIMUM : OP_MINIMUM, TYPES_NUMBER);
    op->value = value;
    op->bound = (struct bound){
        .limit = value, .small = json_small(value), .exclusive = exclusive || json_is_true(draft_04)};
    return OK;
}

static enum err compile_multiple_of(struct node_builder *b, const struct json *value)
{
    static const struct json zero = {.type = JSON_NUMBER, .integral = true, .len = 1, .text = "0"};
    if (value->type != JSON_NUMBER || json_number_cmp(value, &zero) <= 0)
        builder_ignore(b, "expected a number above 0");
    else
        builder_add_op(b, OP_MULTIPLE, TYPES_NUMBER)->value = value;
    return OK;
}

static const struct {
    const char *minimum, *maximum;
    unsigned types;
} counts[] = {
    {"minLength", "maxLength", TYPE_BIT(JSON_STRING)},
    {"minItems", "maxItems", TYPE_BIT(JSON_ARRAY)},
    {"minProperties", "maxProperties", TYPE_BIT(JSON_OBJECT)},
};

static enum err compile_count(struct node_builder *b, const struct json *value)
{
    int64_t n;
    size_t i = 0;
    if (!json_int(value, &n) || n < 0) {
        builder_ignore(b, "expected a whole number from 0 on");
        return OK;
    }
    while (strcmp(b->keyword, counts[i].minimum) != 0 && strcmp(b->keyword, counts[i].maximum) != 0)
        i++;
    struct op *op = builder_op(b, OP_COUNT, counts[i].types);
    *(strcmp(b->keyword, counts[i].minimum) == 0 ? &op->count.min : &op->count.max) = (uint64_t)n;
    return OK;
}

static enum err compile_unique(struct node_builder *b, const struct json *value)
{
    if (json_is_true(value))
        builder_add_op(b, OP_UNIQUE, TYPE_BIT(JSON_ARRAY));
    return OK;
}

static enum err compile_pattern(struct node_builder *b, const struct json *value)
{
    if (value->type != JSON_STRING)
        return builder_refuse(b, "a regular expression", value);
    struct pattern *pattern;
    enum err err = builder_pattern(b, json_str(value), &pattern);
    if (err) {
        err_prefix(b->c->why, builder_pointer(b).at);
        return err;
    }
    struct op *op = builder_add_op(b, OP_PATTERN, TYPE_BIT(JSON_STRING));
    op->pattern = pattern;
    op->value = value;
    return OK;
}

static enum err compile_format(struct node_builder *b, const struct json *value)
{
    bool annotation = b->c->options && b->c->options->annotate_format;
    const struct format *format = format_find(json_str(value));
    if (!format || (annotation && !b->subschema->resource->dialect.asserts_format))
        return OK; /* unknown ones are common (int32, uuid4) and annotate */
    struct op *op = builder_add_op(b, OP_FORMAT, TYPE_BIT(JSON_STRING));
    op->format = format;
    op->value = value;
    return OK;
}

#define CORE        VOCABULARY_CORE
#define APPLICATOR  VOCABULARY_APPLICATOR
#define UNEVALUATED VOCABULARY_UNEVALUATED
#define VALIDATION  VOCABULARY_VALIDATION
#define FORMAT      VOCABULARY_FORMAT

static const struct keyword table[] = {
    {"$defs", DRAFTS_ALL, CORE, HOLDS_MAP, NULL},
    {"$dynamicRef", DRAFT_2020, CORE, HOLDS_NONE, compile_dynamic_ref},
    {"$recursiveRef", DRAFT_2019, CORE, HOLDS_NONE, compile_dynamic_ref},
    {"$ref", DRAFTS_ALL, CORE, HOLDS_NONE, compile_ref},
    {"additionalItems", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, NULL},
    {"additionalProperties", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_additional_properties},
    {"allOf", DRAFTS_ALL, APPLICATOR, HOLDS_LIST, compile_schema_list},
    {"anyOf", DRAFTS_ALL, APPLICATOR, HOLDS_LIST, compile_schema_list},
    {"const", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_choices},
    {"contains", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_contains},
    {"definitions", DRAFTS_ALL, CORE, HOLDS_MAP, NULL},
    {"dependencies", DRAFTS_ALL, APPLICATOR, HOLDS_MAP_OR_NAMES, compile_dependencies},
    {"dependentRequired", DRAFTS_SINCE_2019, VALIDATION, HOLDS_NONE, compile_dependencies},
    {"dependentSchemas", DRAFTS_SINCE_2019, APPLICATOR, HOLDS_MAP, compile_dependencies},
    {"else", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, NULL},
    {"enum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_choices},
    {"exclusiveMaximum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound},
    {"exclusiveMinimum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound},
    {"format", DRAFTS_ALL, FORMAT, HOLDS_NONE, compile_format},
    {"if", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_if},
    {"items", DRAFTS_ALL, APPLICATOR, HOLDS_ONE_OR_LIST, compile_items},
    {"maxItems", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count},
    {"maxLength", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count},
    {"maxProperties", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count},
    {"maximum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound},
    {"minItems", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count},
    {"minLength", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count},
    {"minProperties", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_count},
    {"minimum", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_bound},
    {"multipleOf", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_multiple_of},
    {"not", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_one_schema},
    {"oneOf", DRAFTS_ALL, APPLICATOR, HOLDS_LIST, compile_schema_list},
    {"pattern", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_pattern},
    {"patternProperties", DRAFTS_ALL, APPLICATOR, HOLDS_MAP, compile_pattern_properties},
    {"prefixItems", DRAFT_2020, APPLICATOR, HOLDS_LIST, compile_prefix_items},
    {"properties", DRAFTS_ALL, APPLICATOR, HOLDS_MAP, compile_properties},
    {"propertyNames", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, compile_one_schema},
    {"required", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_required},
    {"then", DRAFTS_ALL, APPLICATOR, HOLDS_ONE, NULL},
    {"type", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_type},
    {"unevaluatedItems", DRAFTS_SINCE_2019, UNEVALUATED, HOLDS_ONE, compile_one_schema},
    {"unevaluatedProperties", DRAFTS_SINCE_2019, UNEVALUATED, HOLDS_ONE, compile_one_schema},
    {"uniqueItems", DRAFTS_ALL, VALIDATION, HOLDS_NONE, compile_unique},
};

const struct keyword_table keyword_table = {table, sizeof(table) / sizeof(*table)};

const struct keyword *keyword_in_table(struct str name)
{
    for (size_t i = 0; i < keyword_table.count; i++)
        if (str_is(name, table[i].name))
            return &table[i];
    return NULL;
}

/* In draft-07 $ref hides every keyword beside it. */
static enum err compile_keywords(struct node_builder *b)
{
    const struct dialect *dialect = &b->subschema->resource->dialect;
    bool ref_only = dialect->draft == DRAFT_7 && json_is(json_get_text(b->source, "$ref"), JSON_STRING);
    enum err err = OK;
    for (uint32_t i = 0; i < b->source->len && !err; i++) {
        const struct json_member *m = &b->source->members[i];
        const struct keyword *k = keyword_find(b->c, dialect, m->key);
        if (!k || !k->compile || (ref_only && k->compile != compile_ref))
            continue;
        b->keyword = k->name;
        err = k->compile(b, &m->value);
        /* In draft-07 the keywords beside a reference would come into force without it. */
        bool of_pattern = k->compile == compile_pattern || k->compile == compile_pattern_properties;
        if (err == ERR_SCHEMA || (err && of_pattern))
            err = compile_fault(b->c, b->source, ref_only ? NULL : k->name, builder_pointer(b), err);
    }
    return err;
}

enum err compile_node(struct compiler *c, struct node_entry *entry)
{
    const struct json *source = entry->subschema->source;
    entry->node.types = source->type == JSON_BOOL && !source->truth ? 0 : TYPES_ANY;
    if (source->type == JSON_BOOL)
        return OK;
    struct node_builder b = {
        .c = c, .subschema = entry->subschema, .node = &entry->node, .source = source, .keyword = ""};
    enum err err = compile_keywords(&b);
    if (err)
        return err;
    if (b.props)
        compile_props_finish(&b);
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
    entry->node.ops = ops;
    entry->node.op_count = (uint16_t)b.op_count;
    return OK;
}

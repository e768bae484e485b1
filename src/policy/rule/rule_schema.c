/* See rule_schema.h. Only what is asserted whatever else stands beside it is read. */
#include "policy/rule/rule_schema.h"
#include "base/suggest.h"

#define REFERENCES_MAX 8   /* followed in a row */
#define NESTING_MAX    8   /* of anyOf within allOf within … */
#define NAMES_MAX      256 /* candidates for "did you mean" */

static bool has(const struct json *schema, const char *keyword)
{
    return json_get_text(schema, keyword) != NULL;
}

/* ---- where in the schema --------------------------------------------------------------- */

/* "#/$defs/Action", by one step a segment; NULL for every other reference. */
static const struct json *follow(const struct json *root, struct str reference)
{
    if (!str_starts(reference, "#/"))
        return NULL;
    struct str rest = str_from(reference, 2);
    while (root && rest.len) {
        const char *slash = memchr(rest.at, '/', rest.len);
        struct str step = {rest.at, slash ? (size_t)(slash - rest.at) : rest.len};
        if (memchr(step.at, '~', step.len) || memchr(step.at, '%', step.len))
            return NULL;
        root = json_get(root, step);
        rest = str_from(rest, step.len + 1);
    }
    return root;
}

static const struct json *resolve(const struct json *root, const struct json *schema)
{
    for (int i = 0; i < REFERENCES_MAX && has(schema, "$ref"); i++)
        schema = follow(root, json_str(json_get_text(schema, "$ref")));
    return has(schema, "$ref") || !json_is(schema, JSON_OBJECT) ? NULL : schema;
}

/* No part of it names properties elsewhere. */
static bool names_all_here(const struct json *object)
{
    static const char *const elsewhere[] = {
        "$dynamicRef",       "$recursiveRef",    "allOf",       "anyOf", "oneOf", "if", "then", "else", "not",
        "patternProperties", "dependentSchemas", "dependencies"};
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        if (has(object, elsewhere[i]))
            return false;
    return true;
}

static bool is_closed(const struct json *object)
{
    const struct json *rest = json_get_text(object, "additionalProperties");
    return json_is(rest, JSON_BOOL) && !rest->truth;
}

/* The object that holds the last name of the path; *name: that one. A name with a dot in it wins over the
 * way. */
static const struct json *holder(const struct rule_schema *s, struct str path, struct str *name)
{
    const struct json *object = resolve(s->root, s->root);
    const char *dot;
    *name = path;
    while (object && !json_get(json_get_text(object, "properties"), *name) && name->len &&
           (dot = memchr(name->at, '.', name->len))) {
        struct str step = {name->at, (size_t)(dot - name->at)};
        const struct json *inner = json_get(json_get_text(object, "properties"), step);
        if (!inner) {
            *name = step; /* it is this one that is not there */
            return object;
        }
        object = resolve(s->root, inner);
        *name = str_from(*name, step.len + 1);
    }
    return object;
}

/* The argument's own schema, or NULL. */
static const struct json *schema_at(const struct rule_schema *s, struct str path)
{
    struct str name;
    const struct json *object = holder(s, path, &name);
    return resolve(s->root, json_get(json_get_text(object, "properties"), name));
}

enum rule_naming rule_schema_naming(const struct rule_schema *s, struct str path, struct str *closest)
{
    struct str name, names[NAMES_MAX];
    const struct json *object = holder(s, path, &name), *properties = json_get_text(object, "properties");
    size_t count = 0;
    *closest = STR_NONE;
    if (!json_is(properties, JSON_OBJECT))
        return NAMING_UNTOLD;
    if (json_get(properties, name))
        return NAMING_KNOWN;
    for (uint32_t i = 0; i < properties->len && count < NAMES_MAX; i++)
        names[count++] = properties->members[i].key;
    *closest = suggest_closest(name, names, count);
    if (is_closed(object) && !has(object, "patternProperties"))
        return NAMING_CLOSED;
    if (!names_all_here(object) || json_is(json_get_text(object, "additionalProperties"), JSON_OBJECT) ||
        !properties->len)
        return NAMING_UNTOLD;
    return s->keeps_strangers_out && object == resolve(s->root, s->root) ? NAMING_CLOSED : NAMING_STRANGE;
}

bool rule_schema_requires(const struct rule_schema *s, struct str path)
{
    const struct json *object = resolve(s->root, s->root);
    return json_array_has(json_get_text(object, "required"), path) &&
           !rule_schema_allows(s, path, &(struct json){.type = JSON_NULL});
}

bool rule_schema_is_conditional(const struct rule_schema *s)
{
    const struct json *root = resolve(s->root, s->root);
    return s->root && (!root || !names_all_here(root) || has(root, "dependentRequired"));
}

bool rule_schema_is_plain(const struct rule_schema *s, struct str path)
{
    const struct json *schema = schema_at(s, path);
    return schema && names_all_here(schema);
}

/* ---- which values ------------------------------------------------------------------------- */

static bool is_of_type(struct str type, const struct json *value)
{
    static const char *const known[] = {"null", "boolean", "number", "integer", "string", "array", "object"};
    bool is_known = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        is_known = is_known || str_is(type, known[i]);
    if (!is_known)
        return true;
    if (str_is(type, "integer"))
        return value->type == JSON_NUMBER && value->integral;
    return str_is(type, json_type_name((enum json_type)value->type));
}

static bool type_allows(const struct json *schema, const struct json *value)
{
    const struct json *type = json_get_text(schema, "type");
    if (value->type == JSON_NULL && json_is_true(json_get_text(schema, "nullable")))
        return true;
    if (json_is(type, JSON_STRING))
        return is_of_type(json_str(type), value);
    for (uint32_t i = 0; json_is(type, JSON_ARRAY) && i < type->len; i++)
        if (is_of_type(json_str(&type->items[i]), value))
            return true;
    return !json_is(type, JSON_ARRAY);
}

static bool choices_allow(const struct json *schema, const struct json *value)
{
    const struct json *only = json_get_text(schema, "const"), *choices = json_get_text(schema, "enum");
    if (only && !json_equal(only, value))
        return false;
    for (uint32_t i = 0; json_is(choices, JSON_ARRAY) && i < choices->len; i++)
        if (json_equal(&choices->items[i], value))
            return true;
    return !json_is(choices, JSON_ARRAY);
}

/* One end: "minimum" and "exclusiveMinimum", which draft-4 writes as true beside the other. */
static struct bound end_of(const struct json *schema, const char *plain, const char *exclusive, int narrower)
{
    const struct json *at = json_get_text(schema, plain), *beyond = json_get_text(schema, exclusive);
    struct bound bound = {.value = json_is(at, JSON_NUMBER) ? at : NULL, .open = json_is_true(beyond)};
    if (json_is(beyond, JSON_NUMBER) &&
        (!bound.value || json_number_cmp(beyond, bound.value) * narrower >= 0))
        bound = (struct bound){.value = beyond, .open = true};
    return bound;
}

static struct rule_condition range_of(const struct json *schema)
{
    return (struct rule_condition){.kind = COND_NUMBERS,
                                   .low = end_of(schema, "minimum", "exclusiveMinimum", 1),
                                   .high = end_of(schema, "maximum", "exclusiveMaximum", -1)};
}

static bool allows(const struct json *root, const struct json *schema, const struct json *value, int depth);

/* How many of the alternatives allow it. */
static uint32_t allowing(const struct json *root, const struct json *list, const struct json *value,
                         int depth)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->len; i++)
        count += allows(root, &list->items[i], value, depth + 1);
    return count;
}

static bool allows(const struct json *root, const struct json *schema, const struct json *value, int depth)
{
    schema = resolve(root, schema);
    if (!schema || depth > NESTING_MAX)
        return true;
    struct rule_condition range = range_of(schema);
    const struct json *any = json_get_text(schema, "anyOf"), *one = json_get_text(schema, "oneOf"),
                      *all = json_get_text(schema, "allOf");
    return type_allows(schema, value) && choices_allow(schema, value) &&
           (value->type != JSON_NUMBER || condition_takes(&range, value)) &&
           (!json_is(any, JSON_ARRAY) || allowing(root, any, value, depth)) &&
           (!json_is(one, JSON_ARRAY) || allowing(root, one, value, depth)) &&
           (!json_is(all, JSON_ARRAY) || allowing(root, all, value, depth) == all->len);
}

bool rule_schema_allows(const struct rule_schema *s, struct str path, const struct json *value)
{
    return allows(s->root, schema_at(s, path), value, 0);
}

const struct json *rule_schema_choices(const struct rule_schema *s, struct str path)
{
    static const struct json both[] = {{.type = JSON_BOOL, .truth = true}, {.type = JSON_BOOL}};
    static const struct json booleans = {.type = JSON_ARRAY, .len = 2, .items = both};
    const struct json *schema = schema_at(s, path), *choices = json_get_text(schema, "enum");
    if (json_is(choices, JSON_ARRAY))
        return choices;
    return str_is(json_str(json_get_text(schema, "type")), "boolean") && !has(schema, "nullable") ? &booleans
                                                                                                  : NULL;
}

void rule_schema_bounds(const struct rule_schema *s, struct str path, struct bound *low, struct bound *high,
                        bool *whole)
{
    const struct json *schema = schema_at(s, path);
    struct rule_condition range = range_of(schema);
    *low = range.low;
    *high = range.high;
    *whole = str_is(json_str(json_get_text(schema, "type")), "integer");
}

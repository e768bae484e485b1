/* One walk over the schema; each keyword's fate stands in one table. */
#include "catalog/openai_strict.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"

/* A walk: where we are, for the sentence that ends it. */
struct walk {
    struct arena *arena;
    struct buf path;
    struct why *why;
};

static bool translate(struct walk *walk, const struct json *schema, struct json *out);

static bool give_up(struct walk *walk, const char *reason)
{
    err_set(walk->why, ERR_SCHEMA, "%.*s: %s", (int)walk->path.len, walk->path.at ? walk->path.at : "",
            reason);
    return false;
}

static size_t enter(struct walk *walk, struct str name)
{
    size_t before = walk->path.len;
    buf_byte(&walk->path, '/');
    buf_str(&walk->path, name);
    return before;
}

/* ---- keywords ------------------------------------------------------------- */

typedef bool translate_keyword(struct walk *walk, const struct json *value, struct json *out);

static bool keep(struct walk *walk, const struct json *value, struct json *out)
{
    (void)walk;
    *out = *value;
    return true;
}

static bool one(struct walk *walk, const struct json *value, struct json *out)
{
    if (!json_is(value, JSON_OBJECT))
        return give_up(walk, "expected one schema, which strict mode wants for every item");
    return translate(walk, value, out);
}

static bool each_item(struct walk *walk, const struct json *value, struct json *out)
{
    if (!json_is(value, JSON_ARRAY))
        return give_up(walk, "expected an array of schemas");
    struct json *items = ARENA_ARRAY(walk->arena, struct json, value->len + 1);
    for (uint32_t i = 0; i < value->len; i++)
        if (!translate(walk, &value->items[i], &items[i]))
            return false;
    *out = json_array(items, value->len);
    return true;
}

static bool each_member(struct walk *walk, const struct json *value, struct json *out)
{
    if (!json_is(value, JSON_OBJECT))
        return give_up(walk, "expected an object of schemas");
    struct json_member *members = ARENA_ARRAY(walk->arena, struct json_member, value->len + 1);
    for (uint32_t i = 0; i < value->len; i++) {
        size_t before = enter(walk, value->members[i].key);
        members[i] = value->members[i];
        if (!translate(walk, &value->members[i].value, &members[i].value))
            return false;
        walk->path.len = before;
    }
    *out = json_object(walk->arena, members, value->len);
    return true;
}

static bool format(struct walk *walk, const struct json *value, struct json *out)
{
    static const char *const known[] = {"date-time", "time", "date", "duration", "email",
                                        "hostname",  "ipv4", "ipv6", "uuid"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_is(json_str(value), known[i]))
            return keep(walk, value, out);
    *out = json_null(); /* left out */
    return true;
}

static bool all_of(struct walk *walk, const struct json *value, struct json *out)
{
    (void)value, (void)out;
    return give_up(walk, "allOf cannot be said in strict mode: merge its schemas into one");
}

static bool tuple(struct walk *walk, const struct json *value, struct json *out)
{
    (void)value, (void)out;
    return give_up(walk, "a list with a schema for each place cannot be said in strict mode: use an object");
}

static bool pattern_properties(struct walk *walk, const struct json *value, struct json *out)
{
    (void)value, (void)out;
    return give_up(walk,
                   "patternProperties cannot be said in strict mode: name the properties, or use a list of "
                   "key and value");
}

/* What is not here is left out. `required` and `additionalProperties` are written by close_object. */
static const struct keyword {
    const char *name, *becomes;
    translate_keyword *translate;
} keywords[] = {
    {"type", "type", keep},
    {"description", "description", keep},
    {"title", "title", keep},
    {"enum", "enum", keep},
    {"const", "const", keep},
    {"pattern", "pattern", keep},
    {"minimum", "minimum", keep},
    {"maximum", "maximum", keep},
    {"exclusiveMinimum", "exclusiveMinimum", keep},
    {"exclusiveMaximum", "exclusiveMaximum", keep},
    {"multipleOf", "multipleOf", keep},
    {"minItems", "minItems", keep},
    {"maxItems", "maxItems", keep},
    {"$ref", "$ref", keep},
    {"format", "format", format},
    {"items", "items", one},
    {"anyOf", "anyOf", each_item},
    {"oneOf", "anyOf", each_item},
    {"properties", "properties", each_member},
    {"$defs", "$defs", each_member},
    {"definitions", "definitions", each_member},
    {"allOf", NULL, all_of},
    {"prefixItems", NULL, tuple},
    {"patternProperties", NULL, pattern_properties},
};

static const struct keyword *keyword_named(struct str name)
{
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
        if (str_is(name, keywords[i].name))
            return &keywords[i];
    return NULL;
}

/* ---- objects -------------------------------------------------------------- */

static bool has_type(const struct json *schema, const char *name)
{
    const struct json *type = json_get_text(schema, "type");
    return str_is(json_str(type), name) || json_array_has(type, str_of(name));
}

static struct json with_null(struct arena *arena, const struct json *array, struct json null)
{
    struct json *items = ARENA_ARRAY(arena, struct json, array->len + 1);
    memcpy(items, array->items, array->len * sizeof(*items));
    items[array->len] = null;
    return json_array(items, array->len + 1);
}

static struct json or_null(struct arena *arena, const struct json *schema)
{
    struct json *branches = ARENA_ARRAY(arena, struct json, 2);
    struct json_member null_type = json_member(STR_LIT("type"), json_string(STR_LIT("null")));
    branches[0] = *schema;
    branches[1] = json_object(arena, &null_type, 1);
    struct json_member any = json_member(STR_LIT("anyOf"), json_array(branches, 2));
    return json_object(arena, &any, 1);
}

/* An optional property becomes one that may be null; null is then read as absent (coerce). */
static struct json nullable(struct arena *arena, const struct json *schema)
{
    const struct json *type = json_get_text(schema, "type"), *choices = json_get_text(schema, "enum");
    struct json single, types, fresh = *schema;
    if (has_type(schema, "null"))
        return fresh;
    if (!type || json_get_text(schema, "const"))
        return or_null(arena, schema);
    single = json_is(type, JSON_ARRAY) ? *type : json_array(type, 1);
    types = with_null(arena, &single, json_string(STR_LIT("null")));
    fresh = json_with(arena, &fresh, STR_LIT("type"), types);
    if (json_is(choices, JSON_ARRAY))
        fresh = json_with(arena, &fresh, STR_LIT("enum"), with_null(arena, choices, json_null()));
    return fresh;
}

static bool close_object(struct walk *walk, const struct json *schema, struct json *out)
{
    struct arena *arena = walk->arena;
    const struct json *properties = json_get_text(out, "properties"),
                      *required = json_get_text(schema, "required");
    if (json_is(json_get_text(schema, "additionalProperties"), JSON_OBJECT))
        return give_up(walk,
                       "an object with any keys cannot be said in strict mode: use a list of key and value");
    if (!properties && !json_is(json_get_text(schema, "additionalProperties"), JSON_BOOL))
        return give_up(walk, "a free-form object cannot be said in strict mode: name its properties");
    uint32_t count = properties ? properties->len : 0;
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, count + 1);
    struct json *names = ARENA_ARRAY(arena, struct json, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        members[i] = properties->members[i];
        names[i] = json_string(members[i].key);
        if (!json_array_has(required, members[i].key))
            members[i].value = nullable(arena, &members[i].value);
    }
    *out = json_with(arena, out, STR_LIT("properties"), json_object(arena, members, count));
    *out = json_with(arena, out, STR_LIT("required"), json_array(names, count));
    *out = json_with(arena, out, STR_LIT("additionalProperties"), json_bool(false));
    return true;
}

/* ---- the walk ------------------------------------------------------------- */

static bool says_what_it_is(const struct json *schema)
{
    static const char *const any_of_these[] = {"type", "enum", "const", "anyOf", "$ref"};
    for (size_t i = 0; i < sizeof(any_of_these) / sizeof(any_of_these[0]); i++)
        if (json_get_text(schema, any_of_these[i]))
            return true;
    return false;
}

static bool translate_keywords(struct walk *walk, const struct json *schema, struct json *out)
{
    struct json_member *members = ARENA_ARRAY(walk->arena, struct json_member, schema->len + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->len; i++) {
        const struct keyword *keyword = keyword_named(schema->members[i].key);
        struct json value;
        if (!keyword)
            continue;
        if (!keyword->translate(walk, &schema->members[i].value, &value))
            return false;
        if (keyword->translate != format || json_is(&value, JSON_STRING))
            members[count++] = json_member(str_of(keyword->becomes), value);
    }
    *out = json_object(walk->arena, members, count);
    return true;
}

static bool translate(struct walk *walk, const struct json *schema, struct json *out)
{
    if (!json_is(schema, JSON_OBJECT))
        return give_up(walk, "a value of any kind cannot be said in strict mode: give it a type");
    if (!translate_keywords(walk, schema, out))
        return false;
    bool is_object =
        has_type(out, "object") || (!json_get_text(out, "type") && json_get_text(out, "properties"));
    if (is_object && !json_get_text(out, "type"))
        *out = json_with(walk->arena, out, STR_LIT("type"), json_string(STR_LIT("object")));
    if (!says_what_it_is(out))
        return give_up(walk, "a value of any kind cannot be said in strict mode: give it a type");
    if (has_type(out, "array") && !json_get_text(out, "items"))
        return give_up(walk, "a list of anything cannot be said in strict mode: give it 'items'");
    return !is_object || close_object(walk, schema, out);
}

enum err openai_strict_schema(struct arena *arena, const struct json *schema, struct json *out,
                              struct why *why)
{
    struct walk walk = {.arena = arena, .path = buf_in(arena), .why = why};
    struct json fresh;
    buf_text(&walk.path, "#");
    if (!translate(&walk, schema, &fresh))
        return ERR_SCHEMA;
    if (!has_type(&fresh, "object") || json_get_text(&fresh, "anyOf"))
        return err_set(why, ERR_SCHEMA,
                       "#: strict mode wants one plain object at the root, without anyOf or oneOf");
    *out = fresh;
    return OK;
}

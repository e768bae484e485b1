/* One writer per format, and the table that names them. */
#include "catalog/provider_formats.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "catalog/definition.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/write.h"

bool plain_name_fits(struct str name)
{
    return str_is_name(name) && name.len <= PLAIN_NAME_MAX_BYTES;
}

/* ---- OpenAI's strict mode: one walk; the keyword table has the translation of each keyword ----------- */

#define NAME_MAX_BYTES 100u /* of a name in a note */

struct walk {
    struct arena *arena;
    struct buf path;                   /* of the current place, for the error */
    struct openai_strict_notes *notes; /* NULL: not wanted */
    struct why *why;
};

static void note(struct walk *walk, const char *before, struct str name, const char *after)
{
    struct openai_strict_notes *notes = walk->notes;
    if (!notes)
        return;
    if (notes->count == OPENAI_STRICT_NOTES_MAX) {
        notes->more++;
        return;
    }
    struct buf text = buf_in(walk->arena);
    buf_str(&text, buf_view(&walk->path));
    buf_text(&text, ": ");
    buf_printf(&text, "%s" STR_FMT "%s", before, STR_ARG(str_cut(name, NAME_MAX_BYTES)), after);
    notes->list[notes->count++] = buf_view(&text);
}

static bool translate(struct walk *walk, const struct json *schema, struct json *out);

static bool give_up(struct walk *walk, const char *reason)
{
    err_set(walk->why, ERR_SCHEMA, "%.*s: %s", (int)walk->path.len, walk->path.at ? walk->path.at : "",
            reason);
    return false;
}

typedef bool translate_keyword(struct walk *walk, const struct json *value, struct json *out);

static bool keep(struct walk *walk, const struct json *value, struct json *out)
{
    (void)walk;
    *out = *value;
    return true;
}

static bool translate_one(struct walk *walk, const struct json *value, struct json *out)
{
    if (!json_is(value, JSON_OBJECT))
        return give_up(walk, "expected one schema, which strict mode wants for every item");
    return translate(walk, value, out);
}

static bool translate_items(struct walk *walk, const struct json *value, struct json *out)
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

static bool translate_members(struct walk *walk, const struct json *value, struct json *out)
{
    if (!json_is(value, JSON_OBJECT))
        return give_up(walk, "expected an object of schemas");
    struct json_member *members = ARENA_ARRAY(walk->arena, struct json_member, value->len + 1);
    for (uint32_t i = 0; i < value->len; i++) {
        size_t path_len = walk->path.len;
        buf_byte(&walk->path, '/');
        buf_str(&walk->path, value->members[i].key);
        members[i] = value->members[i];
        if (!translate(walk, &value->members[i].value, &members[i].value))
            return false;
        walk->path.len = path_len;
    }
    *out = json_object(walk->arena, members, value->len);
    return true;
}

static bool keep_known_format(struct walk *walk, const struct json *value, struct json *out)
{
    static const char *const known[] = {"date-time", "time", "date", "duration", "email",
                                        "hostname",  "ipv4", "ipv6", "uuid"};
    if (STR_IS_ONE_OF(json_str(value), known))
        return keep(walk, value, out);
    note(walk, "the format '", json_str(value), "' is left out");
    *out = json_null(); /* left out */
    return true;
}

/* Keywords that are not in the table are dropped; close_object writes `required` and `additionalProperties`.
 */
static const struct keyword {
    const char *name, *becomes;
    translate_keyword *translate; /* NULL: strict mode cannot express it, for the reason in `becomes` */
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
    {"format", "format", keep_known_format},
    {"items", "items", translate_one},
    {"anyOf", "anyOf", translate_items},
    {"oneOf", "anyOf", translate_items},
    {"properties", "properties", translate_members},
    {"$defs", "$defs", translate_members},
    {"definitions", "definitions", translate_members},
    {"allOf", "allOf is not possible in strict mode: merge its schemas into one", NULL},
    {"prefixItems", "a list with a schema for each place is not possible in strict mode: use an object",
     NULL},
    {"patternProperties",
     "patternProperties is not possible in strict mode: name the properties, or use a list of key and value",
     NULL},
};

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

/* An optional property becomes required and nullable; coercion reads null as absent. */
static struct json nullable(struct arena *arena, const struct json *schema)
{
    const struct json *type = json_get_text(schema, "type"), *choices = json_get_text(schema, "enum");
    struct json out = *schema, null_string = json_string(STR_LIT("null"));
    if (has_type(schema, "null"))
        return out;
    if (!type || json_get_text(schema, "const")) {
        struct json *branches = ARENA_ARRAY(arena, struct json, 2);
        struct json_member null_type = json_member(STR_LIT("type"), null_string);
        branches[0] = *schema;
        branches[1] = json_object(arena, &null_type, 1);
        struct json_member any_of = json_member(STR_LIT("anyOf"), json_array(branches, 2));
        return json_object(arena, &any_of, 1);
    }
    struct json types = json_is(type, JSON_ARRAY) ? *type : json_array(type, 1);
    out = json_with(arena, &out, STR_LIT("type"), with_null(arena, &types, null_string));
    if (json_is(choices, JSON_ARRAY))
        out = json_with(arena, &out, STR_LIT("enum"), with_null(arena, choices, json_null()));
    return out;
}

static bool close_object(struct walk *walk, const struct json *schema, struct json *out)
{
    struct arena *arena = walk->arena;
    const struct json *properties = json_get_text(out, "properties"),
                      *required = json_get_text(schema, "required");
    if (json_is(json_get_text(schema, "additionalProperties"), JSON_OBJECT))
        return give_up(walk,
                       "an object with any keys is not possible in strict mode: use a list of key and value");
    if (!properties && !json_is(json_get_text(schema, "additionalProperties"), JSON_BOOL))
        return give_up(walk, "a free-form object is not possible in strict mode: name its properties");
    uint32_t count = properties ? properties->len : 0;
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, count + 1);
    struct json *names = ARENA_ARRAY(arena, struct json, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        members[i] = properties->members[i];
        names[i] = json_string(members[i].key);
        if (!json_array_has(required, members[i].key)) {
            members[i].value = nullable(arena, &members[i].value);
            note(walk, "'", members[i].key, "' is required, and may be null instead of left out");
        }
    }
    if (!json_is(json_get_text(schema, "additionalProperties"), JSON_BOOL) ||
        json_is_true(json_get_text(schema, "additionalProperties")))
        note(walk, "it is closed: no other properties", STR_NONE, "");
    *out = json_with(arena, out, STR_LIT("properties"), json_object(arena, members, count));
    *out = json_with(arena, out, STR_LIT("required"), json_array(names, count));
    *out = json_with(arena, out, STR_LIT("additionalProperties"), json_bool(false));
    return true;
}

static bool translate_keywords(struct walk *walk, const struct json *schema, struct json *out)
{
    /* These do not narrow what is valid, or are written anyway: that they are dropped is no loss. */
    static const char *const unnoted[] = {
        "required", "additionalProperties", "$schema",  "$id",      "$comment", "default",
        "examples", "deprecated",           "readOnly", "writeOnly"};
    struct json_member *members = ARENA_ARRAY(walk->arena, struct json_member, schema->len + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->len; i++) {
        const struct keyword *keyword = keywords, *end = keywords + sizeof(keywords) / sizeof(keywords[0]);
        struct json value;
        while (keyword < end && !str_is(schema->members[i].key, keyword->name))
            keyword++;
        if (keyword == end) {
            if (!STR_IS_ONE_OF(schema->members[i].key, unnoted))
                note(walk, "'", schema->members[i].key, "' is left out");
            continue;
        }
        if (!keyword->translate)
            return give_up(walk, keyword->becomes);
        if (!keyword->translate(walk, &schema->members[i].value, &value))
            return false;
        if (keyword->translate != keep_known_format && !str_is(schema->members[i].key, keyword->becomes))
            note(walk, "'", schema->members[i].key, "' is read as anyOf");
        if (keyword->translate != keep_known_format || json_is(&value, JSON_STRING))
            members[count++] = json_member(str_of(keyword->becomes), value);
    }
    *out = json_object(walk->arena, members, count);
    return true;
}

static bool translate(struct walk *walk, const struct json *schema, struct json *out)
{
    if (!json_is(schema, JSON_OBJECT))
        return give_up(walk, "a value of any kind is not possible in strict mode: give it a type");
    if (!translate_keywords(walk, schema, out))
        return false;
    bool is_object =
        has_type(out, "object") || (!json_get_text(out, "type") && json_get_text(out, "properties"));
    if (is_object && !json_get_text(out, "type"))
        *out = json_with(walk->arena, out, STR_LIT("type"), json_string(STR_LIT("object")));
    bool is_typed = json_get_text(out, "type") || json_get_text(out, "enum") || json_get_text(out, "const") ||
                    json_get_text(out, "anyOf") || json_get_text(out, "$ref");
    if (!is_typed)
        return give_up(walk, "a value of any kind is not possible in strict mode: give it a type");
    if (has_type(out, "array") && !json_get_text(out, "items"))
        return give_up(walk, "a list of anything is not possible in strict mode: give it 'items'");
    return !is_object || close_object(walk, schema, out);
}

enum err openai_strict_schema(struct arena *arena, const struct json *schema, struct json *out,
                              struct openai_strict_notes *notes, struct why *why)
{
    struct walk walk = {.arena = arena, .path = buf_in(arena), .notes = notes, .why = why};
    struct json closed;
    buf_text(&walk.path, "#");
    if (!translate(&walk, schema, &closed))
        return ERR_SCHEMA;
    if (!has_type(&closed, "object") || json_get_text(&closed, "anyOf"))
        return err_set(why, ERR_SCHEMA,
                       "#: strict mode wants one plain object at the root, without anyOf or oneOf");
    *out = closed;
    return OK;
}

/* ---- formats --------------------------------------------------------------------------------------- */

static void warn(const struct provider_options *options, const struct json *definition, const char *why)
{
    struct str name = json_str(json_get_text(definition, "name"));
    if (options->warn)
        options->warn(options->owner, name, why);
    else
        log_event(LOG_WARN, "tool_format_unsupported", LOG_STR("tool", name), LOG_TEXT("why", why));
}

/* What a prepare hook says of this tool; NULL: what the request says of all holds. */
static const struct json *own_strict(const struct json *definition)
{
    return json_get_text(json_get_text(definition, "_meta"), DEFINITION_STRICT_KEY);
}

static void write_name(struct json_out *out, const struct json *definition)
{
    json_field_optional(out, "name", json_get_text(definition, "name"));
    json_field_optional(out, "description", json_get_text(definition, "description"));
}

static void write_mcp(struct arena *arena, const struct provider_options *options,
                      const struct json *definition, struct json_out *out)
{
    json_put(out, mcp_version_definition(arena, options->protocol, definition));
}

/* A schema that strict mode cannot express is sent unchanged with strict = false. */
static void write_openai(struct arena *arena, const struct provider_options *options,
                         const struct json *definition, struct json_out *out)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    struct json closed = *schema;
    struct why why;
    bool wanted = own_strict(definition) ? json_is_true(own_strict(definition)) : options->strict;
    bool strict = wanted && openai_strict_schema(arena, schema, &closed, NULL, &why) == OK;
    if (wanted && !strict)
        warn(options, definition, why.text);
    json_open(out, '{');
    json_field_text(out, "type", "function");
    json_field_open(out, "function", '{');
    write_name(out, definition);
    json_field(out, "parameters", &closed);
    if (wanted || options->strict)
        json_field_bool(out, "strict", strict);
    json_close(out, '}');
    json_close(out, '}');
}

static void write_anthropic(struct arena *arena, const struct provider_options *options,
                            const struct json *definition, struct json_out *out)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    (void)arena;
    if (json_get_text(schema, "oneOf") || json_get_text(schema, "anyOf") || json_get_text(schema, "allOf"))
        warn(options, definition,
             "Anthropic's API refuses oneOf, anyOf and allOf at the root of an input schema: use rules or "
             "the properties instead");
    json_open(out, '{');
    write_name(out, definition);
    json_field_optional(out, "input_schema", schema);
    json_close(out, '}');
}

static void write_gemini(struct arena *arena, const struct provider_options *options,
                         const struct json *definition, struct json_out *out)
{
    (void)arena, (void)options;
    json_open(out, '{');
    write_name(out, definition);
    json_field_optional(out, "parametersJsonSchema", json_get_text(definition, "inputSchema"));
    json_close(out, '}');
}

static const struct format {
    const char *name;
    bool any_name;     /* accepts names beyond [A-Za-z0-9_-]{1,64} */
    bool letter_first; /* a name begins with a letter or '_' */
    bool ignores_strict;
    void (*write)(struct arena *arena, const struct provider_options *options, const struct json *definition,
                  struct json_out *out);
} formats[] = {
    [PROVIDER_FORMAT_MCP] = {"mcp", true, false, false, write_mcp},
    [PROVIDER_FORMAT_OPENAI] = {"openai", false, false, false, write_openai},
    [PROVIDER_FORMAT_ANTHROPIC] = {"anthropic", false, false, true, write_anthropic},
    [PROVIDER_FORMAT_GEMINI] = {"gemini", false, true, true, write_gemini},
};

enum err provider_format_named(struct str name, enum provider_format *out)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (str_is(name, formats[i].name)) {
            *out = (enum provider_format)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}

const char *provider_format_name(enum provider_format format)
{
    return formats[format].name;
}

bool provider_format_write(struct arena *arena, const struct provider_options *options,
                           const struct json *definition, struct str plain, struct json_out *out)
{
    const struct format *format = &formats[options->format];
    struct str name = json_str(json_get_text(definition, "name"));
    if (!format->any_name && plain.len) {
        definition = json_keep(arena, json_with(arena, definition, STR_LIT("name"), json_string(plain)));
        name = plain;
    }
    bool starts_well = name.len && name.at[0] != '-' && !(name.at[0] >= '0' && name.at[0] <= '9');
    bool fits = plain_name_fits(name) && (starts_well || !format->letter_first);
    if (!format->any_name && !fits) {
        warn(options, definition,
             "left out: this provider accepts names of 1 to 64 letters, digits, _ and - only");
        return false;
    }
    if (format->ignores_strict && json_is_true(own_strict(definition)))
        warn(options, definition, "strict has no effect: this format has no strict mode");
    format->write(arena, options, definition, out);
    return true;
}

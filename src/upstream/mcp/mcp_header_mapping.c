/* An annotation is valid on a path of `properties` alone, from the root to a primitive; anywhere else it is
 * an error. */
#include "upstream/mcp/mcp_header_mapping.h"

#include "base/arena.h"
#include "json/parse.h"
#include "upstream/http/fetch.h"

#include <strings.h>

#define ANNOTATION   "x-mcp-header"
#define SAFE_INTEGER 9007199254740991 /* 2^53 - 1: what every JSON reader can hold */

#define BASE64_PREFIX "=?base64?"
#define BASE64_SUFFIX "?="

static struct str base64(struct arena *arena, struct str text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = arena_alloc(arena, (text.len + 2) / 3 * 4), *to = out;
    for (size_t i = 0; i < text.len; i += 3) {
        size_t left = text.len - i;
        uint32_t bits = (uint32_t)(unsigned char)text.at[i] << 16;
        bits |= left > 1 ? (uint32_t)(unsigned char)text.at[i + 1] << 8 : 0;
        bits |= left > 2 ? (uint32_t)(unsigned char)text.at[i + 2] : 0;
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[bits & 63] : '=';
    }
    return (struct str){out, (size_t)(to - out)};
}

struct str header_mapping_encode(struct arena *arena, struct str text)
{
    bool plain = text.len && !strchr(" \t", text.at[0]) && !strchr(" \t", text.at[text.len - 1]);
    for (size_t i = 0; plain && i < text.len; i++)
        plain = (text.at[i] >= ' ' && text.at[i] < 0x7F) || text.at[i] == '\t';
    bool looks_encoded = str_starts(text, BASE64_PREFIX) && text.len >= sizeof(BASE64_PREFIX) + 1 &&
                         memcmp(text.at + text.len - 2, BASE64_SUFFIX, 2) == 0;
    if (plain && !looks_encoded)
        return text;
    return ARENA_JOIN(arena, STR_LIT(BASE64_PREFIX), base64(arena, text), STR_LIT(BASE64_SUFFIX));
}

struct annotation {
    struct str header;      /* "Region" */
    const struct str *path; /* names of properties, from the root */
    size_t depth;
};

struct annotations {
    struct arena *arena; /* NULL: they are only checked */
    struct annotation list[HEADER_MAPPING_MAX];
    size_t count;
    struct why *why;
};

struct mapped_tool {
    struct mapped_tool *next;
    struct str name;
    struct annotation *list;
    size_t count;
};

/* The path to the current schema, last name first. */
struct step {
    const struct step *before;
    struct str name;
};

static bool is_one_of(struct str text, const char *const *names)
{
    while (*names && !str_is(text, *names))
        names++;
    return *names != NULL;
}

static bool is_primitive(const struct json *type)
{
    static const char *const names[] = {"string", "integer", "boolean", "null", NULL};
    if (!json_is(type, JSON_ARRAY))
        return is_one_of(json_str(type), names);
    for (size_t i = 0; i < type->len; i++)
        if (!is_one_of(json_str(&type->items[i]), names))
            return false;
    return type->len > 0;
}

static enum err add_annotation(struct annotations *all, const struct json *schema, struct str header,
                               const struct step *step)
{
    if (!header.len || header.len > HEADER_MAPPING_NAME_BYTES || !fetch_header_is_safe(header, STR_NONE))
        return err_set(all->why, ERR_SCHEMA, "its " ANNOTATION " is no valid header name");
    if (!is_primitive(json_get_text(schema, "type")))
        return err_set(all->why, ERR_SCHEMA,
                       "its " ANNOTATION " '" STR_FMT "' is not on a string, integer or boolean",
                       STR_ARG(header));
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].header.len == header.len &&
            strncasecmp(all->list[i].header.at, header.at, header.len) == 0)
            return err_set(all->why, ERR_SCHEMA, "its " ANNOTATION " '" STR_FMT "' is used twice",
                           STR_ARG(header));
    if (all->count == HEADER_MAPPING_MAX)
        return err_set(all->why, ERR_SCHEMA, "it has more than %u " ANNOTATION, HEADER_MAPPING_MAX);
    struct annotation *annotation = &all->list[all->count++];
    *annotation = (struct annotation){.header = header};
    if (!all->arena)
        return OK;
    for (const struct step *s = step; s; s = s->before)
        annotation->depth++;
    struct str *path = ARENA_ARRAY(all->arena, struct str, annotation->depth);
    for (size_t i = annotation->depth; i-- > 0; step = step->before)
        path[i] = arena_dup(all->arena, step->name);
    annotation->path = path;
    annotation->header = arena_dup(all->arena, header);
    return OK;
}

static enum err walk(struct annotations *all, const struct json *schema, const struct step *step,
                     bool reachable);

/* The values of an object or an array, each a schema. `properties`: they extend the path. */
static enum err walk_each(struct annotations *all, const struct json *value, const struct step *step,
                          bool properties)
{
    enum err err = OK;
    for (size_t i = 0; err == OK && i < value->len; i++) {
        bool object = value->type == JSON_OBJECT;
        struct step here = {step, object ? value->members[i].key : STR_NONE};
        const struct json *next = object ? &value->members[i].value : &value->items[i];
        err = walk(all, next, properties ? &here : NULL, properties);
    }
    return err;
}

static enum err walk_keyword(struct annotations *all, const struct json *schema,
                             const struct json_member *member, const struct step *step, bool reachable)
{
    static const char *const data[] = {"const", "enum", "default", "examples", NULL};
    static const char *const named_schemas[] = {"$defs", "definitions", "patternProperties",
                                                "dependentSchemas", NULL};
    const struct json *value = &member->value;
    bool object = value->type == JSON_OBJECT;
    if (str_is(member->key, ANNOTATION))
        return reachable && step ? add_annotation(all, schema, json_str(value), step)
                                 : err_set(all->why, ERR_SCHEMA,
                                           "its " ANNOTATION
                                           " is where the argument may be missing or occur more than once");
    if (is_one_of(member->key, data))
        return OK;
    if (object && str_is(member->key, "properties"))
        return walk_each(all, value, step, reachable);
    if (object && is_one_of(member->key, named_schemas))
        return walk_each(all, value, NULL, false);
    return walk(all, value, NULL, false);
}

static enum err walk(struct annotations *all, const struct json *schema, const struct step *step,
                     bool reachable)
{
    enum err err = OK;
    if (schema->type == JSON_ARRAY)
        return walk_each(all, schema, NULL, false);
    for (size_t i = 0; err == OK && schema->type == JSON_OBJECT && i < schema->len; i++)
        err = walk_keyword(all, schema, &schema->members[i], step, reachable);
    return err;
}

enum err header_mapping_check(const struct json *schema, struct why *why)
{
    struct annotations all = {.why = why};
    return schema ? walk(&all, schema, NULL, true) : OK;
}

void header_mapping_clear(struct header_mapping *mapping)
{
    arena_free(mapping->arena);
    *mapping = (struct header_mapping){0};
}

static void learn_tool(struct header_mapping *mapping, const struct json *definition)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    struct annotations all = {.arena = mapping->arena};
    if (!schema || walk(&all, schema, NULL, true) != OK || !all.count)
        return;
    struct mapped_tool *tool = ARENA_NEW(mapping->arena, struct mapped_tool);
    tool->name = arena_dup(mapping->arena, json_str(json_get_text(definition, "name")));
    tool->list = ARENA_ARRAY(mapping->arena, struct annotation, all.count);
    tool->count = all.count;
    memcpy(tool->list, all.list, all.count * sizeof(*tool->list));
    tool->next = mapping->tools;
    mapping->tools = tool;
}

void header_mapping_learn(struct header_mapping *mapping, struct str message, bool first)
{
    static const struct json_limits limits = {.nodes = 1000000u};
    struct json value;
    struct json_error error;
    if (first)
        header_mapping_clear(mapping);
    if (!message.len || !memmem(message.at, message.len, ANNOTATION, sizeof(ANNOTATION) - 1))
        return;
    struct arena *scratch = arena_new();
    if (!mapping->arena)
        mapping->arena = arena_new();
    bool read = json_parse(scratch, message, &limits, &value, &error) == OK || error.soft;
    const struct json *tools = read ? json_get_text(json_get_text(&value, "result"), "tools") : NULL;
    for (size_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++)
        learn_tool(mapping, &tools->items[i]);
    arena_free(scratch);
}

/* STR_NONE: it does not go into a header. */
static struct str value_text(struct arena *arena, const struct json *value)
{
    int64_t n;
    if (json_is(value, JSON_BOOL))
        return str_of(value->truth ? "true" : "false");
    if (json_is(value, JSON_NUMBER) && json_int(value, &n) && n <= SAFE_INTEGER && n >= -SAFE_INTEGER)
        return arena_printf(arena, "%lld", (long long)n);
    return json_str(value);
}

struct name_values header_mapping_headers(const struct header_mapping *mapping, struct arena *arena,
                                          struct str tool_name, struct str message)
{
    const struct mapped_tool *tool = mapping->tools;
    struct json value;
    struct json_error error;
    while (tool && !str_eq(tool->name, tool_name))
        tool = tool->next;
    if (!tool || (json_parse(arena, message, NULL, &value, &error) != OK && !error.soft))
        return (struct name_values){0};
    const struct json *arguments = json_get_text(json_get_text(&value, "params"), "arguments");
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, tool->count);
    size_t count = 0;
    for (size_t i = 0; i < tool->count; i++) {
        const struct json *argument = arguments;
        for (size_t n = 0; argument && n < tool->list[i].depth; n++)
            argument = json_get(argument, tool->list[i].path[n]);
        struct str text = value_text(arena, argument);
        if (text.at)
            list[count++] =
                (struct name_value){ARENA_JOIN(arena, STR_LIT("Mcp-Param-"), tool->list[i].header),
                                    header_mapping_encode(arena, text)};
    }
    return (struct name_values){list, count};
}

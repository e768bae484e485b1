/* See mcp_header_mapping.h. A mark counts on the way from the root through `properties` alone; anywhere else
 * it is wrong.
 */
#include "upstream/mcp/mcp_header_mapping.h"

#include "base/arena.h"
#include "json/parse.h"
#include "upstream/http/fetch.h"

#include <strings.h>

#define MARK         "x-mcp-header"
#define SAFE_INTEGER 9007199254740991 /* 2^53 - 1: what every reader of JSON can hold */

#define BASE64_BEGINS "=?base64?"
#define BASE64_ENDS   "?="

static bool is_plain(struct str text)
{
    bool plain = text.len > 0 && text.at[0] != ' ' && text.at[0] != '\t' && text.at[text.len - 1] != ' ' &&
                 text.at[text.len - 1] != '\t';
    for (size_t i = 0; plain && i < text.len; i++)
        plain = (text.at[i] >= ' ' && text.at[i] < 0x7F) || text.at[i] == '\t';
    bool looks_encoded = str_starts(text, BASE64_BEGINS) && text.len >= sizeof(BASE64_BEGINS) + 1 &&
                         memcmp(text.at + text.len - 2, BASE64_ENDS, 2) == 0;
    return plain && !looks_encoded;
}

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
    if (is_plain(text))
        return text;
    return ARENA_JOIN(arena, STR_LIT(BASE64_BEGINS), base64(arena, text), STR_LIT(BASE64_ENDS));
}

/* ---- marks of a schema ---------------------------------------------------------- */

struct mark {
    struct str header;       /* "Region" */
    const struct str *steps; /* names of properties, from the root */
    size_t depth;
};

struct marks {
    struct arena *arena; /* NULL: they are only checked */
    struct mark list[HEADER_MAPPING_MAX];
    size_t count;
    struct why *why;
};

struct mapped_tool {
    struct mapped_tool *next;
    struct str name;
    struct mark *marks;
    size_t count;
};

/* Where the walk is: the names that lead here, the last one first. */
struct step {
    const struct step *before;
    struct str name;
};

static bool is_primitive(const struct json *type)
{
    static const char *const names[] = {"string", "integer", "boolean", "null"};
    for (size_t i = 0; json_is(type, JSON_STRING) && i < 4; i++)
        if (str_is(json_str(type), names[i]))
            return true;
    for (size_t i = 0; json_is(type, JSON_ARRAY) && i < type->len; i++)
        if (!is_primitive(&type->items[i]))
            return false;
    return json_is(type, JSON_ARRAY) && type->len;
}

static struct mark mark_of(struct arena *arena, struct str header, const struct step *step)
{
    struct mark mark = {.header = header};
    for (const struct step *s = step; s; s = s->before)
        mark.depth++;
    struct str *steps = arena ? ARENA_ARRAY(arena, struct str, mark.depth) : NULL;
    for (size_t i = mark.depth; steps && i-- > 0; step = step->before)
        steps[i] = arena_dup(arena, step->name);
    mark.steps = steps;
    mark.header = arena ? arena_dup(arena, header) : header;
    return mark;
}

static enum err add_mark(struct marks *marks, const struct json *schema, struct str header,
                         const struct step *step)
{
    if (!header.len || header.len > HEADER_MAPPING_NAME_BYTES || !fetch_header_is_safe(header, STR_NONE))
        return err_set(marks->why, ERR_SCHEMA, "its " MARK " is no name of a header");
    if (!is_primitive(json_get_text(schema, "type")))
        return err_set(marks->why, ERR_SCHEMA,
                       "its " MARK " '" STR_FMT "' marks what is neither string, integer nor boolean",
                       STR_ARG(header));
    for (size_t i = 0; i < marks->count; i++)
        if (marks->list[i].header.len == header.len &&
            strncasecmp(marks->list[i].header.at, header.at, header.len) == 0)
            return err_set(marks->why, ERR_SCHEMA, "its " MARK " '" STR_FMT "' stands twice",
                           STR_ARG(header));
    if (marks->count == HEADER_MAPPING_MAX)
        return err_set(marks->why, ERR_SCHEMA, "it has more than %u " MARK, HEADER_MAPPING_MAX);
    marks->list[marks->count++] = mark_of(marks->arena, header, step);
    return OK;
}

static enum err walk(struct marks *marks, const struct json *schema, const struct step *step, bool reachable);

static enum err walk_each(struct marks *marks, const struct json *value, const struct step *step,
                          bool properties)
{
    enum err err = OK;
    for (size_t i = 0; err == OK && i < value->len; i++) {
        bool object = value->type == JSON_OBJECT;
        struct step here = {step, object ? value->members[i].key : STR_NONE};
        const struct json *next = object ? &value->members[i].value : &value->items[i];
        err = walk(marks, next, properties ? &here : NULL, properties);
    }
    return err;
}

static bool holds_data(struct str keyword)
{
    static const char *const names[] = {"const", "enum", "default", "examples"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_is(keyword, names[i]))
            return true;
    return false;
}

static bool holds_named_schemas(struct str keyword)
{
    static const char *const names[] = {"$defs", "definitions", "patternProperties", "dependentSchemas"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_is(keyword, names[i]))
            return true;
    return false;
}

static enum err walk_keyword(struct marks *marks, const struct json *schema, const struct json_member *member,
                             const struct step *step, bool reachable)
{
    const struct json *value = &member->value;
    bool object = value->type == JSON_OBJECT;
    if (str_is(member->key, MARK))
        return reachable && step
                   ? add_mark(marks, schema, json_str(value), step)
                   : err_set(marks->why, ERR_SCHEMA,
                             "its " MARK " stands where the argument may not be, or more than once");
    if (holds_data(member->key))
        return OK;
    if (object && str_is(member->key, "properties"))
        return walk_each(marks, value, step, reachable);
    if (object && holds_named_schemas(member->key))
        return walk_each(marks, value, NULL, false);
    return walk(marks, value, NULL, false);
}

static enum err walk(struct marks *marks, const struct json *schema, const struct step *step, bool reachable)
{
    enum err err = OK;
    if (schema->type == JSON_ARRAY)
        return walk_each(marks, schema, NULL, false);
    for (size_t i = 0; err == OK && schema->type == JSON_OBJECT && i < schema->len; i++)
        err = walk_keyword(marks, schema, &schema->members[i], step, reachable);
    return err;
}

enum err header_mapping_check(const struct json *schema, struct why *why)
{
    struct marks marks = {.why = why};
    return schema ? walk(&marks, schema, NULL, true) : OK;
}

/* ---- what is learnt, and used ------------------------------------------------------- */

void header_mapping_clear(struct header_mapping *mirror)
{
    arena_free(mirror->arena);
    *mirror = (struct header_mapping){0};
}

static void learn_tool(struct header_mapping *mirror, const struct json *definition)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    struct marks marks = {.arena = mirror->arena};
    if (!schema || walk(&marks, schema, NULL, true) != OK || !marks.count)
        return;
    struct mapped_tool *tool = ARENA_NEW(mirror->arena, struct mapped_tool);
    tool->name = arena_dup(mirror->arena, json_str(json_get_text(definition, "name")));
    tool->marks = ARENA_ARRAY(mirror->arena, struct mark, marks.count);
    tool->count = marks.count;
    memcpy(tool->marks, marks.list, marks.count * sizeof(*tool->marks));
    tool->next = mirror->tools;
    mirror->tools = tool;
}

void header_mapping_learn(struct header_mapping *mirror, struct str message, bool first)
{
    static const struct json_limits limits = {.nodes = 1000000u};
    struct json value;
    struct json_error fault;
    if (first)
        header_mapping_clear(mirror);
    if (!message.len || !memmem(message.at, message.len, MARK, sizeof(MARK) - 1))
        return;
    struct arena *scratch = arena_new();
    if (!mirror->arena)
        mirror->arena = arena_new();
    bool read = json_parse(scratch, message, &limits, &value, &fault) == OK || fault.soft;
    const struct json *tools = read ? json_get_text(json_get_text(&value, "result"), "tools") : NULL;
    for (size_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++)
        learn_tool(mirror, &tools->items[i]);
    arena_free(scratch);
}

/* STR_NONE: nothing that goes into a header. */
static struct str value_text(struct arena *arena, const struct json *value)
{
    int64_t n;
    if (json_is(value, JSON_BOOL))
        return str_of(value->truth ? "true" : "false");
    if (json_is(value, JSON_NUMBER) && json_int(value, &n) && n <= SAFE_INTEGER && n >= -SAFE_INTEGER)
        return arena_printf(arena, "%lld", (long long)n);
    return json_str(value);
}

static bool add_header(struct arena *arena, const struct mark *mark, const struct json *arguments,
                       struct name_value *pair)
{
    const struct json *value = arguments;
    for (size_t i = 0; value && i < mark->depth; i++)
        value = json_get(value, mark->steps[i]);
    struct str text = value ? value_text(arena, value) : STR_NONE;
    if (!text.at)
        return false;
    pair->name = ARENA_JOIN(arena, STR_LIT("Mcp-Param-"), mark->header);
    pair->value = header_mapping_encode(arena, text);
    return true;
}

struct name_values header_mapping_headers(const struct header_mapping *mirror, struct arena *arena,
                                          struct str tool, struct str message)
{
    const struct mapped_tool *found = mirror->tools;
    struct json value;
    struct json_error fault;
    while (found && !str_eq(found->name, tool))
        found = found->next;
    if (!found || (json_parse(arena, message, NULL, &value, &fault) != OK && !fault.soft))
        return (struct name_values){0};
    const struct json *arguments = json_get_text(json_get_text(&value, "params"), "arguments");
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, found->count);
    size_t count = 0;
    for (size_t i = 0; i < found->count; i++)
        count += add_header(arena, &found->marks[i], arguments, &list[count]);
    return (struct name_values){list, count};
}

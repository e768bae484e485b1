/* An annotation is valid on a path of `properties` alone, from the root to a primitive; anywhere else it is
 * an error. */
#include "upstream/mcp/mcp_header_mapping.h"

#include "base/arena.h"
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
    struct str header; /* "Region" */
    const struct json *argument;
};

struct annotations {
    struct annotation list[HEADER_MAPPING_MAX];
    size_t count;
    struct why *why;
};

enum place { AT_ROOT, AT_PROPERTY, ELSEWHERE };

static bool is_primitive(const struct json *type)
{
    static const char *const names[] = {"string", "integer", "boolean", "null"};
    if (!json_is(type, JSON_ARRAY))
        return STR_IS_ONE_OF(json_str(type), names);
    for (size_t i = 0; i < type->len; i++)
        if (!STR_IS_ONE_OF(json_str(&type->items[i]), names))
            return false;
    return type->len > 0;
}

static enum err add_annotation(struct annotations *all, const struct json *schema, struct str header,
                               const struct json *argument)
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
    all->list[all->count++] = (struct annotation){header, argument};
    return OK;
}

static enum err walk(struct annotations *all, const struct json *schema, enum place place,
                     const struct json *argument);

static enum err walk_keyword(struct annotations *all, const struct json *schema,
                             const struct json_member *member, enum place place, const struct json *argument)
{
    static const char *const data[] = {"const", "enum", "default", "examples"};
    static const char *const named_schemas[] = {"properties", "$defs", "definitions", "patternProperties",
                                                "dependentSchemas"};
    const struct json *value = &member->value;
    enum err err = OK;
    if (str_is(member->key, ANNOTATION))
        return place == AT_PROPERTY
                   ? add_annotation(all, schema, json_str(value), argument)
                   : err_set(all->why, ERR_SCHEMA,
                             "its " ANNOTATION
                             " is where the argument may be missing or occur more than once");
    if (STR_IS_ONE_OF(member->key, data))
        return OK;
    if (!json_is(value, JSON_OBJECT) || !STR_IS_ONE_OF(member->key, named_schemas))
        return walk(all, value, ELSEWHERE, NULL);
    bool on_path = place != ELSEWHERE && str_is(member->key, "properties");
    for (uint32_t i = 0; !err && i < value->len; i++)
        err = walk(all, &value->members[i].value, on_path ? AT_PROPERTY : ELSEWHERE,
                   on_path ? json_get(argument, value->members[i].key) : NULL);
    return err;
}

/* `argument`: what the schema at this place is for; NULL: it is not given. */
static enum err walk(struct annotations *all, const struct json *schema, enum place place,
                     const struct json *argument)
{
    enum err err = OK;
    for (uint32_t i = 0; !err && json_is(schema, JSON_ARRAY) && i < schema->len; i++)
        err = walk(all, &schema->items[i], ELSEWHERE, NULL);
    for (uint32_t i = 0; !err && json_is(schema, JSON_OBJECT) && i < schema->len; i++)
        err = walk_keyword(all, schema, &schema->members[i], place, argument);
    return err;
}

enum err header_mapping_check(const struct json *schema, struct why *why)
{
    struct annotations all = {.why = why};
    return schema ? walk(&all, schema, AT_ROOT, NULL) : OK;
}

struct name_values header_mapping_headers(struct arena *arena, const struct json *schema,
                                          const struct json *arguments)
{
    struct annotations all = {.count = 0};
    if (!schema ||
        (schema->raw && !memmem(schema->raw, schema->raw_len, ANNOTATION, sizeof(ANNOTATION) - 1)) ||
        walk(&all, schema, AT_ROOT, arguments) != OK)
        return (struct name_values){0};
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, all.count);
    size_t count = 0;
    for (size_t i = 0; i < all.count; i++) {
        const struct json *value = all.list[i].argument;
        struct str text = json_str(value); /* what is neither this nor one of the next two is not mapped */
        int64_t n;
        if (json_is(value, JSON_BOOL))
            text = str_of(value->truth ? "true" : "false");
        else if (json_is(value, JSON_NUMBER) && json_int(value, &n) && n <= SAFE_INTEGER &&
                 n >= -SAFE_INTEGER)
            text = arena_printf(arena, "%lld", (long long)n);
        if (text.at)
            list[count++] = (struct name_value){ARENA_JOIN(arena, STR_LIT("Mcp-Param-"), all.list[i].header),
                                                header_mapping_encode(arena, text)};
    }
    return (struct name_values){list, count};
}

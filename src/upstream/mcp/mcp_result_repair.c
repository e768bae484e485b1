/*
 * Each step is one pass over what the server sent. What a repair adds is
 * `type`, `text` and `content`, never a value of its own.
 */
#include "upstream/mcp/mcp_result_repair.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#define DATA_ADDRESS_MAX_BYTES 128u /* of what stands before the data */

/* ---- form ---------------------------------------------------------------------- */

static struct json text_block(struct arena *arena, const struct json *value)
{
    struct str text = value->type == JSON_STRING ? json_str(value) : json_to_str(arena, value);
    const struct json_member members[2] = {json_member(STR_LIT("type"), json_string(STR_LIT("text"))),
                                           json_member(STR_LIT("text"), json_string(text))};
    return json_object(arena, members, 2);
}

/* The type that an item without one can only have; NULL: none. */
static const char *type_of(const struct json *item)
{
    struct str mime = json_str(json_get_text(item, "mimeType"));
    if (json_is(json_get_text(item, "text"), JSON_STRING))
        return "text";
    if (json_is(json_get_text(item, "resource"), JSON_OBJECT))
        return "resource";
    if (json_is(json_get_text(item, "data"), JSON_STRING) && mime.len)
        return str_starts(mime, "image/") ? "image" : str_starts(mime, "audio/") ? "audio" : NULL;
    if (json_str(json_get_text(item, "uri")).len && json_str(json_get_text(item, "name")).len)
        return "resource_link";
    return NULL;
}

static bool has_null(const struct json *object)
{
    for (uint32_t i = 0; json_is(object, JSON_OBJECT) && i < object->len; i++)
        if (object->members[i].value.type == JSON_NULL)
            return true;
    return false;
}

/* Behind the last byte of "data:image/png;base64,"; 0: it is no such address. */
static size_t address_of_data(const struct json *item)
{
    struct str data = str_cut(json_str(json_get_text(item, "data")), DATA_ADDRESS_MAX_BYTES);
    const char *comma = str_starts(data, "data:") ? memchr(data.at, ',', data.len) : NULL;
    return comma ? (size_t)(comma + 1 - data.at) : 0;
}

static bool is_block(const struct json *item)
{
    struct str type = json_str(json_get_text(item, "type"));
    const struct json *text = json_get_text(item, "text");
    return json_is(item, JSON_OBJECT) && type.len && !has_null(item) &&
           !has_null(json_get_text(item, "resource")) && !address_of_data(item) &&
           (!str_is(type, "text") || !text || text->type == JSON_STRING);
}

/* The address says the MIME type, too. */
static struct json without_data_address(struct arena *arena, const struct json *item)
{
    struct str data = json_str(json_get_text(item, "data"));
    size_t head = address_of_data(item);
    struct str says = str_from(str_cut(data, head - 1), strlen("data:")), mime = str_split(&says, ';');
    struct json out = json_with(arena, item, STR_LIT("data"), json_string(str_from(data, head)));
    if (json_get_text(item, "mimeType") || !mime.len)
        return out;
    return json_with(arena, &out, STR_LIT("mimeType"), json_string(mime));
}

static struct json block_of(struct arena *arena, const struct json *item)
{
    if (is_block(item))
        return *item;
    if (!json_is(item, JSON_OBJECT))
        return text_block(arena, item);
    struct json block = json_without_nulls(arena, item);
    const struct json *resource = json_get_text(&block, "resource"), *text = json_get_text(&block, "text");
    if (json_is(resource, JSON_OBJECT))
        block = json_with(arena, &block, STR_LIT("resource"), json_without_nulls(arena, resource));
    if (address_of_data(&block))
        block = without_data_address(arena, &block);
    bool is_text = str_is(json_str(json_get_text(&block, "type")), "text");
    if (is_text && text && text->type != JSON_STRING)
        return text_block(arena, text);
    const char *type = json_str(json_get_text(&block, "type")).len ? NULL : type_of(&block);
    if (type)
        return json_with(arena, &block, STR_LIT("type"), json_string(str_of(type)));
    return is_block(&block) ? block : text_block(arena, item);
}

static struct json blocks_of(struct arena *arena, const struct json *content)
{
    bool is_list = json_is(content, JSON_ARRAY);
    uint32_t len = !content || json_is(content, JSON_NULL) ? 0 : is_list ? content->len : 1, count = 0;
    struct json *blocks = arena_alloc(arena, (len ? len : 1) * sizeof(*blocks));
    for (uint32_t i = 0; i < len; i++) {
        const struct json *item = is_list ? &content->items[i] : content;
        if (!json_is(item, JSON_NULL))
            blocks[count++] = block_of(arena, item);
    }
    return json_array(blocks, count);
}

static bool are_blocks(const struct json *content)
{
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++)
        if (!is_block(&content->items[i]))
            return false;
    return json_is(content, JSON_ARRAY);
}

const struct json *mcp_result_repair(struct arena *arena, const struct json *result, const char **what)
{
    const struct json *content = json_get_text(result, "content");
    bool is_object = json_is(result, JSON_OBJECT);
    struct json *repaired = arena_alloc(arena, sizeof(*repaired));
    *what = NULL;
    if (content ? are_blocks(content) : json_get_text(result, "structuredContent") != NULL)
        return result;
    if (is_object && content) {
        *what = "`content` is no list of blocks with a type";
        *repaired = json_with(arena, result, STR_LIT("content"), blocks_of(arena, content));
        return repaired;
    }
    *what = is_object ? "it has neither `content` nor `structuredContent`" : "it is no object";
    struct json block = text_block(arena, result);
    struct json blocks =
        json_is(result, JSON_ARRAY) && result->len && are_blocks(result) ? *result : blocks_of(arena, &block);
    struct json_member members[3] = {json_member(STR_LIT("content"), blocks)};
    size_t count = 1;
    const struct json *failed = json_get_text(result, "isError"), *meta = json_get_text(result, "_meta");
    if (json_is(failed, JSON_BOOL))
        members[count++] = json_member(STR_LIT("isError"), *failed);
    if (json_is(meta, JSON_OBJECT))
        members[count++] = json_member(STR_LIT("_meta"), *meta);
    *repaired = json_object(arena, members, count);
    return repaired;
}

/* ---- results of other methods ---- */

static const struct json *without_null(void *arena, const struct json *parent, uint32_t i, struct str *key)
{
    const struct json *child = json_child(parent, i);
    if (parent->type == JSON_OBJECT && child->type == JSON_NULL)
        return NULL;
    return str_is(*key, "_meta") ? child : json_map(arena, child, without_null, arena);
}

const struct json *mcp_result_without_nulls(struct arena *arena, const struct json *result, const char **what)
{
    const struct json *now = json_map(arena, result, without_null, arena);
    *what = now == result ? NULL : "members are null instead of absent";
    return now;
}

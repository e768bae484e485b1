/* Reading and making tool results; judging by meaning is the policy's, by schema the pipeline's. */
#include "gate/result.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

static struct json *keep(struct arena *arena, struct json value)
{
    struct json *kept = arena_alloc(arena, sizeof(*kept));
    *kept = value;
    return kept;
}

static const struct json *text_block(struct arena *arena, struct str text)
{
    struct json_member members[] = {
        json_member(STR_LIT("type"), json_string(STR_LIT("text"))),
        json_member(STR_LIT("text"), json_string(text)),
    };
    return keep(arena, json_object(arena, members, 2));
}

static bool is_text_block(const struct json *block)
{
    return str_is(json_str(json_get_text(block, "type")), "text") &&
           json_is(json_get_text(block, "text"), JSON_STRING);
}

/* All text blocks, a line break between them. */
static struct str joined_text(struct arena *arena, const struct json *content)
{
    struct buf text = buf_in(arena);
    for (uint32_t i = 0; content && i < content->len; i++) {
        if (!is_text_block(&content->items[i]))
            continue;
        if (text.len)
            buf_byte(&text, '\n');
        buf_str(&text, json_str(json_get_text(&content->items[i], "text")));
    }
    return buf_view(&text);
}

/* A text that is one JSON object or array is read as that; most tools answer so. */
static const struct json *value_of_text(struct arena *arena, struct str text)
{
    struct json *value = arena_alloc(arena, sizeof(*value));
    struct json_fault fault;
    struct str trimmed = str_trim(text);
    bool looks_like_json = trimmed.len && (trimmed.at[0] == '{' || trimmed.at[0] == '[');
    if (looks_like_json && json_parse(arena, trimmed, NULL, value, &fault) == OK)
        return value;
    struct json_member member = json_member(STR_LIT("text"), json_string(text));
    *value = json_object(arena, &member, 1);
    return value;
}

static const struct json *content_of_value(struct arena *arena, const struct json *value)
{
    struct str text = json_str(value);
    if (!json_is(value, JSON_STRING)) {
        struct buf written = buf_in(arena);
        json_write(&written, value);
        text = buf_view(&written);
    }
    return keep(arena, json_array(text_block(arena, text), 1));
}

void result_read(struct arena *arena, const struct json *sent, struct result *out)
{
    *out = (struct result){0};
    const struct json *content = json_get_text(sent, "content");
    if (!json_is(content, JSON_ARRAY)) {
        bool is_text = json_is(sent, JSON_STRING);
        out->value = is_text ? value_of_text(arena, json_str(sent)) : sent;
        out->error_text = json_str(sent);
        out->content = content_of_value(arena, sent);
        return;
    }
    out->content = content;
    out->structured = json_get_text(sent, "structuredContent");
    out->metadata = json_get_text(sent, "_meta");
    out->is_error = json_is_true(json_get_text(sent, "isError"));
    out->error_text = joined_text(arena, content);
    out->value =
        json_is(out->structured, JSON_OBJECT) ? out->structured : value_of_text(arena, out->error_text);
}

void result_make(struct arena *arena, const struct json *value, const struct json *content,
                 const struct json *metadata, bool has_output_schema, struct result *out)
{
    *out = (struct result){0};
    if (!value)
        value = keep(arena, json_null());
    out->value = value;
    out->content = content ? content : content_of_value(arena, value);
    out->structured = has_output_schema && json_is(value, JSON_OBJECT) ? value : NULL;
    out->metadata = metadata;
}

struct str result_text(struct arena *arena, const struct result *result)
{
    struct buf text = buf_in(arena);
    if (result->error_text.len || !result->value)
        return result->error_text;
    json_write(&text, result->value);
    return buf_view(&text);
}

const char *result_unreadable(const struct result *result)
{
    struct str text = str_trim(result->error_text);
    bool read_as_text = !result->structured && text.len && json_get_text(result->value, "text");
    if (!read_as_text)
        return NULL;
    bool began = text.at[0] == '{' || text.at[0] == '[';
    bool closed = began && text.at[text.len - 1] == (text.at[0] == '{' ? '}' : ']');
    return began && !closed ? "truncated_response" : "invalid_json";
}

bool result_is_empty(const struct json *value)
{
    if (!value)
        return true;
    switch (value->type) {
    case JSON_NULL:
        return true;
    case JSON_STRING:
        return str_trim(json_str(value)).len == 0;
    case JSON_ARRAY:
        return value->len == 0;
    case JSON_OBJECT:
        for (uint32_t i = 0; i < value->len; i++)
            if (!result_is_empty(&value->members[i].value))
                return false;
        return true;
    default:
        return false;
    }
}

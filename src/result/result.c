/* Reading and making results, and the questions of result.h. */
#include "result/result.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "policy/content.h"
#include "result/result_mask.h"
#include "result/redact.h"

static bool is_text_block(const struct json *block)
{
    return str_is(json_str(json_get_text(block, "type")), "text") &&
           json_is(json_get_text(block, "text"), JSON_STRING);
}

/* All text blocks, joined by line breaks. */
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

const struct json *result_json_of_text(struct arena *arena, struct str text)
{
    struct json value;
    struct json_error error;
    text = str_trim(text);
    bool looks_like_json = text.len && (text.at[0] == '{' || text.at[0] == '[');
    if (!looks_like_json || json_parse(arena, text, NULL, &value, &error) != OK)
        return NULL;
    return json_keep(arena, value);
}

/* Most tools return JSON as text; any other text is {text = …}. */
static const struct json *value_of_text(struct arena *arena, struct str text, bool *as_text)
{
    const struct json *value = result_json_of_text(arena, text);
    struct json_member member = json_member(STR_LIT("text"), json_string(text));
    *as_text = !value;
    return value ? value : json_keep(arena, json_object(arena, &member, 1));
}

static const struct json *content_of_value(struct arena *arena, const struct json *value)
{
    struct str text = json_str(value);
    if (!json_is(value, JSON_STRING))
        text = json_to_str(arena, value);
    struct json_member block[] = {json_member(STR_LIT("type"), json_string(STR_LIT("text"))),
                                  json_member(STR_LIT("text"), json_string(text))};
    return json_keep(arena, json_array(json_keep(arena, json_object(arena, block, 2)), 1));
}

enum form { FORM_PLAIN, FORM_CALL_RESULT, FORM_TOOL_RETURN };

/* By the members alone. Many APIs have a page of items under `content`, so it must be a list of blocks. */
static enum form form_of(const struct json *sent)
{
    static const char *const call_result[] = {"content", "structuredContent", "isError", "_meta",
                                              "resultType"};
    static const char *const tool_return[] = {"value", "content", "metadata"};
    const struct json *content = json_get_text(sent, "content");
    bool has_blocks = json_is(content, JSON_ARRAY) && (!content->len || content_is_block_list(content));
    bool is_call_result = has_blocks, is_tool_return = json_is(sent, JSON_OBJECT);
    for (uint32_t i = 0; (is_call_result || is_tool_return) && i < sent->len; i++) {
        is_call_result = is_call_result && STR_IS_ONE_OF(sent->members[i].key, call_result);
        is_tool_return = is_tool_return && STR_IS_ONE_OF(sent->members[i].key, tool_return);
    }
    return is_call_result ? FORM_CALL_RESULT : is_tool_return ? FORM_TOOL_RETURN : FORM_PLAIN;
}

static void read_plain(struct arena *arena, const struct json *sent, struct result *out)
{
    bool is_text = json_is(sent, JSON_STRING);
    *out = (struct result){0};
    out->value = is_text ? value_of_text(arena, json_str(sent), &out->as_text) : sent;
    out->error_text = json_str(sent);
    out->content = content_of_value(arena, sent);
}

void result_read_mcp(struct arena *arena, const struct json *sent, struct result *out)
{
    static const char *const optional[] = {"annotations", "_meta", "icons"};
    const struct json *content = json_get_text(sent, "content"),
                      *structured = json_get_text(sent, "structuredContent");
    if (!json_is(content, JSON_ARRAY) && !json_is(structured, JSON_OBJECT)) {
        read_plain(arena, sent, out);
        return;
    }
    const struct json *flag = json_get_text(sent, "isError"); /* some servers send a string or a number */
    double number;
    *out = (struct result){.is_call_result = true,
                           .structured = structured,
                           .metadata = json_get_text(sent, "_meta"),
                           .is_error =
                               json_is_true(flag) || str_is(json_str(flag), "true") ||
                               (json_is(flag, JSON_NUMBER) && json_double(flag, &number) && number != 0)};
    content = json_is(content, JSON_ARRAY) ? content : content_of_value(arena, structured);
    /* A client rejects the whole result for one invalid block. */
    struct json *items = NULL;
    for (uint32_t i = 0; i < content->len; i++) {
        if (content_block_is_valid(&content->items[i]))
            continue;
        if (!items) {
            items = ARENA_ARRAY(arena, struct json, content->len);
            memcpy(items, content->items, content->len * sizeof(*items));
        }
        /* Without the members that a client may reject: those that are null, then what annotates a block. */
        const struct json *block = &content->items[i];
        struct json bare = *block;
        for (uint32_t k = 0; json_is(block, JSON_OBJECT) && k < block->len; k++)
            if (json_is(&block->members[k].value, JSON_NULL))
                bare = json_without(arena, &bare, block->members[k].key);
        for (size_t k = 0; k < sizeof(optional) / sizeof(*optional) && !content_block_is_valid(&bare); k++)
            bare = json_without(arena, &bare, str_of(optional[k]));
        items[i] = content_block_is_valid(&bare) ? bare : content_of_value(arena, block)->items[0];
    }
    out->content = items ? json_keep(arena, json_array(items, content->len)) : content;
    out->error_text = joined_text(arena, content);
    if (json_is(structured, JSON_OBJECT))
        out->value = structured;
    else
        out->value = value_of_text(arena, out->error_text, &out->as_text);
}

void result_read(struct arena *arena, const struct json *sent, struct result *out)
{
    const struct json *content = json_get_text(sent, "content");
    enum form form = form_of(sent);
    if (form == FORM_CALL_RESULT)
        result_read_mcp(arena, sent, out);
    else if (form == FORM_TOOL_RETURN && content_is_block_list(content) && !content_error(arena, content).len)
        result_from_value(arena, json_get_text(sent, "value"), content, json_get_text(sent, "metadata"),
                          false, out);
    else
        read_plain(arena, sent, out);
}

void result_read_command(struct arena *arena, const struct json *sent, struct result *out)
{
    const struct json *value = json_get_text(sent, "value"), *metadata = json_get_text(sent, "metadata");
    if (form_of(sent) == FORM_TOOL_RETURN && sent->len == 2 && value && json_is(metadata, JSON_OBJECT))
        result_from_value(arena, value, NULL, metadata, false, out);
    else
        result_read(arena, sent, out);
}

void result_from_value(struct arena *arena, const struct json *value, const struct json *content,
                       const struct json *metadata, bool has_output_schema, struct result *out)
{
    *out = (struct result){.is_beside_content = value && json_is(content, JSON_ARRAY)};
    if (!value && content) {
        out->error_text = joined_text(arena, content);
        value = value_of_text(arena, out->error_text, &out->as_text);
    }
    if (!value)
        value = json_keep(arena, json_null());
    out->value = value;
    out->content = content ? content : content_of_value(arena, value);
    out->structured = has_output_schema && json_is(value, JSON_OBJECT) ? value : NULL;
    out->metadata = metadata;
}

void result_complete(struct arena *arena, struct result *result, bool has_output_schema)
{
    if (has_output_schema && !result->structured && !result->as_text && json_is(result->value, JSON_OBJECT))
        result->structured = result->value;
    const struct json *content = result->content, *value = result->value;
    if (!result->is_beside_content || result->structured || json_is(value, JSON_NULL))
        return;
    for (uint32_t i = 0; i < content->len; i++) {
        struct str text = json_str(json_get_text(&content->items[i], "text"));
        const struct json *parsed = json_is(value, JSON_STRING) ? NULL : result_json_of_text(arena, text);
        if (json_is(value, JSON_STRING) ? str_eq(text, json_str(value)) : parsed && json_equal(parsed, value))
            return; /* a text block has the value, as text or as JSON */
    }
    /* the value as a text block: without structured content nobody would get it */
    struct json *blocks = ARENA_ARRAY(arena, struct json, content->len + 1);
    memcpy(blocks, content->items, content->len * sizeof(*blocks));
    blocks[content->len] = content_of_value(arena, value)->items[0];
    result->content = json_keep(arena, json_array(blocks, content->len + 1));
}

struct str result_text(struct arena *arena, const struct result *result)
{
    if (result->error_text.len || !result->value)
        return result->error_text;
    if (result->as_text)
        return json_str(json_get_text(result->value, "text"));
    if (result->value->type == JSON_STRING)
        return json_str(result->value);
    return json_to_str(arena, result->value);
}

const char *result_parse_error(const struct result *result)
{
    struct str text = str_trim(result->error_text);
    if (!result->as_text || !text.len)
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

/* Of lower-case words, in any case. */
static bool is_one_of(struct str text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text.len == strlen(words[i]) && str_starts_nocase(text, words[i]))
            return true;
    return false;
}
#define IS_ONE_OF(text, words) is_one_of(text, words, sizeof(words) / sizeof(*(words)))

static bool text_is_uninformative(struct str text, bool reads)
{
    static const char *const nothing[] = {"none", "null", "nil", "undefined", "nothing", "n/a", "empty"};
    static const char *const done[] = {"ok", "done", "success", "completed", "finished"};
    static const char *const starts[] = {
        /* "No results found for 'x'.": one short line */
        "no results",    "no result found", "no matches",       "no match found", "no data",
        "no items",      "no records",      "no entries",       "0 results",      "found 0 ",
        "nothing found", "no matching ",    "nothing was found"};
    text = str_trim(text);
    while (text.len && (text.at[text.len - 1] == '.' || text.at[text.len - 1] == '!'))
        text.len--;
    bool is_nothing = !text.len || IS_ONE_OF(text, nothing) || (reads && IS_ONE_OF(text, done));
    if (is_nothing || text.len > RESULT_UNINFORMATIVE_MAX_BYTES || memchr(text.at, '\n', text.len))
        return is_nothing;
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts) && !is_nothing; i++)
        is_nothing = str_starts_nocase(text, starts[i]);
    return is_nothing;
}

bool result_is_uninformative(const struct result *result, enum policy_effects effects)
{
    bool writes = effects != EFFECTS_UNDECLARED && effects != EFFECTS_READ;
    if (writes || !result->value)
        return false;
    for (uint32_t i = 0; json_is(result->content, JSON_ARRAY) && i < result->content->len; i++)
        if (!is_text_block(&result->content->items[i]))
            return false; /* an image, a link */
    if (result->as_text || json_is(result->value, JSON_STRING))
        return text_is_uninformative(result->as_text ? json_str(json_get_text(result->value, "text"))
                                                     : json_str(result->value),
                                     effects == EFFECTS_READ);
    static const char *const counts[] = {"count",       "total",        "total_count", "totalcount",
                                         "num_results", "result_count", "size",        "length"};
    static const char *const flags[] = {"has_more", "hasmore", "has_next", "truncated", "incomplete_results"};
    /* {"results": [], "total": 0}: a count of zero counts as empty */
    int64_t n;
    bool lists = false;
    for (uint32_t i = 0; json_is(result->value, JSON_OBJECT) && i < result->value->len; i++) {
        const struct json_member *m = &result->value->members[i];
        bool is_zero = json_int(&m->value, &n) && n == 0 && IS_ONE_OF(m->key, counts);
        bool is_off = json_is(&m->value, JSON_BOOL) && !m->value.truth && IS_ONE_OF(m->key, flags);
        lists = lists || m->value.type == JSON_ARRAY;
        if (!is_zero && !is_off && !result_is_empty(&m->value))
            return false;
    }
    return lists || result_is_empty(result->value);
}

const struct json *result_compared(struct arena *arena, const struct policy *policy,
                                   const struct ledger_limits *limits, const struct json *value)
{
    if (policy)
        value = redact_without(arena, policy->volatile_results, policy->volatile_result_count, value);
    bool may_write = limits->effects == LEDGER_EFFECTS_UNKNOWN && !limits->polls;
    return may_write ? fresh_ids_without(arena, value) : value;
}

bool result_is_blank(const struct result *result)
{
    for (uint32_t i = 0; json_is(result->content, JSON_ARRAY) && i < result->content->len; i++) {
        const struct json *block = &result->content->items[i];
        if (!is_text_block(block) || str_trim(json_str(json_get_text(block, "text"))).len)
            return false;
    }
    return !result->structured;
}

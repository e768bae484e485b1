/* One walk over a value; a value without redacted fields is returned itself, byte for byte. */
#include "result/redact.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

struct walk {
    struct arena *arena;
    const struct str *fields;
    size_t count;
    bool removes;    /* leaves the fields out instead */
    struct buf path; /* of the current value: "customers[].email" */
};

static bool is_hidden(const struct walk *w, struct str key)
{
    for (size_t i = 0; i < w->count; i++) {
        struct str field = w->fields[i];
        bool is_path = memchr(field.at, '.', field.len) || memchr(field.at, '[', field.len);
        if (str_eq(field, is_path ? buf_view(&w->path) : key))
            return true;
    }
    return false;
}

static struct json replacement(const struct json *value)
{
    return value->type == JSON_STRING ? json_string(STR_LIT(REDACTED)) : json_null();
}

static const struct json *redact(struct walk *w, const struct json *value);

static const struct json *redact_object(struct walk *w, const struct json *object)
{
    const struct json *now = object;
    size_t length = w->path.len;
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        if (length)
            buf_byte(&w->path, '.');
        buf_str(&w->path, member->key);
        bool hides = is_hidden(w, member->key);
        struct json hidden = replacement(&member->value);
        const struct json *value = hides ? &hidden : redact(w, &member->value);
        if (hides && w->removes)
            now = json_keep(w->arena, json_without(w->arena, now, member->key));
        else if (value != &member->value)
            now = json_keep(w->arena, json_with(w->arena, now, member->key, *value));
        w->path.len = length;
    }
    return now;
}

static const struct json *redact_list(struct walk *w, const struct json *list)
{
    struct json *items = NULL;
    size_t length = w->path.len;
    buf_text(&w->path, "[]");
    for (uint32_t i = 0; i < list->len; i++) {
        struct json hidden = replacement(&list->items[i]);
        const struct json *item = is_hidden(w, STR_NONE) ? &hidden : redact(w, &list->items[i]);
        if (item == &list->items[i])
            continue;
        if (!items) {
            items = ARENA_ARRAY(w->arena, struct json, list->len);
            memcpy(items, list->items, list->len * sizeof(*items));
        }
        items[i] = *item;
    }
    w->path.len = length;
    return items ? json_keep(w->arena, json_array(items, list->len)) : list;
}

/* Returns the value itself if nothing in it is hidden. */
static const struct json *redact(struct walk *w, const struct json *value)
{
    if (value->type == JSON_OBJECT)
        return redact_object(w, value);
    return value->type == JSON_ARRAY ? redact_list(w, value) : value;
}

/* A text block that holds JSON, with that JSON redacted; any other block itself. */
static const struct json *redact_block(struct walk *w, const struct json *block)
{
    struct str text = str_trim(json_str(json_get_text(block, "text")));
    struct json value;
    struct json_error fault;
    if (!text.len || (text.at[0] != '{' && text.at[0] != '['))
        return block;
    if (json_parse(w->arena, text, NULL, &value, &fault) != OK && !fault.soft)
        return block;
    const struct json *now = redact(w, &value);
    if (now == &value)
        return block;
    struct buf written = buf_in(w->arena);
    json_write(&written, now);
    return json_keep(w->arena, json_with(w->arena, block, STR_LIT("text"), json_string(buf_view(&written))));
}

const struct json *redact_without(struct arena *arena, const struct str *fields, size_t count,
                                  const struct json *value)
{
    struct walk w = {
        .arena = arena, .fields = fields, .count = count, .removes = true, .path = buf_in(arena)};
    return count && value ? redact(&w, value) : value;
}

bool redact_result(struct arena *arena, const struct str *fields, size_t count, struct result *result)
{
    struct walk w = {.arena = arena, .fields = fields, .count = count, .path = buf_in(arena)};
    struct result now = *result;
    if (!count)
        return false;
    now.value = result->value ? redact(&w, result->value) : NULL;
    now.structured = result->structured ? redact(&w, result->structured) : NULL;
    for (uint32_t i = 0; json_is(result->content, JSON_ARRAY) && i < result->content->len; i++) {
        const struct json *block = redact_block(&w, &result->content->items[i]);
        if (block != &result->content->items[i])
            now.content = json_keep(arena, json_with_item(arena, now.content, i, *block));
    }
    if (now.value == result->value && now.structured == result->structured && now.content == result->content)
        return false;
    if (now.content != result->content)
        now.error_text = STR_NONE; /* it joins the texts before redaction */
    *result = now;
    return true;
}

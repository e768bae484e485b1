/* Two walks: one names the place of the first hit, the other masks secrets and shares what it does not
 * change. */
#include "result/pattern_sets.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/printable.h"
#include "json/build.h"
#include "result/order_text.h"
#include "result/secret_text.h"

/* ---- find ---- */

struct search {
    unsigned sets;
    struct buf path;
    struct pattern_found *found;
};

static struct str find_hidden(struct str text)
{
    return str_of(printable_find_invisible(text));
}

static bool find_in_text(struct search *s, struct str text)
{
    size_t at, len;
    struct pattern_found *found = s->found;
    if ((s->sets & PATTERN_SET_SECRETS) && secret_text_find_key(text, 0, &at, &len, &found->pattern))
        found->set = PATTERN_SET_SECRETS;
    else if ((s->sets & PATTERN_SET_INSTRUCTIONS) && order_text_find(text, 0, &at, &len, &found->pattern))
        found->set = PATTERN_SET_INSTRUCTIONS;
    else if ((s->sets & PATTERN_SET_HIDDEN) && (found->pattern = find_hidden(text)).len)
        found->set = PATTERN_SET_HIDDEN;
    else
        return false;
    return true;
}

static bool find(struct search *s, const struct json *value);

static bool find_in_object(struct search *s, const struct json *object)
{
    size_t length = s->path.len;
    for (uint32_t i = 0; i < object->len; i++) {
        struct str key = object->members[i].key;
        if (find_in_text(s, key)) /* the place is the object: the key is what must not be said */
            return true;
        if (length)
            buf_byte(&s->path, '.');
        buf_str(&s->path, key);
        if (find(s, &object->members[i].value))
            return true;
        s->path.len = length;
    }
    return false;
}

static bool find_in_array(struct search *s, const struct json *array)
{
    size_t length = s->path.len;
    for (uint32_t i = 0; i < array->len; i++) {
        buf_printf(&s->path, "[%u]", i);
        if (find(s, &array->items[i]))
            return true;
        s->path.len = length;
    }
    return false;
}

static bool find(struct search *s, const struct json *value)
{
    return value->type == JSON_STRING   ? find_in_text(s, json_str(value))
           : value->type == JSON_OBJECT ? find_in_object(s, value)
           : value->type == JSON_ARRAY  ? find_in_array(s, value)
                                        : false;
}

bool pattern_sets_find(struct arena *arena, unsigned sets, const struct json *value,
                       struct pattern_found *found)
{
    struct search s = {.sets = sets, .path = buf_in(arena), .found = found};
    if (!value || !find(&s, value))
        return false;
    found->path = str_cut(buf_view(&s.path), PATTERN_PATH_MAX_BYTES);
    return true;
}

/* ---- mask ---- */

static struct str mask_secrets(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    size_t done = 0, at, len;
    struct str name;
    while (secret_text_find_key(text, done, &at, &len, &name)) {
        buf_add(&out, text.at + done, at - done);
        buf_printf(&out, "[redacted " STR_FMT "]", STR_ARG(name));
        done = at + len;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}

/* Hidden characters first: they could divide a secret. */
struct str pattern_sets_mask_text(struct arena *arena, unsigned sets, struct str text)
{
    struct buf visible = buf_in(arena);
    if ((sets & PATTERN_SET_HIDDEN) && find_hidden(text).len) {
        printable_strip_invisible(&visible, text);
        text = visible.len ? buf_view(&visible) : STR_LIT("");
    }
    return sets & PATTERN_SET_SECRETS ? mask_secrets(arena, text) : text;
}

static const struct json *mask_object(struct arena *arena, unsigned sets, const struct json *object)
{
    struct json_member *members = NULL;
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        struct str key = pattern_sets_mask_text(arena, sets, member->key);
        const struct json *value = pattern_sets_mask(arena, sets, &member->value);
        if (key.at == member->key.at && value == &member->value)
            continue;
        if (!members) {
            members = ARENA_ARRAY(arena, struct json_member, object->len);
            memcpy(members, object->members, object->len * sizeof(*members));
        }
        if (key.at != member->key.at) /* two masked keys stay two */
            key = arena_printf(arena, STR_FMT " %u", STR_ARG(key), i + 1);
        members[i] = json_member(key, *value);
    }
    return members ? json_keep(arena, json_object(arena, members, object->len)) : object;
}

static const struct json *mask_array(struct arena *arena, unsigned sets, const struct json *array)
{
    struct json *items = NULL;
    for (uint32_t i = 0; i < array->len; i++) {
        const struct json *item = pattern_sets_mask(arena, sets, &array->items[i]);
        if (item == &array->items[i])
            continue;
        if (!items) {
            items = ARENA_ARRAY(arena, struct json, array->len);
            memcpy(items, array->items, array->len * sizeof(*items));
        }
        items[i] = *item;
    }
    return items ? json_keep(arena, json_array(items, array->len)) : array;
}

const struct json *pattern_sets_mask(struct arena *arena, unsigned sets, const struct json *value)
{
    if (!value)
        return NULL;
    if (value->type == JSON_OBJECT)
        return mask_object(arena, sets, value);
    if (value->type == JSON_ARRAY)
        return mask_array(arena, sets, value);
    if (value->type != JSON_STRING)
        return value;
    struct str text = json_str(value), masked = pattern_sets_mask_text(arena, sets, text);
    return masked.at == text.at ? value : json_keep(arena, json_string(masked));
}

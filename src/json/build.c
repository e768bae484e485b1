/* New values share what they do not change with the old ones. */
#include "json/build.h"

#include "base/arena.h"
#include "json/decimal.h"
#include "json/object.h"

#include <math.h>

struct json json_literal(struct str number)
{
    struct decimal d = decimal_of(number);
    return (struct json){.type = JSON_NUMBER,
                         .integral = decimal_is_whole(&d),
                         .len = (uint32_t)number.len,
                         .text = number.at};
}

struct json json_number(struct arena *arena, double n)
{
    char text[DECIMAL_DOUBLE_BYTES];
    if (!isfinite(n))
        return json_null();
    size_t len = decimal_from_double(text, n);
    return json_literal(arena_dup(arena, (struct str){text, len}));
}

struct json json_integer(struct arena *arena, int64_t n)
{
    char *text = arena_alloc(arena, 24), *p = text + 24;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        *--p = '-';
    return (struct json){.type = JSON_NUMBER, .integral = true, .len = (uint32_t)(text + 24 - p), .text = p};
}

const struct json *json_keep(struct arena *arena, struct json value)
{
    struct json *kept = arena_alloc(arena, sizeof(*kept));
    *kept = value;
    return kept;
}

static struct json object_of(struct arena *arena, struct json_member *members, size_t count)
{
    const struct json_member *duplicate;
    uint32_t left = (uint32_t)count;
    const struct json_member *row = object_row(arena, members, &left, &duplicate);
    return (struct json){.type = JSON_OBJECT, .len = left, .members = row};
}

/* A copy of the members with space for `extra` more; object_of then copies them to their final place. */
static struct json_member *scratch_of(struct arena *arena, const struct json_member *members, size_t count,
                                      size_t extra)
{
    struct json_member *scratch = arena_alloc(arena, (count + extra) * sizeof(*scratch));
    if (count)
        memcpy(scratch, members, count * sizeof(*scratch));
    return scratch;
}

struct json json_object(struct arena *arena, const struct json_member *members, size_t count)
{
    return object_of(arena, scratch_of(arena, members, count, 0), count);
}

struct json json_with(struct arena *arena, const struct json *object, struct str key, struct json value)
{
    const struct json_member *there = object_find(object, key);
    if (there) {
        struct json_member *row = object_dup_row(arena, object);
        row[there - object->members].value = value;
        return (struct json){.type = JSON_OBJECT, .len = object->len, .members = row};
    }
    struct json_member *scratch = scratch_of(arena, object->members, object->len, 1);
    scratch[object->len] = json_member(key, value);
    return object_of(arena, scratch, object->len + 1);
}

struct json json_without(struct arena *arena, const struct json *object, struct str key)
{
    const struct json_member *there = object_find(object, key);
    if (!there)
        return *object;
    size_t at = (size_t)(there - object->members), after = object->len - at - 1;
    struct json_member *scratch = scratch_of(arena, object->members, object->len, 0);
    memmove(scratch + at, scratch + at + 1, after * sizeof(*scratch));
    return object_of(arena, scratch, object->len - 1);
}

struct json json_with_item(struct arena *arena, const struct json *array, size_t at, struct json item)
{
    struct json *items = arena_alloc(arena, array->len * sizeof(*items));
    memcpy(items, array->items, array->len * sizeof(*items));
    items[at] = item;
    return json_array(items, array->len);
}

void json_edit_set(struct json_edit *edit, uint32_t at, struct json value)
{
    const struct json *of = edit->of;
    if (of->type == JSON_OBJECT) {
        edit->members = edit->members ? edit->members : object_dup_row(edit->arena, of);
        edit->members[at].value = value;
        return;
    }
    if (!edit->items) {
        edit->items = arena_alloc(edit->arena, of->len * sizeof(*edit->items));
        memcpy(edit->items, of->items, of->len * sizeof(*edit->items));
    }
    edit->items[at] = value;
}

const struct json *json_edit_end(const struct json_edit *edit)
{
    struct json changed = {.type = edit->of->type, .len = edit->of->len};
    if (edit->items)
        changed.items = edit->items;
    else if (edit->members)
        changed.members = edit->members;
    else
        return edit->of;
    return json_keep(edit->arena, changed);
}

/* Raw bytes are copied once, with the outermost value that has them; pointers into them then point into the
 * copy. */
struct copied_span {
    struct str old;
    const char *copy;
};

static const char *copy_bytes(struct arena *arena, const struct copied_span *span, const char *at, size_t len)
{
    uintptr_t p = (uintptr_t)at, start = (uintptr_t)span->old.at;
    if (len && p >= start && p < start + span->old.len)
        return span->copy + (p - start);
    return arena_dup(arena, (struct str){at, len}).at;
}

static struct json copy_value(struct arena *arena, const struct json *v, struct copied_span span)
{
    struct json copy = *v;
    if (v->raw_len) {
        copy.raw = copy_bytes(arena, &span, v->raw, v->raw_len);
        span = (struct copied_span){{v->raw, v->raw_len}, copy.raw};
    }
    if (v->type == JSON_STRING || v->type == JSON_NUMBER) {
        copy.text = copy_bytes(arena, &span, v->text, v->len);
    } else if (v->type == JSON_ARRAY) {
        struct json *items = arena_alloc(arena, v->len * sizeof(*items));
        for (uint32_t i = 0; i < v->len; i++)
            items[i] = copy_value(arena, &v->items[i], span);
        copy.items = items;
    } else if (v->type == JSON_OBJECT) {
        struct json_member *row = object_dup_row(arena, v);
        for (uint32_t i = 0; i < v->len; i++) {
            row[i].key.at = copy_bytes(arena, &span, row[i].key.at, row[i].key.len);
            row[i].value = copy_value(arena, &v->members[i].value, span);
        }
        copy.members = row;
    }
    return copy;
}

struct json json_copy(struct arena *arena, const struct json *value)
{
    return copy_value(arena, value, (struct copied_span){0});
}

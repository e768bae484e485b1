/* Walks both values at once and collects operations. */
#include "json/patch.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/path.h"

struct patch_walk {
    struct arena *arena;
    struct buf path; /* JSON Pointer to the current place */
    struct json *operations;
    size_t count, room;
};

static void add_operation(struct patch_walk *d, const char *name, const struct json *value)
{
    struct json_member members[3] = {
        json_member(STR_LIT("op"), json_string(str_of(name))),
        json_member(STR_LIT("path"), json_string(arena_dup(d->arena, buf_view(&d->path)))),
        json_member(STR_LIT("value"), value ? *value : json_null()),
    };
    if (d->count == d->room) {
        size_t room = d->room ? d->room * 2 : 4;
        struct json *more = arena_alloc(d->arena, room * sizeof(*more));
        if (d->count)
            memcpy(more, d->operations, d->count * sizeof(*more));
        d->operations = more;
        d->room = room;
    }
    d->operations[d->count++] = json_object(d->arena, members, value ? 3 : 2);
}

static void diff_value(struct patch_walk *d, const struct json *before, const struct json *after);

static void diff_objects(struct patch_walk *d, const struct json *before, const struct json *after)
{
    for (uint32_t i = 0; i < before->len; i++) {
        const struct json_member *m = &before->members[i];
        size_t back = d->path.len;
        json_pointer_put(&d->path, m->key);
        if (!json_get(after, m->key))
            add_operation(d, "remove", NULL);
        d->path.len = back;
    }
    for (uint32_t i = 0; i < after->len; i++) {
        const struct json_member *m = &after->members[i];
        const struct json *old = json_get(before, m->key);
        size_t back = d->path.len;
        json_pointer_put(&d->path, m->key);
        if (old)
            diff_value(d, old, &m->value);
        else
            add_operation(d, "add", &m->value);
        d->path.len = back;
    }
}

static bool same_scalar(const struct json *a, const struct json *b)
{
    if (a->type == JSON_NULL)
        return true;
    if (a->type == JSON_BOOL)
        return a->truth == b->truth;
    return str_eq((struct str){a->text, a->len}, (struct str){b->text, b->len});
}

static void diff_value(struct patch_walk *d, const struct json *before, const struct json *after)
{
    bool comparable = before->type == after->type;
    if (comparable && before->type == JSON_OBJECT) {
        if (before->members != after->members)
            diff_objects(d, before, after);
    } else if (comparable && before->type == JSON_ARRAY && before->len == after->len) {
        for (uint32_t i = 0; before->items != after->items && i < after->len; i++) {
            size_t back = d->path.len;
            buf_printf(&d->path, "/%u", i);
            diff_value(d, &before->items[i], &after->items[i]);
            d->path.len = back;
        }
    } else if (!comparable || before->type == JSON_ARRAY || !same_scalar(before, after)) {
        add_operation(d, "replace", after);
    }
}

struct json json_patch(struct arena *arena, const struct json *before, const struct json *after)
{
    struct patch_walk d = {.arena = arena, .path = buf_in(arena)};
    diff_value(&d, before, after);
    return json_array(d.operations, d.count);
}

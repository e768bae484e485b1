/* Both walk two values at once. */
#include "json/diff.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/path.h"
#include "json/write.h"

struct diff_walk {
    struct arena *arena;
    struct buf path;
    struct json_diff_result *out;
};

/* Long values are shown from shortly before they differ: how many bytes to leave out. */
static size_t common_prefix(struct str a, struct str b)
{
    size_t same = str_same(a, b);
    if (same < JSON_DIFF_VALUE_MAX_BYTES / 2)
        return 0;
    same -= JSON_DIFF_VALUE_MAX_BYTES / 4;
    while (same && ((unsigned char)a.at[same] & 0xc0) == 0x80)
        same--;
    return same;
}

/* `value` NULL: absent. `text` is shown from `from` on. */
static void add_line(struct diff_walk *w, char sign, const struct json *value, struct str text, size_t from)
{
    struct buf line = buf_in(w->arena);
    if (!value)
        return;
    if (w->out->count == JSON_DIFF_LINES_MAX) {
        w->out->more++;
        return;
    }
    struct str rest = str_from(text, from), shown = str_cut(rest, JSON_DIFF_VALUE_MAX_BYTES);
    buf_printf(&line, STR_FMT " = %s" STR_FMT "%s",
               STR_ARG(w->path.len ? buf_view(&w->path) : STR_LIT("all of it")), from ? "… " : "",
               STR_ARG(shown), shown.len < rest.len ? " …" : "");
    w->out->lines[w->out->count++] = (struct json_diff_line){sign, buf_view(&line)};
}

static void walk(struct diff_walk *w, const struct json *expected, const struct json *got);

static void walk_member(struct diff_walk *w, struct str key, const struct json *expected,
                        const struct json *got)
{
    size_t before = w->path.len;
    bool is_identifier = str_is_name(key) && !str_has(key, '-') && (key.at[0] < '0' || key.at[0] > '9');
    if (!is_identifier) {
        buf_byte(&w->path, '[');
        json_write_string(&w->path, key);
        buf_byte(&w->path, ']');
    } else {
        buf_text(&w->path, before ? "." : "");
        buf_str(&w->path, key);
    }
    walk(w, expected, got);
    w->path.len = before;
}

/* NULL: absent. */
static void walk(struct diff_walk *w, const struct json *expected, const struct json *got)
{
    if (expected && got && json_equal(expected, got))
        return;
    if (json_is(expected, JSON_OBJECT) && json_is(got, JSON_OBJECT)) {
        for (uint32_t i = 0; i < expected->len; i++)
            walk_member(w, expected->members[i].key, &expected->members[i].value,
                        json_get(got, expected->members[i].key));
        for (uint32_t i = 0; i < got->len; i++)
            if (!json_get(expected, got->members[i].key))
                walk_member(w, got->members[i].key, NULL, &got->members[i].value);
    } else if (json_is(expected, JSON_ARRAY) && json_is(got, JSON_ARRAY)) {
        for (uint32_t i = 0; i < expected->len || i < got->len; i++) {
            size_t before = w->path.len;
            buf_printf(&w->path, "[%u]", i);
            walk(w, i < expected->len ? &expected->items[i] : NULL, i < got->len ? &got->items[i] : NULL);
            w->path.len = before;
        }
    } else {
        struct str wanted = json_to_str(w->arena, expected), found = json_to_str(w->arena, got);
        size_t from = expected && got ? common_prefix(wanted, found) : 0;
        add_line(w, '-', expected, wanted, from);
        add_line(w, '+', got, found, from);
    }
}

void json_diff_find(struct arena *arena, const struct json *expected, const struct json *got,
                    struct json_diff_result *out)
{
    struct diff_walk w = {.arena = arena, .path = buf_in(arena), .out = out};
    *out = (struct json_diff_result){.count = 0};
    walk(&w, expected, got);
}

/* ---- for programs ---- */

#define PATCH_PATHS_MAX_BYTES 1048576u /* of all operations: each path below a long name has it */

struct patch_walk {
    struct arena *arena;
    struct buf path; /* JSON Pointer to the current place */
    struct json *operations;
    size_t count, path_bytes;
};

static void add_operation(struct patch_walk *d, const char *name, const struct json *value)
{
    d->path_bytes += d->path.len;
    if (d->path_bytes > PATCH_PATHS_MAX_BYTES)
        return;
    struct json_member members[3] = {
        json_member(STR_LIT("op"), json_string(str_of(name))),
        json_member(STR_LIT("path"), json_string(arena_dup(d->arena, buf_view(&d->path)))),
        json_member(STR_LIT("value"), value ? *value : json_null()),
    };
    d->operations = arena_grow(d->arena, d->operations, d->count, sizeof(*d->operations));
    d->operations[d->count++] = json_object(d->arena, members, value ? 3 : 2);
}

static void diff_value(struct patch_walk *d, const struct json *before, const struct json *after);

static void diff_objects(struct patch_walk *d, const struct json *before, const struct json *after)
{
    size_t back = d->path.len;
    for (uint32_t i = 0; i < before->len; i++) {
        const struct json_member *m = &before->members[i];
        json_pointer_put(&d->path, m->key);
        if (!json_get(after, m->key))
            add_operation(d, "remove", NULL);
        d->path.len = back;
    }
    for (uint32_t i = 0; i < after->len; i++) {
        const struct json_member *m = &after->members[i];
        const struct json *old = json_get(before, m->key);
        json_pointer_put(&d->path, m->key);
        if (old)
            diff_value(d, old, &m->value);
        else
            add_operation(d, "add", &m->value);
        d->path.len = back;
    }
}

static void diff_value(struct patch_walk *d, const struct json *before, const struct json *after)
{
    bool comparable = before->type == after->type, same = comparable;
    if (comparable && before->type == JSON_BOOL)
        same = before->truth == after->truth;
    else if (comparable && (before->type == JSON_NUMBER || before->type == JSON_STRING))
        same = str_eq((struct str){before->text, before->len}, (struct str){after->text, after->len});
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
    } else if (!same || before->type == JSON_ARRAY) {
        add_operation(d, "replace", after);
    }
}

struct json json_patch(struct arena *arena, const struct json *before, const struct json *after)
{
    struct patch_walk d = {.arena = arena, .path = buf_in(arena)};
    diff_value(&d, before, after);
    if (d.path_bytes > PATCH_PATHS_MAX_BYTES) {
        d = (struct patch_walk){.arena = arena, .path = buf_in(arena)};
        add_operation(&d, "replace", after);
    }
    return json_array(d.operations, d.count);
}

/* A walk over the schema's properties, items, alternatives and local references. */
#include "catalog/secret_fields.h"

#include "base/arena.h"
#include "base/buf.h"

struct walk {
    struct arena *arena;
    const struct json *root;
    struct buf path;
    struct str *list; /* SECRET_FIELDS_MAX */
    size_t count;
    unsigned depth, steps;
};

static void walk(struct walk *w, const struct json *schema);

static void add(struct walk *w)
{
    struct str path = buf_view(&w->path);
    for (size_t i = 0; i < w->count; i++)
        if (str_eq(w->list[i], path))
            return;
    if (!w->list)
        w->list = ARENA_ARRAY(w->arena, struct str, SECRET_FIELDS_MAX);
    if (path.len)
        w->list[w->count++] = arena_dup(w->arena, path);
}

static void walk_items(struct walk *w, const struct json *items)
{
    size_t length = w->path.len;
    buf_text(&w->path, "[]");
    if (json_is(items, JSON_OBJECT))
        walk(w, items);
    for (uint32_t i = 0; json_is(items, JSON_ARRAY) && i < items->len; i++)
        walk(w, &items->items[i]);
    w->path.len = length;
}

/* "#/$defs/key"; names with an escape are not looked up. */
static const struct json *referenced(const struct walk *w, struct str reference)
{
    const struct json *at = w->root;
    if (!str_starts(reference, "#/"))
        return NULL;
    for (struct str rest = str_from(reference, 2); rest.len && at;) {
        const char *slash = memchr(rest.at, '/', rest.len);
        size_t len = slash ? (size_t)(slash - rest.at) : rest.len;
        at = json_get(at, (struct str){rest.at, len});
        rest = str_from(rest, len + 1);
    }
    return at;
}

static void walk(struct walk *w, const struct json *schema)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    static const char *const others[] = {"if", "then", "else"};
    const struct json *properties = json_get_text(schema, "properties");
    size_t length = w->path.len;
    if (!json_is(schema, JSON_OBJECT) || w->depth == SECRET_FIELDS_DEPTH_MAX ||
        w->count == SECRET_FIELDS_MAX || w->steps == SECRET_FIELDS_STEPS_MAX)
        return;
    w->steps++;
    w->depth++;
    if (json_is_true(json_get_text(schema, "writeOnly")) ||
        str_is(json_str(json_get_text(schema, "format")), "password"))
        add(w);
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++) {
        if (length)
            buf_byte(&w->path, '.');
        buf_str(&w->path, properties->members[i].key);
        walk(w, &properties->members[i].value);
        w->path.len = length;
    }
    if (json_get_text(schema, "items"))
        walk_items(w, json_get_text(schema, "items"));
    if (json_get_text(schema, "prefixItems"))
        walk_items(w, json_get_text(schema, "prefixItems"));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        const struct json *list = json_get_text(schema, lists[i]);
        for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->len; k++)
            walk(w, &list->items[k]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        walk(w, json_get_text(schema, others[i]));
    walk(w, referenced(w, json_str(json_get_text(schema, "$ref"))));
    w->depth--;
}

size_t secret_fields_find(struct arena *arena, const struct json *schema, const struct str **paths)
{
    struct walk w = {.arena = arena, .root = schema, .path = buf_in(arena)};
    *paths = NULL;
    /* Most schemas name neither keyword: their text tells without a walk. */
    if (!schema ||
        (schema->raw_len && !memmem(schema->raw, schema->raw_len, "writeOnly", 9) &&
         !memmem(schema->raw, schema->raw_len, "password", 8) && !memchr(schema->raw, '\\', schema->raw_len)))
        return 0;
    walk(&w, schema);
    *paths = w.list;
    return w.count;
}

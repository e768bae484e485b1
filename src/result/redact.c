/*
 * Two walks over all parts of a result: the first collects the values of the fields, the second masks them
 * and their copies. A value without either is returned itself, byte for byte.
 */
#include "result/redact.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/spelled.h"
#include "json/write.h"
#include "result/redact_copies.h"
#include "result/redact_fit.h"
#include "result/redact_names.h"

struct walk {
    struct arena *arena;
    const struct str *fields;
    size_t count;
    bool *are_paths;           /* of the fields: the others are bare names */
    struct redact_names names; /* of the fields, in texts */
    bool removes;              /* leaves the fields out instead */
    struct buf path;           /* of the current value: "customers[].email" */
    struct redact_copies *copies;
    bool collects;                /* the first walk */
    bool keeps_words;             /* a string that is one lower-case word may be an enum's: is no copy */
    const struct redact_fit *fit; /* masks that the output schema accepts; NULL: by type */
    struct redact_found *found;   /* NULL: not asked for */
    unsigned nested;              /* JSON in a string */
};

static struct walk walk_for(struct arena *arena, const struct str *fields, size_t count)
{
    struct walk w = {.arena = arena,
                     .fields = fields,
                     .count = count,
                     .are_paths = arena_alloc(arena, count * sizeof(bool)),
                     .path = buf_in(arena)};
    for (size_t i = 0; i < count; i++)
        w.are_paths[i] = memchr(fields[i].at, '.', fields[i].len) || memchr(fields[i].at, '[', fields[i].len);
    return w;
}

static bool is_hidden(struct walk *w, struct str key)
{
    for (size_t i = 0; i < w->count; i++) {
        if (!str_eq(w->fields[i], w->are_paths[i] ? buf_view(&w->path) : key))
            continue;
        if (w->found && i < REDACT_FIELDS_MAX)
            w->found->fields |= (uint64_t)1 << i;
        return true;
    }
    return false;
}

static struct json mask_of(struct walk *w, const struct json *value)
{
    switch (value->type) {
    case JSON_STRING:
        return json_string(STR_LIT(REDACTED));
    case JSON_NUMBER:
        return json_literal(STR_LIT("0"));
    case JSON_BOOL:
        return json_bool(false);
    case JSON_ARRAY:
        return json_array(NULL, 0);
    case JSON_OBJECT:
        return json_object(w->arena, NULL, 0);
    default:
        return json_null();
    }
}

/* What stands for a hidden value; NULL: it is left out. */
static const struct json *hide(struct walk *w, const struct json *value, const struct json *schema,
                               bool is_required)
{
    if (w->removes)
        return NULL;
    if (w->collects) {
        redact_copies_add(w->copies, value);
        return value;
    }
    struct json mask = mask_of(w, value);
    if (w->found && value->type != JSON_STRING && value->type != JSON_NULL)
        w->found->blank = true;
    if (schema)
        return redact_fit_mask(w->fit, schema, json_keep(w->arena, mask), is_required);
    return json_keep(w->arena, mask);
}

static const struct json *walk(struct walk *w, const struct json *value, const struct json *schema);

/* The object or array in a text, however it is spelled. */
static bool json_in(struct walk *w, struct str text, struct json *out)
{
    struct json_error fault;
    struct str trimmed = str_trim(text);
    if (w->nested == REDACT_NESTED_MAX || !trimmed.len || !strchr("{[`\"", trimmed.at[0]))
        return false;
    bool read = json_parse(w->arena, trimmed, NULL, out, &fault) == OK || fault.soft ||
                json_read_spelled(w->arena, trimmed, out, NULL) == JSON_SPELLED;
    return read && (out->type == JSON_OBJECT || out->type == JSON_ARRAY);
}

static bool is_lower_word(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!(text.at[i] >= 'a' && text.at[i] <= 'z') && text.at[i] != '_' && text.at[i] != '-')
            return false;
    return true;
}

/* JSON in the text is walked as a value of its own; other text is searched for copies and named values. */
static struct str walk_text(struct walk *w, struct str text)
{
    struct json value;
    if (json_in(w, text, &value)) {
        struct buf outer = w->path, written = buf_in(w->arena);
        w->path = buf_in(w->arena);
        w->nested++;
        const struct json *now = walk(w, &value, NULL);
        w->nested--;
        w->path = outer;
        if (now == &value)
            return text;
        json_write(&written, now);
        return buf_view(&written);
    }
    if (w->collects || (w->keeps_words && is_lower_word(text)))
        return text;
    text = redact_copies_mask(w->copies, text);
    return redact_named_values(w->arena, &w->names, text);
}

static const struct json *walk_string(struct walk *w, const struct json *value)
{
    if (w->removes)
        return value;
    struct str text = json_str(value), now = walk_text(w, text);
    return now.at == text.at ? value : json_keep(w->arena, json_string(now));
}

/* A long number may be a copy, too. */
static const struct json *walk_number(struct walk *w, const struct json *value)
{
    struct str text = {value->text, value->len};
    if (w->removes || w->collects || text.len < REDACT_NUMBER_MIN_BYTES)
        return value;
    bool is_copy = redact_copies_mask(w->copies, text).at != text.at;
    return is_copy ? json_keep(w->arena, json_literal(STR_LIT("0"))) : value;
}

/* A key may be a copy: {"ana@example.com": {…}}. Two masked keys stay two. */
static struct str walk_key(struct walk *w, struct str key, unsigned *masked)
{
    if (w->removes || w->collects || is_lower_word(key))
        return key;
    struct str now = redact_copies_mask(w->copies, key);
    if (now.at != key.at && ++*masked > 1)
        now = arena_printf(w->arena, STR_FMT " %u", STR_ARG(now), *masked);
    return now;
}

static const struct json *walk_object(struct walk *w, const struct json *object, const struct json *schema)
{
    struct json_member *members = NULL;
    size_t length = w->path.len, count = 0;
    unsigned masked = 0;
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        struct str key = walk_key(w, member->key, &masked);
        if (length)
            buf_byte(&w->path, '.');
        buf_str(&w->path, member->key);
        const struct json *inner = schema ? redact_fit_property(w->fit, schema, member->key) : NULL;
        const struct json *value =
            is_hidden(w, member->key)
                ? hide(w, &member->value, inner, schema && redact_fit_requires(w->fit, schema, member->key))
                : walk(w, &member->value, inner);
        w->path.len = length;
        if (!members && (value != &member->value || key.at != member->key.at)) {
            members = ARENA_ARRAY(w->arena, struct json_member, object->len);
            memcpy(members, object->members, i * sizeof(*members));
            count = i;
        }
        if (members && value)
            members[count++] = json_member(key, *value);
    }
    return members ? json_keep(w->arena, json_object(w->arena, members, count)) : object;
}

/* Changes an item of a copy of the list, which is made for the first one. */
static void put_item(struct arena *arena, struct json **copy, const struct json *list, uint32_t i,
                     const struct json *item)
{
    if (!*copy) {
        *copy = arena_alloc(arena, list->len * sizeof(**copy));
        memcpy(*copy, list->items, list->len * sizeof(**copy));
    }
    (*copy)[i] = *item;
}

static const struct json *walk_list(struct walk *w, const struct json *list, const struct json *schema)
{
    static const struct json null = {.type = JSON_NULL};
    struct json *items = NULL;
    size_t length = w->path.len;
    buf_text(&w->path, "[]");
    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *inner = schema ? redact_fit_item(w->fit, schema, i) : NULL;
        const struct json *item =
            is_hidden(w, STR_NONE) ? hide(w, &list->items[i], inner, true) : walk(w, &list->items[i], inner);
        if (item != &list->items[i])
            put_item(w->arena, &items, list, i, item ? item : &null);
    }
    w->path.len = length;
    return items ? json_keep(w->arena, json_array(items, list->len)) : list;
}

/* Returns the value itself if nothing in it changes, or if the result will be withheld. */
static const struct json *walk(struct walk *w, const struct json *value, const struct json *schema)
{
    if (w->copies && w->copies->overflow)
        return value;
    switch (value->type) {
    case JSON_OBJECT:
        return walk_object(w, value, schema);
    case JSON_ARRAY:
        return walk_list(w, value, schema);
    case JSON_STRING:
        return walk_string(w, value);
    case JSON_NUMBER:
        return walk_number(w, value);
    default:
        return value;
    }
}

static bool is_shown(struct str key)
{
    static const struct str shown[] = {STR("text"), STR("uri"), STR("name"), STR("title"),
                                       STR("description")};
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        if (str_eq(key, shown[i]))
            return true;
    return false;
}

/* All strings of a block that a reader sees; not its type, nor base64. */
static const struct json *walk_block(struct walk *w, const struct json *block)
{
    struct json_member *members = NULL;
    for (uint32_t i = 0; json_is(block, JSON_OBJECT) && i < block->len; i++) {
        const struct json_member *member = &block->members[i];
        const struct json *value = &member->value, *now = value;
        if (value->type == JSON_STRING && is_shown(member->key))
            now = walk_string(w, value);
        else if (value->type == JSON_OBJECT && str_is(member->key, "resource"))
            now = walk_block(w, value);
        if (now == value)
            continue;
        if (!members)
            members = memcpy(arena_alloc(w->arena, block->len * sizeof(*members)), block->members,
                             block->len * sizeof(*members));
        members[i] = json_member(member->key, *now);
    }
    return members ? json_keep(w->arena, json_object(w->arena, members, block->len)) : block;
}

static const struct json *walk_content(struct walk *w, const struct json *content)
{
    struct json *items = NULL;
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++) {
        const struct json *block = walk_block(w, &content->items[i]);
        if (block != &content->items[i])
            put_item(w->arena, &items, content, i, block);
    }
    return items ? json_keep(w->arena, json_array(items, content->len)) : content;
}

/* True: it changed. */
static bool walk_result(struct walk *w, const struct result *given, struct result *now)
{
    const struct json *schema = w->fit ? redact_fit_root(w->fit) : NULL;
    *now = *given;
    now->structured = given->structured ? walk(w, given->structured, schema) : NULL;
    now->value = given->value == given->structured ? now->structured
                 : given->value                    ? walk(w, given->value, schema)
                                                   : NULL;
    now->content = walk_content(w, given->content);
    now->metadata = given->metadata ? walk(w, given->metadata, NULL) : NULL;
    now->error_text = walk_text(w, given->error_text);
    return now->value != given->value || now->structured != given->structured ||
           now->content != given->content || now->metadata != given->metadata ||
           now->error_text.at != given->error_text.at;
}

/* Masked by type it is in `now`. If that does not fit: as the schema demands, then without copies that may be
 * words of an enum. */
static bool mask_to_fit(struct walk *w, const struct schema *output, const struct result *given,
                        struct result *now)
{
    for (int effort = 0; effort < 3; effort++) {
        if (effort == 1)
            w->fit = redact_fit_new(w->arena, output);
        w->keeps_words = effort == 2;
        if (effort)
            walk_result(w, given, now);
        if (schema_validate(output, now->value) == SCHEMA_VALID)
            return true;
    }
    return false;
}

enum redact_status redact_result(struct arena *arena, const struct str *fields, size_t count,
                                 const struct schema *output, struct result *result,
                                 struct redact_found *found)
{
    if (!count)
        return REDACT_NOTHING;
    struct result given = *result, now;
    struct redact_copies copies = {.arena = arena};
    struct walk w = walk_for(arena, fields, count);
    redact_names_of(&w.names, arena, fields, count);
    w.copies = &copies;
    w.found = found;
    w.collects = true;
    walk_result(&w, &given, &now);
    w.collects = false;
    bool changed = !copies.overflow && walk_result(&w, &given, &now);
    bool was_valid = changed && output && given.value && schema_validate(output, given.value) == SCHEMA_VALID;
    bool fits = !was_valid || mask_to_fit(&w, output, &given, &now);
    if (copies.overflow)
        return REDACT_TOO_COMPLEX;
    if (!fits)
        return REDACT_UNFIT;
    if (changed)
        *result = now;
    return changed ? REDACT_DONE : REDACT_NOTHING;
}

struct str redact_text(struct arena *arena, const struct str *fields, size_t count, struct str text)
{
    if (!count || !text.len)
        return text;
    struct redact_copies copies = {.arena = arena};
    struct walk w = walk_for(arena, fields, count);
    redact_names_of(&w.names, arena, fields, count);
    w.copies = &copies;
    w.collects = true;
    walk_text(&w, text);
    w.collects = false;
    text = walk_text(&w, text);
    return copies.overflow ? STR_LIT(REDACTED) : text;
}

const struct json *redact_without(struct arena *arena, const struct str *fields, size_t count,
                                  const struct json *value)
{
    if (!count || !value)
        return value;
    struct walk w = walk_for(arena, fields, count);
    w.removes = true;
    return walk(&w, value, NULL);
}

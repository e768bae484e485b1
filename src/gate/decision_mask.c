/*
 * A walk that only looks, and a second one that masks, if the first found a secret. The names of members
 * repeat from call to call: a small table remembers which are secret.
 */
#include "gate/decision_mask.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "catalog/tool.h"
#include "result/redact.h"
#include "result/redact_copies.h"

#include <stdlib.h>

#define NAMES_REMEMBERED    256u /* a power of two */
#define NAME_REMEMBERED_MAX 30u  /* bytes; longer names are compared each time */
#define NAME_COMPARED_MAX   128u /* bytes of a member's name that count */
#define MASK_NESTED_MAX     4u   /* JSON in a string in JSON in a string */
#define MASK_DEPTH_MAX      (JSON_MAX_DEPTH + 1)

struct remembered_name {
    uint8_t len; /* 0: empty */
    bool is_secret;
    char bytes[NAME_REMEMBERED_MAX];
};

struct decision_mask {
    struct str *globs; /* folded */
    size_t count;
    struct remembered_name names[NAMES_REMEMBERED];
};

struct decision_masking {
    struct decision_mask *mask;
    struct arena *arena;
    const struct tool *tool;
    struct redact_copies copies;
    const struct str *paths; /* JSON Pointers of the masked arguments */
    size_t path_count, path_capacity;
    struct buf path; /* of the current value, as a JSON Pointer */
    bool keeps;      /* the paths are listed */
    unsigned nested;
};

/* ---- names ---- */

/* In lower case, without '_' and '-'. */
static struct str fold(struct str name, char folded[NAME_COMPARED_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < name.len && len < NAME_COMPARED_MAX; i++) {
        char c = name.at[i];
        if (c != '_' && c != '-')
            folded[len++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    return (struct str){folded, len};
}

struct decision_mask *decision_mask_new(const struct str *names, size_t count)
{
    struct decision_mask *mask = calloc(1, sizeof(*mask));
    if (!mask || !(mask->globs = calloc(count + 1, sizeof(*mask->globs))))
        abort();
    for (size_t i = 0; i < count; i++) {
        char *folded = malloc(NAME_COMPARED_MAX);
        if (!folded)
            abort();
        mask->globs[mask->count++] = fold(names[i], folded);
    }
    return mask;
}

void decision_mask_free(struct decision_mask *mask)
{
    for (size_t i = 0; mask && i < mask->count; i++)
        free((char *)mask->globs[i].at);
    if (mask)
        free(mask->globs);
    free(mask);
}

static bool compare_name(const struct decision_mask *mask, struct str name)
{
    char folded[NAME_COMPARED_MAX];
    struct str short_name = fold(name, folded);
    for (size_t i = 0; i < mask->count; i++)
        if (str_glob(mask->globs[i], short_name))
            return true;
    return false;
}

static size_t slot_of(struct str name)
{
    uint64_t first = 0, last = 0;
    size_t n = name.len < 8 ? name.len : 8;
    memcpy(&first, name.at, n);
    memcpy(&last, name.at + name.len - n, n);
    return ((first ^ (last << 7) ^ name.len) * 0x9E3779B97F4A7C15u) >> 56;
}

static bool is_secret_name(struct decision_mask *mask, struct str name)
{
    if (!name.len || name.len > NAME_REMEMBERED_MAX)
        return name.len && compare_name(mask, name);
    struct remembered_name *known = &mask->names[slot_of(name)];
    if (known->len != name.len || !str_bytes_eq(known->bytes, name.at, name.len)) {
        known->len = (uint8_t)name.len;
        known->is_secret = compare_name(mask, name);
        memcpy(known->bytes, name.at, name.len);
    }
    return known->is_secret;
}

/* ---- does it hold a secret? ---- */

static bool is_nested_json(struct str text)
{
    struct str trimmed = str_trim(text);
    return trimmed.len > 2 && (trimmed.at[0] == '{' || trimmed.at[0] == '[' || trimmed.at[0] == '"');
}

/* A flag or nothing is no secret, whatever its name. */
static bool can_be_secret(const struct json *value)
{
    return value->type != JSON_BOOL && value->type != JSON_NULL && value->len > 0;
}

static bool has_secret(struct decision_mask *mask, const struct json *value)
{
    if (value->type == JSON_STRING)
        return is_nested_json(json_str(value));
    if (value->type == JSON_ARRAY)
        for (uint32_t i = 0; i < value->len; i++)
            if (has_secret(mask, &value->items[i]))
                return true;
    if (value->type == JSON_OBJECT)
        for (uint32_t i = 0; i < value->len; i++) {
            const struct json_member *member = &value->members[i];
            if ((is_secret_name(mask, member->key) && can_be_secret(&member->value)) ||
                has_secret(mask, &member->value))
                return true;
        }
    return false;
}

/* ---- masking ---- */

struct decision_masking *decision_masking_new(struct decision_mask *mask, struct arena *arena,
                                              const struct tool *tool)
{
    struct decision_masking *m = ARENA_NEW(arena, struct decision_masking);
    m->mask = mask;
    m->arena = arena;
    m->tool = tool;
    m->copies.arena = arena;
    m->path = buf_in(arena);
    return m;
}

static void list_path(struct decision_masking *m)
{
    if (!m->keeps || m->nested)
        return;
    if (m->path_count == m->path_capacity) {
        m->path_capacity = m->path_capacity ? 2 * m->path_capacity : 4;
        struct str *bigger = ARENA_ARRAY(m->arena, struct str, m->path_capacity);
        if (m->path_count)
            memcpy(bigger, m->paths, m->path_count * sizeof(*bigger));
        m->paths = bigger;
    }
    ((struct str *)m->paths)[m->path_count++] = arena_dup(m->arena, buf_view(&m->path));
}

static const struct json *hide(struct decision_masking *m, const struct json *value)
{
    redact_copies_add(&m->copies, value);
    list_path(m);
    return json_keep(m->arena, json_string(STR_LIT(REDACTED)));
}

static const struct json *mask(struct decision_masking *m, const struct json *value);

static const struct json *mask_string(struct decision_masking *m, const struct json *value)
{
    struct json inner;
    struct json_error fault;
    struct str text = json_str(value);
    if (!is_nested_json(text) || m->nested == MASK_NESTED_MAX)
        return value;
    if (json_parse(m->arena, str_trim(text), NULL, &inner, &fault) != OK && !fault.soft)
        return value;
    m->nested++;
    const struct json *now = mask(m, &inner);
    m->nested--;
    if (now == &inner)
        return value;
    list_path(m);
    return json_keep(m->arena, json_string(json_to_str(m->arena, now)));
}

/* RFC 6901. */
static void put_step(struct buf *path, struct str key)
{
    buf_byte(path, '/');
    for (size_t i = 0; i < key.len; i++) {
        if (key.at[i] == '~' || key.at[i] == '/')
            buf_text(path, key.at[i] == '~' ? "~0" : "~1");
        else
            buf_byte(path, key.at[i]);
    }
}

static const struct json *mask_object(struct decision_masking *m, const struct json *object)
{
    struct json_member *members = NULL;
    size_t length = m->path.len;
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        put_step(&m->path, member->key);
        bool secret = is_secret_name(m->mask, member->key) && can_be_secret(&member->value);
        const struct json *now = secret ? hide(m, &member->value) : mask(m, &member->value);
        m->path.len = length;
        if (now == &member->value)
            continue;
        if (!members) {
            members = ARENA_ARRAY(m->arena, struct json_member, object->len);
            memcpy(members, object->members, object->len * sizeof(*members));
        }
        members[i].value = *now;
    }
    return members ? json_keep(m->arena, json_object(m->arena, members, object->len)) : object;
}

static const struct json *mask_list(struct decision_masking *m, const struct json *list)
{
    struct json *items = NULL;
    size_t length = m->path.len;
    for (uint32_t i = 0; i < list->len; i++) {
        buf_byte(&m->path, '/');
        buf_int(&m->path, i);
        const struct json *now = mask(m, &list->items[i]);
        m->path.len = length;
        if (now == &list->items[i])
            continue;
        if (!items) {
            items = ARENA_ARRAY(m->arena, struct json, list->len);
            memcpy(items, list->items, list->len * sizeof(*items));
        }
        items[i] = *now;
    }
    return items ? json_keep(m->arena, json_array(items, list->len)) : list;
}

/* Returns the value itself if nothing in it is secret. */
static const struct json *mask(struct decision_masking *m, const struct json *value)
{
    switch (value->type) {
    case JSON_OBJECT:
        return mask_object(m, value);
    case JSON_ARRAY:
        return mask_list(m, value);
    case JSON_STRING:
        return mask_string(m, value);
    default:
        return value;
    }
}

const struct json *decision_masking_value(struct decision_masking *m, const struct json *value, bool keeps)
{
    if (!has_secret(m->mask, value))
        return value;
    m->keeps = keeps;
    m->path.len = 0;
    return mask(m, value);
}

struct str decision_masking_text(struct decision_masking *m, struct str text)
{
    return m->copies.count ? redact_copies_mask(&m->copies, text) : text;
}

const struct json *decision_masking_patch(struct decision_masking *m, const struct json *patch)
{
    (void)m;
    return patch;
}

bool decision_masking_hides(const struct decision_masking *m, struct str path)
{
    (void)m, (void)path;
    return false;
}

size_t decision_masking_paths(const struct decision_masking *m, const struct str **paths)
{
    *paths = m->paths;
    return m->path_count;
}

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
#include "schema/sample.h"

/* ---- masks that the output schema accepts ---- */

#define REFS_MAX 16u /* of a chain of $ref; a longer one is followed no further */

/* The schema is walked beside the value. */
struct redact_fit {
    struct arena *arena;
    const struct json *root;
};

/* "#/$defs/Card" in the root: names without escapes, as generators write them. */
static const struct json *resolve(const struct redact_fit *fit, const struct json *schema)
{
    for (unsigned i = 0; i < REFS_MAX; i++) {
        struct str ref = json_str(json_get_text(schema, "$ref"));
        if (!str_starts(ref, "#"))
            break;
        const struct json *at = fit->root;
        for (size_t from = 2; at && from < ref.len;) {
            size_t to = from;
            while (to < ref.len && ref.at[to] != '/')
                to++;
            at = json_get(at, (struct str){ref.at + from, to - from});
            from = to + 1;
        }
        if (!at)
            break;
        schema = at;
    }
    return schema;
}

/* The schema of an item or of a member, through $ref and the branches of allOf, anyOf and oneOf; NULL: none.
 */
static const struct json *fit_child(const struct redact_fit *fit, const struct json *schema, bool is_item,
                                    struct str key, uint32_t index, unsigned depth)
{
    static const char *const branches[] = {"allOf", "anyOf", "oneOf"};
    const struct json *found = NULL;
    schema = resolve(fit, schema);
    if (is_item) {
        const struct json *items = json_get_text(schema, "items"),
                          *first = json_get_text(schema, "prefixItems");
        first = json_is(items, JSON_ARRAY) ? items : first;
        if (json_is(first, JSON_ARRAY) && index < first->len)
            found = &first->items[index];
        else if (json_is(items, JSON_OBJECT))
            found = items;
    } else {
        const struct json *others = json_get_text(schema, "additionalProperties");
        found = json_get(json_get_text(schema, "properties"), key);
        if (!found && json_is(others, JSON_OBJECT))
            found = others;
    }
    for (size_t b = 0; !found && depth && b < sizeof(branches) / sizeof(*branches); b++) {
        const struct json *list = json_get_text(schema, branches[b]);
        for (uint32_t i = 0; !found && json_is(list, JSON_ARRAY) && i < list->len; i++)
            found = fit_child(fit, &list->items[i], is_item, key, index, depth - 1);
    }
    return found;
}

/* `mask` if the schema accepts it, else a sample of the schema (minItems, enum, format, const); NULL:
 * neither, and the field is optional. If it is required, `mask`, and the result does not fit. A field's
 * schema is compiled by itself, beside the definitions of the whole, so that its $refs resolve. */
static const struct json *fit_mask(const struct redact_fit *fit, const struct json *schema,
                                   const struct json *mask, bool is_required)
{
    static const char *const definitions[] = {"$defs", "definitions"};
    struct json alone = *resolve(fit, schema), sample;
    struct schema *compiled;
    struct why why;
    for (size_t i = 0; alone.type == JSON_OBJECT && i < sizeof(definitions) / sizeof(*definitions); i++) {
        const struct json *defs = json_get_text(fit->root, definitions[i]);
        if (defs)
            alone = json_with(fit->arena, &alone, str_of(definitions[i]), *defs);
    }
    const struct json *source = json_keep(fit->arena, alone);
    if (schema_compile(fit->arena, source, NULL, &compiled, NULL, &why) == OK) {
        if (schema_validate(compiled, mask) == SCHEMA_VALID)
            return mask;
        if (schema_sample(fit->arena, compiled, SAMPLE_REQUIRED, &sample))
            return json_keep(fit->arena, sample);
    }
    return is_required ? mask : NULL;
}

/* ---- the walks ---- */

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
    const struct json *schema;    /* of the object or list whose children are walked; NULL: none */
    unsigned masked_keys;         /* of that object */
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

/* By the type of what they stand for. */
static const struct json masks[] = {
    [JSON_NULL] = {.type = JSON_NULL},
    [JSON_BOOL] = {.type = JSON_BOOL},
    [JSON_NUMBER] = {.type = JSON_NUMBER, .integral = true, .len = 1, .text = "0"},
    [JSON_STRING] = {.type = JSON_STRING, .len = sizeof(REDACTED) - 1, .text = REDACTED},
    [JSON_ARRAY] = {.type = JSON_ARRAY},
    [JSON_OBJECT] = {.type = JSON_OBJECT},
};

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
    if (w->found && value->type != JSON_STRING && value->type != JSON_NULL)
        w->found->blank = true;
    const struct json *mask = &masks[value->type];
    return schema ? fit_mask(w->fit, schema, mask, is_required) : mask;
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

/* A key may be a copy: {"ana@example.com": {…}}. Two masked keys stay two. */
static struct str walk_key(struct walk *w, struct str key)
{
    if (w->removes || w->collects || is_lower_word(key))
        return key;
    struct str now = redact_copies_mask(w->copies, key);
    if (now.at != key.at && ++w->masked_keys > 1)
        now = arena_printf(w->arena, STR_FMT " %u", STR_ARG(now), w->masked_keys);
    return now;
}

static const struct json *walk_child(void *walking, const struct json *parent, uint32_t i, struct str *key)
{
    static const struct json null = {.type = JSON_NULL};
    struct walk *w = walking;
    const struct json *child = json_child(parent, i), *schema = w->schema, *inner = NULL;
    struct str name = *key;
    size_t length = w->path.len;
    bool is_item = parent->type == JSON_ARRAY, is_required = is_item;
    if (is_item) {
        buf_text(&w->path, "[]");
    } else {
        *key = walk_key(w, name);
        buf_text(&w->path, length ? "." : "");
        buf_str(&w->path, name);
    }
    if (schema) {
        inner = fit_child(w->fit, schema, is_item, name, i, REFS_MAX);
        is_required |= json_array_has(json_get_text(resolve(w->fit, schema), "required"), name);
    }
    const struct json *now = is_hidden(w, name) ? hide(w, child, inner, is_required) : walk(w, child, inner);
    w->path.len = length;
    return now || !is_item ? now : &null;
}

/* Returns the value itself if nothing in it changes, or if the result will be withheld. */
static const struct json *walk(struct walk *w, const struct json *value, const struct json *schema)
{
    if (w->copies && w->copies->overflow)
        return value;
    if (value->type == JSON_STRING)
        return walk_string(w, value);
    if (value->type == JSON_NUMBER) { /* a long one may be a copy, too */
        struct str text = {value->text, value->len};
        bool is_copy = !w->removes && !w->collects && text.len >= REDACT_NUMBER_MIN_BYTES &&
                       redact_copies_mask(w->copies, text).at != text.at;
        return is_copy ? &masks[JSON_NUMBER] : value;
    }
    const struct json *outer = w->schema;
    unsigned masked_keys = w->masked_keys;
    w->schema = schema;
    w->masked_keys = 0;
    value = json_map(w->arena, value, walk_child, w);
    w->schema = outer;
    w->masked_keys = masked_keys;
    return value;
}

/* Of the content: all strings of a block that a reader sees; not its type, nor base64. */
static const struct json *walk_block(void *walking, const struct json *parent, uint32_t i, struct str *key)
{
    static const char *const shown[] = {"text", "uri", "name", "title", "description"};
    struct walk *w = walking;
    const struct json *child = json_child(parent, i);
    if (child->type == JSON_STRING && STR_IS_ONE_OF(*key, shown))
        return walk_string(w, child);
    bool holds_strings = parent->type == JSON_ARRAY || str_is(*key, "resource");
    return child->type == JSON_OBJECT && holds_strings ? json_map(w->arena, child, walk_block, w) : child;
}

/* True: it changed. */
static bool walk_result(struct walk *w, const struct result *given, struct result *now)
{
    const struct json *schema = w->fit ? w->fit->root : NULL;
    *now = *given;
    now->structured = given->structured ? walk(w, given->structured, schema) : NULL;
    now->value = given->value == given->structured ? now->structured
                 : given->value                    ? walk(w, given->value, schema)
                                                   : NULL;
    now->content = json_is(given->content, JSON_ARRAY) ? json_map(w->arena, given->content, walk_block, w)
                                                       : given->content;
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
    const struct redact_fit fit = {w->arena, schema_source(output)};
    for (int effort = 0; effort < 3; effort++) {
        if (effort == 1)
            w->fit = &fit;
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

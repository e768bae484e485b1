/*
 * A schema as params{…}, where that says all of it. Whether it does is not
 * argued but tried: the text is loaded as a policy, and what comes out must
 * equal what went in, but for what only decorates.
 */
#include "cli/cmd_new.h"

#include "base/arena.h"
#include "json/build.h"
#include "policy/policy.h"

#include <ctype.h>
#include <stdlib.h>

#define WIDEST_NAME 24 /* up to here the equals signs stand in a column */

struct writing {
    struct buf *out;
    bool lost; /* something that params has no word for */
};

/* ---- options: what stands in { … } behind a type ---- */

static const struct option {
    const char *keyword, *name;
} options[] = {
    {"title", "title"},        {"examples", "examples"},     {"minLength", "min"},
    {"maxLength", "max"},      {"pattern", "pattern"},       {"minimum", "min"},
    {"maximum", "max"},        {"exclusiveMinimum", "over"}, {"exclusiveMaximum", "under"},
    {"multipleOf", "step"},    {"minItems", "min"},          {"maxItems", "max"},
    {"uniqueItems", "unique"},
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static char folded(char c)
{
    return (char)tolower((unsigned char)c);
}

/* A title that says the name once more, as generators make them: "User Id" of user_id. */
static bool is_the_name_again(struct str title, struct str name)
{
    size_t i = 0, k = 0;
    while (i < title.len || k < name.len) {
        if (i < title.len && (title.at[i] == ' ' || title.at[i] == '_' || title.at[i] == '-'))
            i++;
        else if (k < name.len && (name.at[k] == '_' || name.at[k] == '-'))
            k++;
        else if (i < title.len && k < name.len && folded(title.at[i]) == folded(name.at[k]))
            i++, k++;
        else
            return false;
    }
    return true;
}

static void write_options(struct writing *w, const struct json *schema, struct str name, bool with_default)
{
    bool first = true;
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct json *value = json_get_text(schema, options[i].keyword);
        if (!value || (i == 0 && is_the_name_again(json_str(value), name)))
            continue;
        buf_printf(w->out, first ? "%s = " : ", %s = ", options[i].name);
        lua_write_value(w->out, value);
        first = false;
    }
    const struct json *given = with_default ? json_get_text(schema, "default") : NULL;
    if (given) {
        buf_text(w->out, first ? "default = " : ", default = ");
        lua_write_value(w->out, given);
    }
}

static bool has_options(const struct json *schema, struct str name, bool with_default)
{
    struct buf text = {0};
    struct writing w = {.out = &text};
    write_options(&w, schema, name, with_default);
    bool any = text.len > 0;
    buf_clear(&text);
    return any;
}

/* { options, "description" } or "description"; nothing where there is neither. `call`: a comma stands before.
 */
static void write_spec(struct writing *w, const struct json *schema, struct str name, bool with_default,
                       bool call)
{
    const struct json *description = json_get_text(schema, "description");
    bool some = has_options(schema, name, with_default);
    if (!some && !description)
        return;
    buf_text(w->out, call ? ", " : " ");
    if (some) {
        buf_text(w->out, "{ ");
        write_options(w, schema, name, with_default);
        buf_text(w->out, description ? ", " : " }");
    }
    if (description)
        lua_write_value(w->out, description);
    if (some && description)
        buf_text(w->out, " }");
}

/* ---- types ---- */

static void write_type(struct writing *w, const struct json *schema, struct str name, bool with_default,
                       int indent);

static const struct {
    const char *type, *format, *word;
} scalars[] = {
    {"string", "uuid", "uuid"}, {"string", "date-time", "datetime"},
    {"string", "date", "date"}, {"string", "email", "email"},
    {"string", "uri", "uri"},   {"string", "", "str"},
    {"integer", "", "int"},     {"number", "", "num"},
    {"boolean", "", "bool"},
};

static const char *scalar_word(const struct json *schema)
{
    struct str type = json_str(json_get_text(schema, "type"));
    struct str format = json_str(json_get_text(schema, "format"));
    for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++)
        if (str_is(type, scalars[i].type) && str_is(format, scalars[i].format))
            return scalars[i].word;
    return NULL;
}

static void write_enum(struct writing *w, const struct json *schema, struct str name, bool with_default)
{
    buf_text(w->out, "enum({ ");
    const struct json *values = json_get_text(schema, "enum");
    for (uint32_t i = 0; values->type == JSON_ARRAY && i < values->len; i++) {
        buf_text(w->out, i ? ", " : "");
        lua_write_value(w->out, &values->items[i]);
    }
    buf_text(w->out, " }");
    write_spec(w, schema, name, with_default, true);
    buf_byte(w->out, ')');
}

static void write_list(struct writing *w, const struct json *schema, struct str name, bool with_default,
                       int indent)
{
    const struct json *items = json_get_text(schema, "items");
    const struct json *description = json_get_text(schema, "description");
    if (!items) {
        buf_text(w->out, "list");
        w->lost |= description || has_options(schema, name, with_default);
        return;
    }
    bool some = has_options(schema, name, with_default);
    buf_text(w->out, some ? "list { " : "list(");
    write_type(w, items, STR_NONE, true, indent);
    if (description) {
        buf_text(w->out, ", ");
        lua_write_value(w->out, description);
    }
    if (some) {
        buf_text(w->out, ", ");
        write_options(w, schema, name, with_default);
    }
    buf_text(w->out, some ? " }" : ")");
}

static void write_property(struct writing *w, const struct json *schema, const struct json_member *property,
                           int indent)
{
    bool required = json_array_has(json_get_text(schema, "required"), property->key);
    const struct json *given = json_get_text(&property->value, "default");
    if (!required)
        buf_text(w->out, "optional(");
    write_type(w, &property->value, property->key, required, indent);
    if (!required && given) {
        buf_text(w->out, ", ");
        lua_write_value(w->out, given);
    }
    if (!required)
        buf_byte(w->out, ')');
}

static int widest_key(const struct json *properties)
{
    size_t widest = 0;
    for (uint32_t i = 0; i < properties->len; i++) {
        struct buf key = {0};
        lua_write_key(&key, properties->members[i].key);
        if (key.len > widest && key.len <= WIDEST_NAME)
            widest = key.len;
        buf_clear(&key);
    }
    return (int)widest;
}

static void write_fields(struct writing *w, const struct json *schema, int indent)
{
    const struct json *properties = json_get_text(schema, "properties");
    if (!json_is(properties, JSON_OBJECT) || !properties->len) {
        buf_text(w->out, "{}");
        return;
    }
    int widest = widest_key(properties);
    buf_text(w->out, "{\n");
    for (uint32_t i = 0; i < properties->len; i++) {
        struct buf key = {0};
        lua_write_key(&key, properties->members[i].key);
        buf_printf(w->out, "%*s%-*.*s = ", indent + 2, "", widest, (int)key.len, key.at);
        buf_clear(&key);
        write_property(w, schema, &properties->members[i], indent + 2);
        buf_text(w->out, ",\n");
    }
    buf_printf(w->out, "%*s}", indent, "");
}

static void write_type(struct writing *w, const struct json *schema, struct str name, bool with_default,
                       int indent)
{
    struct str type = json_str(json_get_text(schema, "type"));
    if (json_get_text(schema, "enum")) {
        write_enum(w, schema, name, with_default);
    } else if (str_is(type, "array")) {
        write_list(w, schema, name, with_default, indent);
    } else if (str_is(type, "object")) {
        buf_text(w->out, "object(");
        write_fields(w, schema, indent);
        write_spec(w, schema, name, with_default, true);
        buf_byte(w->out, ')');
    } else if (scalar_word(schema)) {
        buf_text(w->out, scalar_word(schema));
        write_spec(w, schema, name, with_default, false);
    } else {
        w->lost = true;
    }
}

/* ---- is it the same ---- */

static int by_text(const void *a, const void *b)
{
    return str_cmp(json_str(a), json_str(b));
}

static struct json sorted(struct arena *arena, const struct json *list)
{
    struct json *items = ARENA_ARRAY(arena, struct json, list->len + 1);
    if (list->len)
        memcpy(items, list->items, list->len * sizeof(*items));
    qsort(items, list->len, sizeof(*items), by_text);
    return json_array(items, list->len);
}

static bool decorates(const struct json_member *member, bool root, struct str name)
{
    struct str key = member->key;
    if (root && (str_is(key, "$schema") || str_is(key, "title") || str_is(key, "description")))
        return true;
    if (str_is(key, "additionalProperties"))
        return json_is_true(&member->value);
    if (str_is(key, "required"))
        return member->value.type == JSON_ARRAY && !member->value.len;
    return str_is(key, "title") && is_the_name_again(json_str(&member->value), name);
}

static struct json plain(struct arena *arena, const struct json *schema, bool root, struct str name);

static struct json plain_properties(struct arena *arena, const struct json *properties)
{
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, properties->len + 1);
    for (uint32_t i = 0; i < properties->len; i++) {
        struct str key = properties->members[i].key;
        members[i] = json_member(key, plain(arena, &properties->members[i].value, false, key));
    }
    return json_object(arena, members, properties->len);
}

/* The schema without what only decorates it, its lists of names sorted. */
static struct json plain(struct arena *arena, const struct json *schema, bool root, struct str name)
{
    if (schema->type != JSON_OBJECT)
        return *schema;
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, schema->len + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < schema->len; i++) {
        const struct json_member *member = &schema->members[i];
        struct json value = member->value;
        if (decorates(member, root, name))
            continue;
        if (str_is(member->key, "required") && value.type == JSON_ARRAY)
            value = sorted(arena, &value);
        else if (str_is(member->key, "properties") && value.type == JSON_OBJECT)
            value = plain_properties(arena, &value);
        else if (str_is(member->key, "items"))
            value = plain(arena, &value, false, STR_NONE);
        members[count++] = json_member(member->key, value);
    }
    return json_object(arena, members, count);
}

static bool says_the_same(struct arena *arena, const struct json *schema, struct str params)
{
    struct policy_load_errors faults = {.arena = arena};
    struct policy_set *policies;
    struct str source = arena_printf(arena, "return tool \"t\" { schema = " STR_FMT " }", STR_ARG(params));
    if (policy_set_load_string(STR_LIT("params"), source, NULL, &policies, &faults) != OK)
        return false;
    struct json a = plain(arena, schema, true, STR_NONE);
    struct json b = plain(arena, policy_set_at(policies, 0)->schema, true, STR_NONE);
    bool same = json_equal(&a, &b);
    policy_set_free(policies);
    return same;
}

bool new_params_write(struct buf *out, struct arena *arena, const struct json *schema, int indent)
{
    struct buf text = buf_in(arena);
    struct writing w = {.out = &text};
    const struct json *more = json_get_text(schema, "additionalProperties");
    bool open = !more || json_is_true(more);
    buf_text(&text, open ? "params(" : "params ");
    write_fields(&w, schema, indent);
    buf_text(&text, open ? ", { open = true })" : "");
    if (w.lost || !says_the_same(arena, schema, buf_view(&text)))
        return false;
    buf_str(out, buf_view(&text));
    return true;
}

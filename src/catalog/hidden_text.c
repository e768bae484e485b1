/* One walk over the definition; what a string is follows from the member that it is in. */
#include "catalog/hidden_text.h"

#include "base/arena.h"
#include "base/printable.h"
#include "json/build.h"

struct walk {
    struct arena *arena;
    struct hidden_text *found;
};

enum member_kind {
    MEMBER_SCHEMA, /* or anything else that has members of these kinds */
    MEMBER_NAMES,  /* an object whose keys are names, and whose values are schemas */
    MEMBER_VALUES, /* that arguments are compared with */
    MEMBER_OPAQUE, /* no model reads it, or as in a pattern the character is meant */
};

static enum member_kind kind_of(struct str key)
{
    static const struct {
        const char *key;
        enum member_kind kind;
    } members[] = {{"properties", MEMBER_NAMES},
                   {"$defs", MEMBER_NAMES},
                   {"definitions", MEMBER_NAMES},
                   {"dependentSchemas", MEMBER_NAMES},
                   {"enum", MEMBER_VALUES},
                   {"const", MEMBER_VALUES},
                   {"required", MEMBER_VALUES},
                   {"name", MEMBER_VALUES},
                   {"dependentRequired", MEMBER_VALUES},
                   {"pattern", MEMBER_OPAQUE},
                   {"patternProperties", MEMBER_OPAQUE},
                   {"_meta", MEMBER_OPAQUE},
                   {"icons", MEMBER_OPAQUE}};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (str_is(key, members[i].key))
            return members[i].kind;
    return MEMBER_SCHEMA;
}

static bool has_hidden(const struct json *value)
{
    bool hides = value->type == JSON_STRING && printable_count_hidden(json_str(value));
    for (uint32_t i = 0; i < value->len && !hides && value->type == JSON_ARRAY; i++)
        hides = has_hidden(&value->items[i]);
    for (uint32_t i = 0; i < value->len && !hides && value->type == JSON_OBJECT; i++)
        hides = printable_count_hidden(value->members[i].key) || has_hidden(&value->members[i].value);
    return hides;
}

static bool strip_value(struct walk *w, const struct json *value, enum member_kind kind, struct json *out);

static bool strip_object(struct walk *w, const struct json *object, bool has_names, struct json *out)
{
    bool changed = false;
    for (uint32_t i = 0; i < object->len; i++) {
        struct str key = object->members[i].key;
        enum member_kind kind = has_names ? MEMBER_SCHEMA : kind_of(key);
        struct json value;
        if (printable_count_hidden(key))
            w->found->refused = "a parameter's name";
        if (strip_value(w, &object->members[i].value, kind, &value)) {
            *out = json_with(w->arena, changed ? out : object, key, value);
            changed = true;
        }
    }
    return changed;
}

/* True: `out` differs. As deep as the parser allows. */
static bool strip_value(struct walk *w, const struct json *value, enum member_kind kind, struct json *out)
{
    if (kind == MEMBER_OPAQUE)
        return false;
    if (kind == MEMBER_VALUES && value->type != JSON_OBJECT) {
        if (has_hidden(value))
            w->found->refused = "a name or an allowed value";
        return false;
    }
    bool changed = false;
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->len; i++) {
        struct json item;
        if (strip_value(w, &value->items[i], MEMBER_SCHEMA, &item)) {
            *out = json_with_item(w->arena, changed ? out : value, i, item);
            changed = true;
        }
    }
    if (value->type == JSON_OBJECT)
        return strip_object(w, value, kind == MEMBER_NAMES, out);
    size_t count = value->type == JSON_STRING ? printable_count_hidden(json_str(value)) : 0;
    if (!count)
        return changed;
    struct buf stripped = buf_in(w->arena);
    w->found->removed += count;
    printable_strip(&stripped, json_str(value));
    *out = json_string(buf_view(&stripped));
    return true;
}

const struct json *hidden_text_strip(struct arena *arena, const struct json *definition,
                                     struct hidden_text *found)
{
    struct walk walk = {arena, found};
    struct json out;
    *found = (struct hidden_text){0};
    return strip_value(&walk, definition, MEMBER_SCHEMA, &out) ? json_keep(arena, out) : definition;
}

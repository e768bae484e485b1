/* One walk over the definition; what a string is follows from the member that it is in. */
#include "catalog/hidden_text.h"

#include "base/arena.h"
#include "base/printable.h"
#include "json/build.h"
#include "json/each.h"

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
    bool hides = printable_count_hidden(json_str(value)) > 0;
    for (uint32_t i = 0; i < json_child_count(value) && !hides; i++)
        hides = has_hidden(json_child(value, i)) ||
                (value->type == JSON_OBJECT && printable_count_hidden(value->members[i].key));
    return hides;
}

struct walk {
    struct arena *arena;
    struct hidden_text *found;
    enum member_kind kind; /* of the container */
};

static const struct json *strip_child(void *owner, const struct json *parent, uint32_t i, struct str *key);

/* As deep as the parser allows. */
static const struct json *strip(struct arena *arena, struct hidden_text *found, const struct json *value,
                                enum member_kind kind)
{
    struct walk walk = {arena, found, kind};
    size_t count = printable_count_hidden(json_str(value));
    if (kind == MEMBER_OPAQUE)
        return value;
    if (kind == MEMBER_VALUES && value->type != JSON_OBJECT) {
        if (has_hidden(value))
            found->refused = "a name or an allowed value";
        return value;
    }
    if (!count)
        return json_map(arena, value, strip_child, &walk);
    struct buf stripped = buf_in(arena);
    found->removed += count;
    printable_strip(&stripped, json_str(value));
    return json_keep(arena, json_string(buf_view(&stripped)));
}

static const struct json *strip_child(void *owner, const struct json *parent, uint32_t i, struct str *key)
{
    struct walk *walk = owner;
    bool is_named = parent->type == JSON_OBJECT && walk->kind != MEMBER_NAMES;
    if (printable_count_hidden(*key))
        walk->found->refused = "a parameter's name";
    return strip(walk->arena, walk->found, json_child(parent, i), is_named ? kind_of(*key) : MEMBER_SCHEMA);
}

const struct json *hidden_text_strip(struct arena *arena, const struct json *definition,
                                     struct hidden_text *found)
{
    *found = (struct hidden_text){0};
    return strip(arena, found, definition, MEMBER_SCHEMA);
}

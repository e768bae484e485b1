/* Arguments that exec and http take by name: what the schema calls them, and the error where it does not. */
#include "policy/declare/declare_internal.h"
#include "base/suggest.h"

#define NAMES_MAX 256u /* looked through for a close one */

const struct json *declare_properties(const struct json *schema)
{
    static const char *const others[] = {
        "$ref", "allOf", "anyOf", "oneOf", "$dynamicRef", "if", "patternProperties"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (json_get_text(schema, others[i]))
            return NULL;
    const struct json *properties = json_get_text(schema, "properties");
    return json_is(properties, JSON_OBJECT) ? properties : NULL;
}

void declare_complain_stranger(struct declaration *d, const char *field, const struct json *properties,
                               struct str name, const char *otherwise)
{
    struct str names[NAMES_MAX];
    size_t count = 0;
    for (; count < properties->len && count < NAMES_MAX; count++)
        names[count] = properties->members[count].key;
    struct str meant = suggest_closest(name, names, count);
    fields_complain(d, NULL, field,
                    "'%s' takes the argument '" STR_FMT "', which the schema doesn't have%s" STR_FMT "%s",
                    field, STR_ARG(name), meant.len ? " (did you mean '" : "", STR_ARG(meant),
                    meant.len ? "'?)" : otherwise);
}

/*
 * Paths that a policy names and that its schema has not got. Where the
 * schema is not plain (a reference, a choice of several), nothing is said.
 */
#include "lint/lint_internal.h"

#include "base/suggest.h"

#define PATH_NAMES_MAX 256u

enum naming { KNOWN, UNTOLD, LACKING };

static bool is_plain(const struct json *schema)
{
    static const char *const branching[] = {"$ref", "$dynamicRef",       "anyOf",           "oneOf", "allOf",
                                            "if",   "patternProperties", "dependentSchemas"};
    for (size_t i = 0; i < sizeof(branching) / sizeof(branching[0]); i++)
        if (json_get_text(schema, branching[i]))
            return false;
    return json_is(schema, JSON_OBJECT);
}

static struct str closest_property(const struct json *properties, struct str name)
{
    struct str names[PATH_NAMES_MAX];
    size_t count = 0;
    for (; count < properties->len && count < PATH_NAMES_MAX; count++)
        names[count] = properties->members[count].key;
    return suggest_closest(name, names, count);
}

/* Moves `*schema` to the property. */
static enum naming enter_property(const struct json **schema, struct str name, struct str *closest)
{
    const struct json *properties = json_get_text(*schema, "properties");
    const struct json *others = json_get_text(*schema, "additionalProperties"), *found;
    if (!is_plain(*schema) || !json_is(properties, JSON_OBJECT) || !properties->len)
        return UNTOLD;
    found = json_get(properties, name);
    if (!found && json_is(others, JSON_OBJECT))
        found = others;
    if (!found) {
        *closest = closest_property(properties, name);
        return LACKING;
    }
    *schema = found;
    return KNOWN;
}

static enum naming enter_items(const struct json **schema)
{
    const struct json *items = json_get_text(*schema, "items");
    if (!is_plain(*schema) || !json_is(items, JSON_OBJECT))
        return UNTOLD;
    *schema = items;
    return KNOWN;
}

/* "events[].id" */
static enum naming find_path(const struct json *schema, struct str path, struct str *closest)
{
    enum naming naming = KNOWN;
    *closest = STR_NONE;
    while (path.len && naming == KNOWN) {
        size_t n = 0;
        while (n < path.len && path.at[n] != '.' && path.at[n] != '[')
            n++;
        if (n)
            naming = enter_property(&schema, (struct str){path.at, n}, closest);
        path = str_from(path, n);
        while (naming == KNOWN && str_starts(path, "[]")) {
            naming = enter_items(&schema);
            path = str_from(path, 2);
        }
        if (path.len && path.at[0] != '.' && naming == KNOWN)
            return UNTOLD;
        path = str_from(path, path.len ? 1 : 0);
    }
    return naming;
}

static void look_for(struct looking *look, const struct json *schema, const char *parent, const char *field,
                     struct str path, const char *which)
{
    struct str closest;
    if (!schema || find_path(schema, path, &closest) != LACKING)
        return;
    int line = introspection_line(&look->survey, parent, str_of(field));
    const char *dot = parent ? "." : "";
    if (closest.len)
        lint_report(look, line,
                    "'%s%s%s' names '" STR_FMT "', which the %s has not got (did you mean '" STR_FMT "'?)",
                    parent ? parent : "", dot, field, STR_ARG(path), which, STR_ARG(closest));
    else
        lint_report(look, line,
                    "'%s%s%s' names '" STR_FMT "', which the %s has not got: add it there, or remove it here",
                    parent ? parent : "", dot, field, STR_ARG(path), which);
}

void lint_argument_paths(struct looking *look)
{
    const struct policy *p = look->policy;
    for (size_t i = 0; p && i < p->id_count; i++)
        look_for(look, look->tool->input, NULL, "ids", p->ids[i].path, "schema");
    for (size_t i = 0; p && i < p->volatile_count; i++)
        look_for(look, look->tool->input, "loop", "volatile", p->volatiles[i], "schema");
}

/* A bare name in redact, keep and drop is a field anywhere. */
static bool is_path(struct str name)
{
    return memchr(name.at, '.', name.len) || memchr(name.at, '[', name.len);
}

static void look_for_paths(struct looking *look, const char *parent, const char *field,
                           const struct str *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_path(list[i]))
            look_for(look, look->tool->output, parent, field, list[i], "output schema");
}

void lint_result_paths(struct looking *look)
{
    const struct policy *p = look->policy;
    for (size_t i = 0; p && i < p->gives_id_count; i++)
        look_for(look, look->tool->output, NULL, "gives_ids", p->gives_ids[i], "output schema");
    if (!p)
        return;
    look_for_paths(look, NULL, "redact", p->redact, p->redact_count);
    look_for_paths(look, "compact", "keep", p->compact.keep, p->compact.keep_count);
    look_for_paths(look, "compact", "drop", p->compact.drop, p->compact.drop_count);
}

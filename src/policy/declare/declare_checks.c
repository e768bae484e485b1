/* Checks across fields: what runs the tool, and arguments that exec and http take by name. */
#include "policy/declare/declare_internal.h"
#include "base/suggest.h"

#define NAMES_MAX 256u /* candidates for "did you mean" */

static void check_upstream_name(struct declaration *d, struct str name)
{
    const char *slash = memchr(name.at, '/', name.len);
    if (slash && (slash == name.at || slash + 1 == name.at + name.len))
        field_error(d, "upstream",
                    "'upstream': expected a server's name, or \"server/tool\" for another name there, got "
                    "\"" STR_FMT "\"",
                    STR_ARG(name));
    if (slash && d->policy->http)
        field_error(d, "upstream",
                    "'upstream': with http, expected only the name of the upstream, got \"" STR_FMT
                    "\": the url of http names what is requested",
                    STR_ARG(name));
}

void declare_check_runner(struct declaration *d)
{
    const struct policy *p = d->policy;
    const char *runner = p->hooks[HOOK_RUN] ? "run" : p->exec ? "exec" : p->http ? "http" : NULL;
    if (p->hooks[HOOK_RUN] + (p->exec != NULL) + (p->http != NULL) > 1)
        field_error(d, runner, "'%s': expected one of run, exec and http: remove the others", runner);
    if (p->upstream.len && runner && !p->http)
        field_error(d, "upstream", "'upstream': expected one of upstream and %s: remove the other", runner);
    if (p->upstream.len)
        check_upstream_name(d, p->upstream);
}

void declare_check_formats(struct declaration *d)
{
    if (d->policy->timezone && d->policy->formats == FORMATS_STRICT)
        field_error(
            d, "formats",
            "'formats': \"strict\" refuses the date-times that 'timezone' adds a zone to: remove one of the "
            "two");
}

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

void declare_unknown_argument(struct declaration *d, const char *field, const struct json *properties,
                              struct str name, const char *otherwise)
{
    struct str names[NAMES_MAX];
    size_t count = 0;
    for (; count < properties->len && count < NAMES_MAX; count++)
        names[count] = properties->members[count].key;
    struct str meant = suggest_closest(name, names, count);
    field_error(d, field,
                "'%s' takes the argument '" STR_FMT "', which the schema does not have%s" STR_FMT "%s", field,
                STR_ARG(name), meant.len ? " (did you mean '" : "", STR_ARG(meant),
                meant.len ? "'?)" : otherwise);
}

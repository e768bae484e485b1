/* A field's schema is compiled by itself, beside the definitions of the whole, so that its $refs resolve. */
#include "result/redact_fit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "schema/sample.h"

#define REFS_MAX 16u /* of a chain of $ref; a longer one is followed no further */

struct redact_fit {
    struct arena *arena;
    const struct json *root;
};

struct redact_fit *redact_fit_new(struct arena *arena, const struct schema *output)
{
    struct redact_fit *fit = ARENA_NEW(arena, struct redact_fit);
    *fit = (struct redact_fit){arena, schema_source(output)};
    return fit;
}

const struct json *redact_fit_root(const struct redact_fit *fit)
{
    return fit->root;
}

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

typedef const struct json *find_child(const struct json *schema, struct str key, uint32_t index);

static const struct json *child(const struct redact_fit *fit, const struct json *schema, find_child *find,
                                struct str key, uint32_t index, unsigned depth)
{
    static const char *const branches[] = {"allOf", "anyOf", "oneOf"};
    schema = resolve(fit, schema);
    const struct json *found = find(schema, key, index);
    for (size_t b = 0; !found && depth && b < sizeof(branches) / sizeof(*branches); b++) {
        const struct json *list = json_get_text(schema, branches[b]);
        for (uint32_t i = 0; !found && json_is(list, JSON_ARRAY) && i < list->len; i++)
            found = child(fit, &list->items[i], find, key, index, depth - 1);
    }
    return found;
}

static const struct json *find_property(const struct json *schema, struct str key, uint32_t index)
{
    (void)index;
    const struct json *found = json_get(json_get_text(schema, "properties"), key);
    const struct json *others = json_get_text(schema, "additionalProperties");
    return found ? found : json_is(others, JSON_OBJECT) ? others : NULL;
}

static const struct json *find_item(const struct json *schema, struct str key, uint32_t index)
{
    (void)key;
    const struct json *items = json_get_text(schema, "items"), *first = json_get_text(schema, "prefixItems");
    first = json_is(items, JSON_ARRAY) ? items : first;
    if (json_is(first, JSON_ARRAY) && index < first->len)
        return &first->items[index];
    return json_is(items, JSON_OBJECT) ? items : NULL;
}

const struct json *redact_fit_property(const struct redact_fit *fit, const struct json *schema,
                                       struct str key)
{
    return child(fit, schema, find_property, key, 0, REFS_MAX);
}

const struct json *redact_fit_item(const struct redact_fit *fit, const struct json *schema, uint32_t index)
{
    return child(fit, schema, find_item, STR_NONE, index, REFS_MAX);
}

bool redact_fit_requires(const struct redact_fit *fit, const struct json *schema, struct str key)
{
    return json_array_has(json_get_text(resolve(fit, schema), "required"), key);
}

const struct json *redact_fit_mask(const struct redact_fit *fit, const struct json *schema,
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

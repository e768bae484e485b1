/*
 * The schema's own sample, brought nearer to what a person would write: a text
 * that a description gives as an example (e.g. 'Berlin, Germany') stands for
 * the plain one, where the schema takes it.
 */
#include "cli/cmd_new_sample.h"

#include "base/arena.h"
#include "json/build.h"
#include "schema/sample.h"

#define QUOTE_MAX_BYTES 60u

/* What stands in quotes behind "e.g."; STR_NONE where nothing does. */
static struct str quoted_example(const struct json *property)
{
    struct str text = json_str(json_get_text(property, "description"));
    const char *at = text.len ? memmem(text.at, text.len, "e.g.", 4) : NULL;
    const char *end = text.at + text.len;
    if (!at)
        return STR_NONE;
    for (at += 4; at < end && (*at == ' ' || *at == ',' || *at == ':'); at++)
        ;
    if (at == end || (*at != '\'' && *at != '"' && *at != '`'))
        return STR_NONE;
    const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
    if (!close || close == at + 1 || (size_t)(close - at) > QUOTE_MAX_BYTES)
        return STR_NONE;
    return (struct str){at + 1, (size_t)(close - at - 1)};
}

static void take_quoted(struct arena *arena, const struct schema *schema, struct json *sample)
{
    const struct json *properties = json_get_text(schema_source(schema), "properties");
    for (uint32_t i = 0; i < sample->len; i++) {
        const struct json_member *member = &sample->members[i];
        const struct json *property = json_get(properties, member->key);
        struct str quoted = quoted_example(property);
        if (!quoted.len || member->value.type != JSON_STRING || json_get_text(property, "enum"))
            continue;
        struct json changed = json_with(arena, sample, member->key, json_string(quoted));
        if (schema_validate(schema, &changed) == SCHEMA_VALID)
            *sample = changed;
    }
}

/* Where nothing is required, an example with one argument shows more than one with none. */
static void show_one(struct arena *arena, const struct schema *schema, struct json *sample)
{
    struct json all;
    if (sample->len || !schema_sample(arena, schema, SAMPLE_ALL, &all) || !all.len)
        return;
    struct json one = json_object(arena, all.members, 1);
    if (schema_validate(schema, &one) == SCHEMA_VALID)
        *sample = one;
}

const struct json *new_sample(struct arena *arena, const struct schema *schema)
{
    struct json *sample = arena_alloc(arena, sizeof(*sample));
    if (!schema_sample(arena, schema, SAMPLE_REQUIRED, sample) || sample->type != JSON_OBJECT)
        return NULL;
    show_one(arena, schema, sample);
    take_quoted(arena, schema, sample);
    return sample;
}

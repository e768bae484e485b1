/*
 * Any schema (the first line of the input) on any instance (the rest). A schema
 * compiles or is refused with a message; both passes agree; a valid instance is
 * never coerced, a second coercion changes nothing, and a name or a time zone
 * that completes a valid instance leaves it valid.
 */
#include "base/arena.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/coerce.h"
#include "schema/schema.h"
#include "require.h"

static struct str text_of(struct arena *arena, const struct json *v)
{
    struct buf out = buf_in(arena);
    json_write(&out, v);
    return buf_view(&out);
}

static void check_passes(struct arena *arena, const struct schema *schema, const struct json *instance)
{
    struct problems problems;
    struct buf lines = buf_in(arena);
    problems_init(&problems, arena);
    enum schema_validity answer = schema_validate(schema, instance);
    REQUIRE(schema_explain(schema, instance, &problems, NULL) == answer);
    REQUIRE((answer == SCHEMA_VALID) == (problems.errors == 0));
    problems_text(&lines, &problems);
    REQUIRE((answer == SCHEMA_VALID) == (lines.len == 0));
    schema_unknown_properties(schema, instance, &problems, NULL);
}

static void check_coercion(struct arena *arena, const struct schema *schema, const struct json *instance)
{
    struct coerce_options no_floats = coerce_options_all;
    no_floats.floats = false;
    if (schema_validate(schema, instance) == SCHEMA_VALID)
        REQUIRE(schema_coerce(schema, instance, &no_floats, arena, NULL) == instance);
    const struct json *once = schema_coerce(schema, instance, &coerce_options_all, arena, NULL);
    const struct json *twice = schema_coerce(schema, once, &coerce_options_all, arena, NULL);
    REQUIRE(str_eq(text_of(arena, once), text_of(arena, twice)));
}

/* What a valid instance becomes is valid, and stays as it is. */
static void check_completion(struct arena *arena, const struct schema *schema, const struct json *instance)
{
    struct schema_remarks remarks;
    struct problems problems;
    problems_init(&problems, arena);
    enum schema_validity answer = schema_inspect(schema, instance, &remarks, NULL);
    REQUIRE(answer == schema_validate(schema, instance));
    if (answer != SCHEMA_VALID)
        return;
    if (remarks.declared) {
        schema_unknown_properties(schema, instance, &problems, NULL);
        REQUIRE(!problems.count);
    }
    const struct json *named = schema_coerce_names(schema, instance, &coerce_options_all, arena, NULL);
    REQUIRE(named == instance || schema_validate(schema, named) == SCHEMA_VALID);
    REQUIRE(str_eq(text_of(arena, schema_coerce_names(schema, named, &coerce_options_all, arena, NULL)),
                   text_of(arena, named)));
    schema_inspect(schema, named, &remarks, NULL);
    if (remarks.local_times)
        named = schema_coerce_times(schema, named, NULL, &problems, NULL);
    REQUIRE(schema_validate(schema, named) == SCHEMA_VALID);
}

static void check(struct arena *arena, struct str first, struct str rest)
{
    struct json source, instance;
    struct json_error fault;
    struct schema *schema;
    struct problems warnings;
    struct why why = {""};
    if (json_parse(arena, first, NULL, &source, &fault) != OK ||
        json_parse(arena, rest, NULL, &instance, &fault) != OK)
        return;
    problems_init(&warnings, arena);
    const struct schema_options options = {.local_times = true};
    if (schema_compile(arena, &source, &options, &schema, &warnings, &why) != OK) {
        REQUIRE(why.text[0]);
        return;
    }
    check_passes(arena, schema, &instance);
    check_coercion(arena, schema, &instance);
    check_completion(arena, schema, &instance);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct str all = arena_dup(arena, (struct str){(const char *)data, size}), rest = STR_NONE;
    const char *newline = size ? memchr(all.at, '\n', size) : NULL;
    if (newline) {
        rest = str_from(all, (size_t)(newline - all.at) + 1);
        all.len = (size_t)(newline - all.at);
    }
    check(arena, all, rest);
    arena_free(arena);
    return 0;
}

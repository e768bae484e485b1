/* What a schema and an instance may cost: steps are counted, not time. Each pair here once held the loop for
 * hundreds of milliseconds, or for minutes. */
#include "schema_support.h"

#include "schema/coerce.h"
#include "schema/contradiction.h"
#include "schema/sample.h"
#include "schema/schema_node.h"
#include "schema/shape.h"

#include <time.h>

/* `one` with %u as the running number, `count` times, between `begin` and `end`; a backtick is a quote. */
static const char *repeated(const char *begin, unsigned count, const char *one, const char *end)
{
    struct buf out = buf_in(arena);
    buf_text(&out, begin);
    for (unsigned i = 0; i < count; i++) {
        buf_text(&out, i ? "," : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_printf(&out, one, i, i, i);
#pragma GCC diagnostic pop
    }
    buf_text(&out, end);
    buf_byte(&out, '\0');
    return out.at;
}

static void print_time(const char *what, struct timespec from, uint32_t steps)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (getenv("WORK_TIMES"))
        printf("%-44s %7u steps %8.2f ms\n", what, steps,
               (double)(now.tv_sec - from.tv_sec) * 1e3 + (double)(now.tv_nsec - from.tv_nsec) / 1e6);
}

/* All that a call's arguments go through: judged, repaired, explained. */
static enum schema_validity spend(const char *what, const char *schema_text, const char *instance_text)
{
    const struct schema *schema = compile(schema_text);
    const struct json *v = parse(instance_text);
    struct schema_work work = {0};
    struct schema_remarks remarks;
    struct problems problems;
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    enum schema_validity validity = schema_inspect(schema, v, &remarks, &work);
    if (validity == SCHEMA_INVALID) {
        print_time("  judged", from, work.steps);
        uint32_t spent = work.steps;
        v = schema_coerce(schema, v, &coerce_options_all, arena, &work);
        print_time("  coerced", from, work.steps);
        work.steps = spent;
        validity = schema_inspect(schema, v, &remarks, &work);
    }
    problems_init(&problems, arena);
    if (validity != SCHEMA_VALID)
        validity = schema_explain(schema, v, &problems, &work);
    print_time(what, from, work.steps);
    assert_true(work.steps <= SCHEMA_MAX_STEPS);
    assert_true(problems.count <= PROBLEMS_MAX);
    assert_true(validity == SCHEMA_VALID || problems.errors > 0);
    if (validity == SCHEMA_TOO_COMPLEX)
        assert_string_equal(problems.list[0].code, "too_complex");
    return validity;
}

TEST(hostile_pairs_stay_within_the_budget)
{
    const char *numbers = repeated("[", 90000, "%u", "]");
    const char *members = repeated("{", 40000, "`m%u`:%u", "}");
    char *as = arena_alloc(arena, 32003);
    memset(as, 'a', 32002);
    as[0] = as[32001] = '`';
    as[32002] = '\0';
    const struct {
        const char *what, *schema, *instance;
    } table[] = {
        {"a fan of types over a long list",
         repeated("{`items`:{`anyOf`:[", 5000, "{`type`:`string`,`minLength`:%u}", "]}}"), numbers},
        {"a fan over a large object",
         repeated("{`anyOf`:[", 3000, "{`properties`:{`x%u`:{`type`:`null`}},`required`:[`x`]}", "]}"),
         members},
        {"branches that read all of a large object",
         repeated("{`anyOf`:[", 3000, "{`properties`:{`m39999`:{`const`:%u}}}", "]}"),
         repeated("{", 39999, "`m%u`:%u", ",`m39999`:-1}")},
        {"enums of objects in a fan",
         repeated("{`items`:{`anyOf`:[", 2000, "{`enum`:[{`a`:%u},{`b`:%u}]}", "]}}"),
         repeated("[", 20000, "{`a`:1,`c`:%u}", "]")},
        {"lists of lists that must differ",
         repeated("{`anyOf`:[", 500, "{`uniqueItems`:true,`maxItems`:%u}", "]}"), numbers},
        {"a pattern that goes back", "{`pattern`:`(x+x+)+y`}",
         "`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`"},
        {"a pattern that begins anew at each place", "{`pattern`:`[a]*[bc][a]*d`}", as},
        {"a pattern with alternatives for each name", "{`patternProperties`:{`(m|m[0-9]|[0-9]m?)*x`:{}}}",
         members},
        {"regular expressions as values", "{`items`:{`format`:`regex`}}",
         repeated("[", 20000, "`((a{100}){100}){%u}`", "]")},
        {"unevaluated members in a fan",
         repeated("{`unevaluatedProperties`:false,`anyOf`:[", 2000, "{`properties`:{`m%u`:{}}}", "]}"),
         members},
        {"many dependents of a large object",
         repeated("{`items`:{`dependentRequired`:{", 9000, "`m%u`:[`z`]", "}}}"),
         repeated("[", 30000, "{`a`:%u}", "]")},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        spend(table[i].what, table[i].schema, table[i].instance);
}

TEST(bulk_invalid_arguments_are_explained_in_part)
{
    assert_int_equal(spend("many wrong numbers", "{`items`:{`type`:`integer`,`maximum`:3}}",
                           repeated("[", 60000, "`x%u`", "]")),
                     SCHEMA_INVALID);
    assert_int_equal(spend("many unlike values of an enum",
                           repeated("{`additionalProperties`:{`enum`:[", 300, "`value_%u`", "]}}"),
                           repeated("{", 15000, "`m%u`:`vale_%u`", "}")),
                     SCHEMA_INVALID);
    assert_int_equal(
        spend("many misspelled fields",
              "{`items`:{`properties`:{`first_name`:{`type`:`string`},`last_name`:{`type`:`string`}},"
              "`required`:[`first_name`],`additionalProperties`:false}}",
              repeated("[", 12000, "{`frist_name`:%u,`lastname`:1}", "]")),
        SCHEMA_INVALID);
}

TEST(ordinary_large_arguments_pass)
{
    const char *schema = "{`type`:`object`,`properties`:{`rows`:{`type`:`array`,`items`:{`type`:`object`,"
                         "`properties`:{`id`:{`type`:`integer`,`minimum`:0},`name`:{`type`:`string`,"
                         "`minLength`:1},`kind`:{`enum`:[`a`,`b`]}},`required`:[`id`],"
                         "`additionalProperties`:false}}}}";
    const char *instance =
        repeated("{`rows`:[", 21000, "{`id`:%u,`name`:`row number %u`,`kind`:`b`}", "]}"); /* 1 MiB */
    assert_int_equal(spend("1 MiB of rows", schema, instance), SCHEMA_VALID);
    assert_int_equal(
        spend("1 MiB of numbers", "{`items`:{`type`:`number`}}", repeated("[", 90000, "1%uE-3", "]")),
        SCHEMA_VALID);
}

/* Found by its hash: neither compiling nor judging compares each value with each. */
TEST(large_enums_are_found_by_hash)
{
    struct schema_work work = {0};
    struct schema_remarks remarks;
    const struct schema *objects =
        compile(repeated("{`enum`:[", 15000, "{`a`:%u}", "]}")); /* 15,000 took 2.3 s */
    assert_int_equal(schema_inspect(objects, parse("{`a`:14999}"), &remarks, &work), SCHEMA_VALID);
    assert_true(work.steps < 100);
    assert_int_equal(schema_inspect(objects, parse("{`a`:15000}"), &remarks, &work), SCHEMA_INVALID);
    assert_true(work.steps < 200);
    const struct schema *numbers = compile(repeated("{`enum`:[", 90000, "%u", "]}"));
    assert_int_equal(numbers->root->ops[0].choices.count, 90000);
    assert_int_equal(schema_inspect(numbers, parse("8.9999e4"), &remarks, &work), SCHEMA_VALID);
    assert_int_equal(schema_inspect(numbers, parse("90000"), &remarks, &work), SCHEMA_INVALID);
    assert_true(work.steps < 300);
}

TEST(compiled_patterns_are_bounded)
{
    struct schema *schema;
    struct why why = {""};
    const struct json *source =
        parse(repeated("{`allOf`:[", 2000, "{`pattern`:`^((ab?[cd]{20}){10}){20}%u`}", "]}"));
    assert_int_equal(schema_compile(arena, source, NULL, &schema, NULL, &why), ERR_LIMIT);
    assert_non_null(strstr(why.text, "4194304"));
}

/* Each is compared with those before it, by what its schema looks like as JSON. */
TEST(problems_of_unlike_items_are_compared_in_little_memory)
{
    const char *fields =
        repeated("{`type`:`object`,`properties`:{", 12, "`field_%u`:{`type`:`integer`}", "}},");
    struct buf schema = buf_in(arena);
    struct problems problems;
    struct arena *own = arena_new();
    buf_text(&schema, "{`prefixItems`:[");
    for (unsigned i = 0; i < 500; i++) {
        buf_text(&schema, fields);
        buf_printf(&schema, "{`type`:`object`,`properties`:{`other_%u`:{`type`:`integer`}}},", i);
    }
    buf_text(&schema, "{}]}");
    buf_byte(&schema, '\0');
    problems_init(&problems, own);
    schema_explain(compile(schema.at), parse(repeated("[", 1000, "`x`", "]")), &problems, NULL);
    assert_int_equal(problems.count, PROBLEMS_MAX);
    assert_true(arena_bytes(own) < 4u << 20);
    arena_free(own);
}

static const char *long_word(void)
{
    char *word = memset(arena_alloc(arena, 50001), 'x', 50000);
    word[50000] = '\0';
    return word;
}

/* A path that an agent has made long, and what a server wants there, are written once a problem. */
TEST(long_names_and_values_are_repeated_in_little_memory)
{
    const char *word = long_word();
    const struct {
        const char *schema, *instance;
    } table[] = {
        {"{`additionalProperties`:{`additionalProperties`:{`type`:`integer`}}}",
         repeated(arena_printf(arena, "{`%s`:{", word).at, 5000, "`a%u`:`x`", "}}")},
        {"{`additionalProperties`:{`items`:{`format`:`date-time`}}}",
         repeated(arena_printf(arena, "{`%s`:[", word).at, 5000, "`2026-05-03T00:00:0%u`", "]}")},
        {arena_printf(arena, "{`items`:{`const`:`%s`}}", word).at, repeated("[", 5000, "%u", "]")},
        {repeated(arena_printf(arena, "{`dependentRequired`:{`%s`:[", word).at, 9000, "`m%u`", "]}}"),
         arena_printf(arena, "{`%s`:1}", word).at},
        {arena_printf(arena, "{`items`:{`type`:`object`,`properties`:{`%s`:{}}}}", word).at,
         repeated("[", 5000, "%u", "]")},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const struct schema *schema = compile(table[i].schema);
        const struct json *instance = parse(table[i].instance);
        struct problems problems;
        struct arena *own = arena_new();
        problems_init(&problems, own);
        assert_int_equal(schema_explain(schema, instance, &problems, NULL), SCHEMA_INVALID);
        assert_true(problems.count > 0);
        if (arena_bytes(own) > 16u << 20)
            fail_msg("row %zu: %zu bytes", i, arena_bytes(own));
        arena_free(own);
    }
}

/* ---- what a server publishes: nothing counts the steps of reading a schema ---- */

/* Definitions of which each lists the next one `fan` times, under the keyword. */
static const char *fan_of_definitions(const char *keyword, unsigned levels, unsigned fan)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "{`$ref`:`#/$defs/d0`,`$defs`:{");
    for (unsigned i = 0; i < levels; i++) {
        buf_printf(&out, "`d%u`:{`%s`:[", i, keyword);
        for (unsigned k = 0; k < fan; k++)
            buf_printf(&out, "%s{`$ref`:`#/$defs/d%u`}", k ? "," : "", i + 1);
        buf_text(&out, "]},");
    }
    buf_printf(&out, "`d%u`:{`type`:`integer`}}}", levels);
    buf_byte(&out, '\0');
    return out.at;
}

TEST(published_schemas_are_read_in_bounded_memory)
{
    const char *word = long_word(), *optional = ARENA_JOIN(arena, STR_LIT("optional not "), str_of(word)).at;
    const char *schemas[] = {
        fan_of_definitions("allOf", 7, 40),
        fan_of_definitions("anyOf", 7, 32),
        repeated(arena_printf(arena, "{`properties`:{`a`:{`description`:`%s`}},`required`:[", optional).at,
                 40000, "`a`", "]}"),
        repeated(repeated("{`allOf`:[{`properties`:{", 8000, "`a%u`:{}", "}},{`properties`:{"), 1900,
                 "`b%u`:{}", "}}]}"),
        repeated(repeated("{`$defs`:{`x`:{`required`:[", 20000, "`z`",
                          arena_printf(arena, "],%s}},`properties`:{",
                                       repeated("`properties`:{", 5000, "`a%u`:0", "}"))
                              .at),
                 100, "`p%u`:{`$ref`:`#/$defs/x`}", "}}"),
        repeated(arena_printf(arena, "{`$id`:`http://h/%s/`,`properties`:{", word).at, 2000,
                 "`a%u`:{`$ref`:`b`}", "}}"),
        repeated(arena_printf(arena, "{`properties`:{`%s`:{`properties`:{", word).at, 2000,
                 "`a%u`:{`type`:`str`}", "}}}}"),
        repeated(arena_printf(arena, "{`properties`:{`%s`:{`properties`:{", word).at, 2000,
                 "`a%u`:{`type`:5}", "}}}}"),
        repeated(arena_printf(arena, "{`properties`:{`%s`:{`properties`:{", word).at, 2000,
                 "`a%u`:{`minimum`:2,`maximum`:1}", "}}}}"),
    };
    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
        struct arena *own = arena_new();
        const struct json *source = parse(schemas[i]);
        struct problems found, problems;
        struct schema *schema = NULL;
        struct json sample;
        struct shape_parameter parameters[4];
        struct why why;
        problems_init(&found, own);
        problems_init(&problems, own);
        source = schema_soften(own, source, &found);
        schema_repair(own, source, &source, &found, &why);
        if (schema_compile(own, source, NULL, &schema, &found, &why) != OK)
            fail_msg("schema %zu: %s", i, why.text);
        schema_sample(own, schema, SAMPLE_ALL, &sample);
        shape_parameters(schema, parameters, 4);
        schema_explain(schema, parse("`x`"), &problems, NULL);
        assert_true(arena_bytes(own) < 64u << 20);
        arena_free(own);
    }
}

/* Helpers for the tests of schema/: JSON from C strings with ' for ", schemas, and problems as the model
 * reads them. */
#ifndef TOOLGATE_TESTS_SCHEMA_SUPPORT_H
#define TOOLGATE_TESTS_SCHEMA_SUPPORT_H

#include "arena_case.h"
#include "schema/schema.h"
#include "golden.h"

/* Backquotes stand for double quotes: `{`a`:1}`. */
static inline struct str quoted(const char *text)
{
    struct str s = arena_dup(arena, str_of(text));
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] == '`')
            ((char *)(uintptr_t)s.at)[i] = '"';
    return s;
}

static inline const struct json *parse(const char *text)
{
    return value_of_str(quoted(text));
}

static inline struct schema *compile(const char *text)
{
    struct schema *schema;
    struct why why;
    if (schema_compile(arena, parse(text), NULL, &schema, NULL, &why) != OK)
        fail_msg("%s: %s", text, why.text);
    return schema;
}

/* All lines about the instance; both passes must agree about it. */
static inline const char *lines_of(const struct schema *schema, const struct json *instance)
{
    struct problems problems;
    struct buf out = buf_in(arena);
    problems_init(&problems, arena);
    enum schema_validity answer = schema_explain(schema, instance, &problems, NULL);
    assert_int_equal(answer, schema_validate(schema, instance));
    assert_int_equal(answer == SCHEMA_VALID, problems.errors == 0);
    problems_text(&out, &problems);
    return arena_dup(arena, buf_view(&out)).at;
}

/* A row of the golden text: the feedback on this instance. */
static inline void expect_lines(const char *schema, const char *instance)
{
    golden_row(arena_printf(arena, "%s  %s", schema, instance).at,
               lines_of(compile(schema), parse(instance)));
}

#endif

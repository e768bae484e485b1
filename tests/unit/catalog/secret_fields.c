/* Which arguments a schema declares secret, and that a schema cannot make the search endless. */

#include "arena_case.h"
#include "catalog/definition.h"

/* "a,b.c" for a schema, in the order of the walk. */
static void finds(const char *schema, const char *expected)
{
    const struct str *paths;
    struct buf all = buf_in(arena);
    size_t count = secret_fields_find(arena, value_of(schema), &paths);
    for (size_t i = 0; i < count; i++)
        buf_printf(&all, "%s" STR_FMT, i ? "," : "", STR_ARG(paths[i]));
    buf_byte(&all, '\0');
    assert_string_equal(all.at, expected);
}

TEST(declared_fields_are_found)
{
    finds("{\"properties\":{\"a\":{\"writeOnly\":true},\"b\":{\"type\":\"string\"}}}", "a");
    finds("{\"properties\":{\"a\":{\"format\":\"password\"},\"b\":{\"writeOnly\":false}}}", "a");
    finds("{\"properties\":{\"a\":{\"properties\":{\"b\":{\"writeOnly\":true}}}}}", "a.b");
    finds("{\"properties\":{\"a\":{\"items\":{\"properties\":{\"b\":{\"writeOnly\":true}}}}}}", "a[].b");
    finds("{\"anyOf\":[{\"properties\":{\"a\":{\"writeOnly\":true}}},{\"properties\":{\"b\":{\"format\":"
          "\"password\"}}}]}",
          "a,b");
    finds("{\"$defs\":{\"k\":{\"writeOnly\":true}},\"properties\":{\"a\":{\"$ref\":\"#/$defs/k\"}}}", "a");
    finds("{\"properties\":{\"password\":{\"type\":\"string\"}}}", "");
}

TEST(references_end)
{
    finds("{\"writeOnly\":false,\"properties\":{\"a\":{\"$ref\":\"#\"},\"b\":{\"$ref\":\"#\"},\"c\":{\"$"
          "ref\":\"#\"},"
          "\"d\":{\"$ref\":\"#\"},\"e\":{\"$ref\":\"#\"}}}",
          "");
    finds("{\"$ref\":\"#/$defs/none\",\"writeOnly\":true}", "");
}

/* A schema of 256 KiB that refers to itself ten times: of each it is walked again. */
static void finds_none(const char *member, size_t times)
{
    struct buf schema = buf_in(arena);
    buf_text(&schema, "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"properties\":{\"password\":true");
    for (unsigned i = 0; i < 10; i++)
        buf_printf(&schema, ",\"r%u\":{\"$ref\":\"#/$defs/a\"}", i);
    for (unsigned i = 0; i < times; i++)
        buf_printf(&schema, member, i);
    buf_text(&schema, "}}}}");
    buf_byte(&schema, '\0');
    finds(schema.at, "");
}

TEST(a_large_schema_is_not_walked_for_each_reference)
{
    finds_none(",\"%05x\":true", 20000);
    finds_none(",\"%0200000x\":{}", 1);
    finds_none(",\"k\":{\"$ref\":\"#/%0200000x\"}", 1);
}

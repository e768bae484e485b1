/* Which arguments a schema declares secret, and that a schema cannot make the search endless. */

#include "unit.h"
#include "base/arena.h"
#include "base/buf.h"
#include "catalog/definition.h"
#include "json/parse.h"

/* "a,b.c" for a schema, in the order of the walk. */
static void finds(const char *schema, const char *expected)
{
    struct arena *arena = arena_new();
    struct json value;
    struct json_error fault;
    const struct str *paths;
    struct buf all = buf_in(arena);
    assert_int_equal(json_parse(arena, str_of(schema), NULL, &value, &fault), OK);
    size_t count = secret_fields_find(arena, &value, &paths);
    for (size_t i = 0; i < count; i++)
        buf_printf(&all, "%s" STR_FMT, i ? "," : "", STR_ARG(paths[i]));
    buf_byte(&all, '\0');
    assert_string_equal(all.at, expected);
    arena_free(arena);
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

/* What it may take to mask a result. */
#include "arena_case.h"
#include "result/redact.h"
#include "result/result.h"
#include "schema/schema.h"

/* `one` with %u as the running number, `count` times, between `begin` and `end`. */
static void put_list(struct buf *out, const char *begin, unsigned count, const char *one, const char *end)
{
    buf_text(out, begin);
    for (unsigned i = 0; i < count; i++) {
        buf_text(out, i ? "," : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_printf(out, one, i, i);
#pragma GCC diagnostic pop
    }
    buf_text(out, end);
}

/* A mask is no address, so the schema of the field is asked what is one: once, not for each row with all of
 * the schema's definitions. */
TEST(rows_of_one_schema_share_what_stands_for_their_fields)
{
    static const struct str fields[] = {STR("email")};
    struct buf rows = buf_in(arena), text = buf_in(arena);
    put_list(&rows, "{\"rows\":[", 2000, "{\"email\":\"ada%u@example.com\",\"n\":%u}", "]}");
    buf_text(&text,
             "{\"type\":\"object\",\"properties\":{\"rows\":{\"items\":{\"type\":\"object\",\"properties\":{"
             "\"email\":{\"type\":\"string\",\"format\":\"email\"}},\"required\":[\"email\"]}}},");
    put_list(&text, "\"$defs\":{", 500, "\"d%u\":{\"type\":\"integer\",\"minimum\":%u}", "}}");
    struct schema *output;
    struct result result;
    struct why why;
    if (schema_compile(arena, value_of_str(buf_view(&text)), NULL, &output, NULL, &why) != OK)
        fail_msg("%s", why.text);
    result_read(arena, value_of_str(buf_view(&rows)), &result);
    struct arena *own = arena_new();
    assert_int_equal(redact_result(own, fields, 1, output, &result, NULL), REDACT_DONE);
    assert_int_equal(schema_validate(output, result.value), SCHEMA_VALID);
    assert_true(arena_bytes(own) < 16u << 20);
    arena_free(own);
}

/* What of a result does not make it a new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "result/result_mask.h"

static struct arena *arena;

static struct str masked(const char *json, bool digits)
{
    struct buf out = buf_in(arena);
    struct json value;
    struct json_error fault;
    assert_int_equal(OK, json_parse(arena, str_of(json), NULL, &value, &fault));
    result_mask_write(&out, arena, &value, digits);
    buf_byte(&out, '\0');
    return buf_view(&out);
}

static void texts_without_what_changes_by_itself(void **state)
{
    static const struct {
        const char *text, *result;
    } table[] = {
        {"\"done at 2026-05-03T10:00:00.5Z.\"", "\"done at #.\""},
        {"\"on 2026-05-03, 9:05, not 19.5 or 12\"", "\"on #, #, not 19.5 or 12\""},
        {"\"id 3f2504e0-4f89-41d3-9a0c-0305e82c3301 deadbeef9 12345678 v1.2.3\"",
         "\"id # # 12345678 v1.2.3\""},
        {"{\"elapsed_ms\":12,\"createdAt\":\"x\",\"flat\":1,\"at\":3}",
         "{elapsed_ms:#,createdAt:#,flat:1,at:#,}"},
        {"[{\"text\":\"{\\\"time\\\": 3, \\\"price\\\": 4}\"}]", "[{text:\"{time:#,price:4,}\",},]"},
        {"\"{not json 10:00\"", "\"{not json #\""},
        {"{\"traceId\":{\"deep\":1}}", "{traceId:{deep:1,},}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_string_equal(table[i].result, masked(table[i].text, false).at);
}

static void digits_of_failures(void **state)
{
    (void)state;
    assert_string_equal("\"try #: queue #, port#\"", masked("\"try 12: queue 7, port80\"", true).at);
    assert_string_equal("{n:#,}", masked("{\"n\":12.5}", true).at);
}

static int open_arena(void **state)
{
    (void)state;
    arena = arena_new();
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_without_what_changes_by_itself),
        cmocka_unit_test(digits_of_failures),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}

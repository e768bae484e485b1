/* Readable differences: one line for each place. */
#include "json/diff.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct arena *arena;

static int begin(void **state)
{
    (void)state;
    arena = arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static const struct json *value(const char *text)
{
    struct json *v = ARENA_NEW(arena, struct json);
    struct json_error fault;
    assert_int_equal(json_parse(arena, str_of(text), NULL, v, &fault), OK);
    return v;
}

static const char *lines(const char *expected, const char *got, size_t *more)
{
    struct json_diff_result *found = ARENA_NEW(arena, struct json_diff_result);
    struct buf text = buf_in(arena);
    json_diff_find(arena, value(expected), value(got), found);
    for (size_t i = 0; i < found->count; i++)
        buf_printf(&text, "%c " STR_FMT "\n", found->lines[i].sign, STR_ARG(found->lines[i].text));
    buf_byte(&text, '\0');
    if (more)
        *more = found->more;
    return text.at;
}

static void expect(const char *expected, const char *got, const char *wanted)
{
    assert_string_equal(lines(expected, got, NULL), wanted);
}

static void names_each_place(void **state)
{
    (void)state;
    expect("{\"limit\":10}", "{\"limit\":50}", "- limit = 10\n+ limit = 50\n");
    expect("{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}", "- a = 1\n+ c = 3\n");
    expect("{\"a\":{\"b\":[1,{\"c\":true}]}}", "{\"a\":{\"b\":[1,{\"c\":false}]}}",
           "- a.b[1].c = true\n+ a.b[1].c = false\n");
    expect("[1,2,3]", "[1]", "- [1] = 2\n- [2] = 3\n");
    expect("{\"a\":[]}", "{\"a\":{}}", "- a = []\n+ a = {}\n");
    expect("{\"a b\":1}", "{}", "- [\"a b\"] = 1\n");
    expect("1", "\"1\"", "- all of it = 1\n+ all of it = \"1\"\n");
}

static void equal_values_have_no_difference(void **state)
{
    (void)state;
    expect("{\"a\":1.0,\"b\":[]}", "{\"b\":[],\"a\":1}", "");
}

static void truncates_long_values(void **state)
{
    (void)state;
    size_t more;
    struct buf all = buf_in(arena);
    struct str long_text = arena_printf(arena, "{\"a\":\"%0*d\"}", (int)JSON_DIFF_VALUE_MAX_BYTES * 2, 7);
    assert_true(strlen(lines(long_text.at, "{}", NULL)) < JSON_DIFF_VALUE_MAX_BYTES + 20);
    buf_byte(&all, '[');
    for (int i = 0; i < 40; i++)
        buf_printf(&all, "%s%d", i ? "," : "", i);
    buf_text(&all, "]");
    buf_byte(&all, '\0');
    lines(all.at, "[]", &more);
    assert_int_equal(more, 40 - JSON_DIFF_LINES_MAX);
}

/* Two equal lines would not show a difference. */
static void shows_long_strings_from_their_difference(void **state)
{
    (void)state;
    struct str same = arena_printf(arena, "%0*d", 3000, 7);
    const char *told = lines(arena_printf(arena, "{\"a\":\"" STR_FMT "old\"}", STR_ARG(same)).at,
                             arena_printf(arena, "{\"a\":\"" STR_FMT "new\"}", STR_ARG(same)).at, NULL);
    assert_non_null(strstr(told, "7old\"\n+ a = … 0"));
    assert_non_null(strstr(told, "7new\"\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_each_place),
        TEST(equal_values_have_no_difference),
        TEST(truncates_long_values),
        TEST(shows_long_strings_from_their_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

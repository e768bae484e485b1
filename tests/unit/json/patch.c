/* The difference of two values as a JSON Patch. */
#include "json/build.h"
#include "json/diff.h"
#include "json/json_support.h"

static void finds_the_changes(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *patch;
    } rows[] = {
        {"{\"a\":1}", "{\"a\":1}", "[]"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2, \"a\":1}", "[]"},
        {"\"\\u0061\"", "\"a\"", "[]"},
        {"{\"a\":1}", "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]"},
        {"{}", "{\"a\":1.10}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1.10}]"},
        {"{\"a\":\"3\"}", "{\"a\":3}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":3}]"},
        {"{\"a\":1}", "{\"a\":1.0}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1.0}]"},
        {"{\"a\":true}", "{\"a\":false}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":false}]"},
        {"{\"a\":null}", "{\"a\":null}", "[]"},
        {"{\"a\":{\"b\":{\"c\":1}}}", "{\"a\":{\"b\":{\"c\":2}}}",
         "[{\"op\":\"replace\",\"path\":\"/a/b/c\",\"value\":2}]"},
        {"{\"a\":[1,{\"x\":1},3]}", "{\"a\":[1,{\"x\":2},3]}",
         "[{\"op\":\"replace\",\"path\":\"/a/1/x\",\"value\":2}]"},
        {"{\"a\":[1,2]}", "{\"a\":[1, 2,3]}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":[1, 2,3]}]"},
        {"{\"a\":\"x\"}", "{\"a\":[\"x\"]}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":[\"x\"]}]"},
        {"{\"a/b\":1,\"m~n\":1,\"\":1}", "{\"a/b\":2,\"m~n\":2,\"\":2}",
         "[{\"op\":\"replace\",\"path\":\"/a~1b\",\"value\":2},{\"op\":\"replace\",\"path\":\"/"
         "m~0n\",\"value\":2},"
         "{\"op\":\"replace\",\"path\":\"/\",\"value\":2}]"},
        {"{\"x\":1,\"y\":2}", "{\"y\":3,\"z\":4}",
         "[{\"op\":\"remove\",\"path\":\"/x\"},{\"op\":\"replace\",\"path\":\"/y\",\"value\":3},"
         "{\"op\":\"add\",\"path\":\"/z\",\"value\":4}]"},
        {"[]", "{}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{}}]"},
        {"1", "2", "[{\"op\":\"replace\",\"path\":\"\",\"value\":2}]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json before = parsed(rows[i].before), after = parsed(rows[i].after);
        struct json patch = json_patch(arena, &before, &after);
        assert_string_equal(written(&patch), rows[i].patch);
    }
}

static void sees_changes_made_by_build(void **state)
{
    (void)state;
    struct json v = parsed("{\"action\":\"by_ids\",\"ids\":[1,2],\"limit\":5}");
    struct json dropped = json_without(arena, &v, STR_LIT("limit"));
    struct json patch = json_patch(arena, &v, &dropped);
    assert_string_equal(written(&patch), "[{\"op\":\"remove\",\"path\":\"/limit\"}]");
    patch = json_patch(arena, &v, &v);
    assert_int_equal(patch.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(finds_the_changes),
        JSON_TEST(sees_changes_made_by_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Changed values: only the changed parts are rewritten. */
#include "json/build.h"
#include "json/json_support.h"

static void builds_values(void **state)
{
    (void)state;
    const struct json items[] = {json_null(),
                                 json_bool(true),
                                 json_integer(arena, -5),
                                 json_integer(arena, INT64_MIN),
                                 json_number(arena, 1.5),
                                 json_string(STR_LIT("a\n")),
                                 json_literal(STR_LIT("1e400"))};
    struct json array = json_array(items, 7);
    assert_string_equal(written(&array), "[null,true,-5,-9223372036854775808,1.5,\"a\\n\",1e400]");
    assert_true(items[2].integral && items[6].integral && !items[4].integral);
    const struct json_member members[] = {{.key = STR("z"), .value = array},
                                          {.key = STR("a"), .value = items[1]}};
    struct json object = json_object(arena, members, 2), empty = json_object(arena, NULL, 0);
    assert_string_equal(written(&object),
                        "{\"z\":[null,true,-5,-9223372036854775808,1.5,\"a\\n\",1e400],\"a\":true}");
    assert_true(json_is_true(json_get_text(&object, "a")));
    assert_string_equal(written(&empty), "{}");
    struct json none = json_number(arena, __builtin_nan(""));
    assert_int_equal(none.type, JSON_NULL);
}

static void the_last_of_two_members_counts(void **state)
{
    (void)state;
    const struct json_member members[] = {json_member(STR_LIT("a"), json_integer(arena, 1)),
                                          json_member(STR_LIT("b"), json_null()),
                                          json_member(STR_LIT("a"), json_integer(arena, 2))};
    struct json object = json_object(arena, members, 3);
    assert_string_equal(written(&object), "{\"a\":2,\"b\":null}");
}

static void sets_and_removes_members(void **state)
{
    (void)state;
    struct json v = parsed("{\"id\": 18446744073709551616, \"limit\":10,\"x\":{\"k\" : 1.10}}");
    struct json set = json_with(arena, &v, STR_LIT("limit"), json_integer(arena, 5));
    assert_string_equal(written(&set), "{\"id\":18446744073709551616,\"limit\":5,\"x\":{\"k\" : 1.10}}");
    struct json more = json_with(arena, &set, STR_LIT("new"), json_null());
    assert_string_equal(written(&more),
                        "{\"id\":18446744073709551616,\"limit\":5,\"x\":{\"k\" : 1.10},\"new\":null}");
    struct json less = json_without(arena, &more, STR_LIT("limit"));
    assert_string_equal(written(&less), "{\"id\":18446744073709551616,\"x\":{\"k\" : 1.10},\"new\":null}");
    struct json same = json_without(arena, &v, STR_LIT("nothing"));
    assert_string_equal(written(&same), "{\"id\": 18446744073709551616, \"limit\":10,\"x\":{\"k\" : 1.10}}");
    assert_string_equal(written(&v), "{\"id\": 18446744073709551616, \"limit\":10,\"x\":{\"k\" : 1.10}}");
}

static void changes_objects_across_the_index_bound(void **state)
{
    (void)state;
    struct json v = parsed("{}");
    for (int i = 0; i < 100; i++)
        v = json_with(arena, &v, arena_printf(arena, "key%d", i), json_integer(arena, i));
    v = json_with(arena, &v, STR_LIT("key50"), json_bool(true));
    assert_int_equal(v.len, 100);
    for (int i = 99; i >= 0; i--) {
        struct str key = arena_printf(arena, "key%d", i);
        int64_t n;
        const struct json *value = json_get(&v, key);
        assert_true(i == 50 ? json_is_true(value) : json_int(value, &n) && n == i);
        v = json_without(arena, &v, key);
        assert_null(json_get(&v, key));
        assert_int_equal(v.len, i);
    }
}

static void replaces_items(void **state)
{
    (void)state;
    struct json v = parsed("[1.10, [2 ], 3]"),
                changed = json_with_item(arena, &v, 2, json_string(STR_LIT("x")));
    assert_string_equal(written(&changed), "[1.10,[2 ],\"x\"]");
    assert_string_equal(written(&v), "[1.10, [2 ], 3]");
}

static void copies_outlive_their_text(void **state)
{
    (void)state;
    static const char sent[] =
        "{\"a\\u0062\": [1.10, \"x\\ny\", \"plain\", {\"k\" : null}], \"t\":true, \"e\":[ ]}";
    struct arena *other = arena_new();
    char *text = strdup(sent);
    struct json_error fault;
    struct json v;
    assert_int_equal(json_parse(other, str_of(text), NULL, &v, &fault), OK);
    struct json changed = json_with(other, &v, STR_LIT("s"), json_string(arena_dup(other, STR_LIT("new"))));
    struct json copy = json_copy(arena, &v), copy_changed = json_copy(arena, &changed);
    memset(text, '#', sizeof(sent));
    free(text);
    arena_free(other);
    assert_string_equal(written(&copy), sent);
    assert_string_equal(written(json_get_text(&copy, "ab")), "[1.10, \"x\\ny\", \"plain\", {\"k\" : null}]");
    assert_string_equal(
        written(&copy_changed),
        "{\"ab\":[1.10, \"x\\ny\", \"plain\", {\"k\" : null}],\"t\":true,\"e\":[ ],\"s\":\"new\"}");
    const struct json *items = json_get_text(&copy_changed, "ab");
    assert_string_equal(written(&items->items[1]), "\"x\\ny\"");
    assert_int_equal(json_str(&items->items[1]).len, 3);
}

static void copies_large_objects(void **state)
{
    (void)state;
    struct buf text = buf_in(arena);
    for (int i = 0; i < 40; i++)
        buf_printf(&text, "%c\"key%d\":[%d]", i ? ',' : '{', i, i);
    buf_byte(&text, '}');
    struct json v = parsed_str(buf_view(&text)), copy = json_copy(arena, &v);
    for (int i = 0; i < 40; i++)
        assert_non_null(json_get(&copy, arena_printf(arena, "key%d", i)));
    assert_true(json_equal(&v, &copy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(builds_values),
        JSON_TEST(the_last_of_two_members_counts),
        JSON_TEST(sets_and_removes_members),
        JSON_TEST(changes_objects_across_the_index_bound),
        JSON_TEST(replaces_items),
        JSON_TEST(copies_outlive_their_text),
        JSON_TEST(copies_large_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

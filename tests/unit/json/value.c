/* Access to members, numbers in every spelling, equality. */
#include "base/arena.h"
#include "json/build.h"
#include "arena_case.h"

#include <locale.h>
#include <math.h>

TEST(gets_members)
{
    struct json v = parsed("{\"a\":1,\"\":2,\"ab\":{\"c\":true}}");
    assert_string_equal(written(json_get_text(&v, "")), "2");
    assert_true(json_is_true(json_get_text(json_get_text(&v, "ab"), "c")));
    assert_null(json_get_text(&v, "b"));
    assert_null(json_get_text(json_get_text(&v, "b"), "c"));
    assert_null(json_get_text(json_get_text(&v, "a"), "c"));
    assert_null(json_get_text(NULL, "a"));
    assert_int_equal(json_str(json_get_text(&v, "a")).len, 0);
}

TEST(gets_members_of_any_size)
{
    static const int sizes[] = {1, 15, 16, 17, 18, 31, 32, 33, 64, 65, 1000};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct buf text = buf_in(arena);
        for (int i = 0; i < sizes[s]; i++)
            buf_printf(&text, "%c\"key%d\":%d", i ? ',' : '{', i, i);
        buf_byte(&text, '}');
        struct json v = *value_of_str(buf_view(&text));
        int64_t n;
        for (int i = 0; i < sizes[s]; i++)
            assert_true(json_int(json_get(&v, arena_printf(arena, "key%d", i)), &n) && n == i);
        assert_null(json_get_text(&v, "key"));
        assert_null(json_get(&v, arena_printf(arena, "key%d", sizes[s])));
    }
}

TEST(looks_for_a_text_in_a_list)
{
    struct json v = parsed("[\"a\",7,\"\",null,\"b\"]"), none = parsed("[7]"),
                object = parsed("{\"a\":\"a\"}");
    assert_true(json_array_has(&v, STR_LIT("b")) && json_array_has(&v, STR_LIT("")));
    assert_false(json_array_has(&v, STR_LIT("7")));
    assert_false(json_array_has(&none, STR_LIT("")));
    assert_false(json_array_has(&object, STR_LIT("a")));
    assert_false(json_array_has(NULL, STR_LIT("a")));
}

TEST(reads_integers)
{
    static const struct {
        const char *text;
        bool fits;
        int64_t n;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"0.000e99999999999999999999", true, 0},
        {"42", true, 42},
        {"-42", true, -42},
        {"1.0", true, 1},
        {"1e3", true, 1000},
        {"1.5e1", true, 15},
        {"12300e-2", true, 123},
        {"0.00012e6", true, 120},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"9.223372036854775807e18", true, INT64_MAX},
        {"1e18", true, 1000000000000000000},
        {"1e19", false, 0},
        {"1e999999999999999999999999", false, 0},
        {"1.5", false, 0},
        {"1e-1", false, 0},
        {"\"1\"", false, 0},
        {"true", false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json v = parsed(rows[i].text);
        int64_t n = 0;
        if (json_int(&v, &n) != rows[i].fits || n != rows[i].n)
            fail_msg("%s read as %lld", rows[i].text, (long long)n);
    }
    int64_t n;
    assert_false(json_int(NULL, &n));
}

TEST(reads_doubles)
{
    static const struct {
        const char *text;
        double n;
    } rows[] = {
        {"0", 0.0},
        {"1.10", 1.1},
        {"-2.5e-3", -0.0025},
        {"123456789012345", 123456789012345.0},
        {"9007199254740993", 9007199254740992.0}, /* half way, to even */
        {"9007199254740993.00000000000000000001", 9007199254740994.0},
        {"0.1", 0.1},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"1e400", INFINITY},
        {"-1e400", -INFINITY},
        {"1e99999999999999999999", INFINITY},
        {"1e-400", 0.0},
        {"1e-99999999999999999999", 0.0},
        {"5e-324", 5e-324},
        {"2.2250738585072014e-308", 2.2250738585072014e-308},
        {"1000000000000000000000000000000000000000000e-42", 1.0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json v = parsed(rows[i].text);
        double n = NAN;
        if (!json_double(&v, &n) || n != rows[i].n)
            fail_msg("%s read as %.17g", rows[i].text, n);
    }
    struct json minus = parsed("-0.0"), text = parsed("\"1\"");
    double n;
    assert_true(json_double(&minus, &n) && signbit(n));
    assert_false(json_double(&text, &n));
    assert_false(json_double(NULL, &n));
}

/* 1 + 2^-53 is half way between two doubles; a digit 800 places on decides. */
TEST(rounds_by_digits_far_out)
{
    struct buf text = buf_in(arena);
    buf_text(&text, "1.00000000000000011102230246251565404236316680908203125");
    double n;
    struct json v = *value_of_str(buf_view(&text));
    assert_true(json_double(&v, &n) && n == 1.0);
    for (int i = 0; i < 1000; i++)
        buf_byte(&text, '0');
    buf_byte(&text, '1');
    v = *value_of_str(buf_view(&text));
    assert_true(json_double(&v, &n) && n == nextafter(1.0, 2.0));
}

TEST(ignores_the_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    bool comma = false;
    for (size_t i = 0; i < 4 && !comma; i++)
        comma = setlocale(LC_ALL, names[i]) && localeconv()->decimal_point[0] == ',';
    double n;
    struct json v = parsed("1234.5e-1"), built = json_number(arena, 0.25);
    bool read = json_double(&v, &n);
    setlocale(LC_ALL, "C");
    assert_true(read && n == 123.45);
    assert_string_equal(written(&built), "0.25");
    if (!comma)
        print_message("no locale with a decimal comma is installed: checked in the C locale only\n");
}

static int order(const char *a, const char *b)
{
    struct json x = parsed(a), y = parsed(b);
    int forth = json_number_cmp(&x, &y), back = json_number_cmp(&y, &x);
    assert_int_equal(forth, -back);
    assert_int_equal(json_equal(&x, &y), forth == 0);
    return forth;
}

TEST(compares_numbers_exactly)
{
    static const struct {
        const char *a, *b;
        int order;
    } rows[] = {
        {"1", "1.0", 0},
        {"1", "10e-1", 0},
        {"1.10", "1.1", 0},
        {"0", "-0.0e7", 0},
        {"0", "0e99999999999999999999", 0},
        {"100", "1e2", 0},
        {"0.00123", "1.23e-3", 0},
        {"1", "2", -1},
        {"-1", "-2", 1},
        {"-1", "1", -1},
        {"0", "-1e-99999999999999999999", 1},
        {"9007199254740992", "9007199254740993", -1}, /* one double */
        {"18446744073709551615", "18446744073709551616", -1},
        {"0.1", "0.10000000000000000000000000001", -1},
        {"9.9", "10", -1},
        {"12.5", "12.50", 0},
        {"12.05", "12.5", -1},
        {"1e400", "1e401", -1},
        {"1e400", "10e399", 0},
        {"1e99999999999999999999", "1e99999999999999999998", 1},
        {"1e99999999999999999999", "10e99999999999999999998", 0},
        {"1e100000000000000000000", "10e99999999999999999999", 0},
        {"0.1e100000000000000000000", "1e99999999999999999999", 0},
        {"1e-100000000000000000000", "0.1e-99999999999999999999", 0},
        {"1e-100000000000000000000", "1e-99999999999999999999", -1},
        {"1e-99999999999999999999", "1e99999999999999999999", -1},
        {"1e0099", "1e99", 0},
        {"1e+5", "1E5", 0},
        {"1e-0", "1", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (order(rows[i].a, rows[i].b) != rows[i].order)
            fail_msg("%s against %s: not %d", rows[i].a, rows[i].b, rows[i].order);
}

TEST(compares_values)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"{\"a\":1,\"b\":[1,2]}", "{ \"b\": [1.0, 2e0], \"a\": 1 }", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":1}", false},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1]", false},
        {"\"\\u0061\"", "\"a\"", true},
        {"\"a\"", "\"A\"", false},
        {"1", "\"1\"", false},
        {"true", "false", false},
        {"true", "1", false},
        {"null", "null", true},
        {"null", "false", false},
        {"{}", "[]", false},
        {"{}", "{ }", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json a = parsed(rows[i].a), b = parsed(rows[i].b);
        if (json_equal(&a, &b) != rows[i].equal || json_equal(&b, &a) != rows[i].equal)
            fail_msg("%s against %s", rows[i].a, rows[i].b);
    }
}

/* {"type":"string"} in both places, and a list of both. */
TEST(a_pool_shares_equal_leaves_but_no_schemas)
{
    struct arena_pool *pool = arena_pool_new(arena);
    struct json_member type = json_member(STR_LIT("type"), json_string(STR_LIT("string")));
    struct json leaf = json_object(arena, &type, 1);
    struct json_member items[] = {json_member(STR_LIT("items"), leaf),
                                  json_member(STR_LIT("on"), json_bool(true))};
    struct json list = json_object(arena, items, 2);
    struct json_member both[] = {json_member(STR_LIT("a"), list), json_member(STR_LIT("b"), list)};
    struct json value = json_object(arena, both, 2);
    const struct json *copy = json_pool_copy(pool, &value), *again = json_pool_copy(pool, &value);
    const struct json *a = json_get_text(copy, "a"), *b = json_get_text(copy, "b");
    assert_true(json_equal(copy, &value) && json_equal(again, &value));
    assert_ptr_not_equal(a->members, b->members);
    assert_ptr_equal(json_get_text(a, "items")->members, json_get_text(b, "items")->members);
    assert_ptr_equal(a->members[0].key.at, again->members[0].value.members[0].key.at);
    struct json sent = parsed("{\"type\": \"string\"}"); /* keeps its bytes */
    assert_string_equal(written(json_pool_copy(pool, &sent)), "{\"type\": \"string\"}");
}

TEST(merges_objects_and_drops_nulls)
{
    struct json a = parsed("{\"a\":1,\"b\":null,\"c\":[null,2]}"), b = parsed("{\"c\":3,\"d\":4}"),
                list = parsed("[1,null]");
    struct json all = json_merge(arena, &a, &b), alone = json_merge(arena, NULL, &b);
    assert_string_equal(written(&all), "{\"a\":1,\"b\":null,\"c\":3,\"d\":4}");
    assert_string_equal(written(&alone), "{\"c\":3,\"d\":4}");
    struct json kept = json_without_nulls(arena, &a), items = json_without_nulls(arena, &list);
    assert_string_equal(written(&kept), "{\"a\":1,\"c\":[null,2]}");
    assert_string_equal(written(&items), "[1]");
}

TEST(names_types)
{
    assert_string_equal(json_type_name(JSON_BOOL), "boolean");
    assert_string_equal(json_type_name(JSON_OBJECT), "object");
}

/* Writing: each value is one line of valid JSON. */
#include "json/build.h"
#include "json/json_support.h"

#include <math.h>

static const char *string_of(const char *bytes, size_t len)
{
    struct buf out = buf_in(arena);
    json_write_string(&out, (struct str){bytes, len});
    return arena_dup(arena, buf_view(&out)).at;
}

static void drops_newlines_between_tokens(void **state)
{
    (void)state;
    struct json v = parsed("{\n  \"a\": [1,\r\n    2],\r\"b\":\n\"x\\ny\"\n}");
    assert_string_equal(written(&v), "{  \"a\": [1,    2],\"b\":\"x\\ny\"}");
}

static void escapes_strings(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *literal;
    } rows[] = {
        {"", 0, "\"\""},
        {NULL, 0, "\"\""},
        {"plain ascii, long enough", 24, "\"plain ascii, long enough\""},
        {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\""},
        {"é€😀", 9, "\"é€😀\""},
        {"\xff", 1, "\"\uFFFD\""},
        {"a\xc3", 2, "\"a\uFFFD\""},
        {"\xed\xa0\x80", 3, "\"\uFFFD\uFFFD\uFFFD\""},
        {"1234567\n9012345\"", 16, "\"1234567\\n9012345\\\"\""},
        {"12345678\xc3\xa9zzzzzzz\x80", 18, "\"12345678ézzzzzzz\uFFFD\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(string_of(rows[i].bytes, rows[i].len), rows[i].literal);
}

/* Strings are scanned 32, 16, 8 and 4 bytes at a time: a special byte is found in any place of any length. */
static void escapes_in_every_place(void **state)
{
    (void)state;
    char bytes[72], literal[80];
    for (size_t len = 1; len <= sizeof(bytes); len++)
        for (size_t at = 0; at < len; at++) {
            memset(bytes, 'x', len);
            snprintf(literal, sizeof(literal), "\"%.*s\\\"%.*s\"", (int)at, bytes, (int)(len - at - 1),
                     bytes);
            bytes[at] = '"';
            assert_string_equal(string_of(bytes, len), literal);
        }
}

static void every_byte_pair_is_json_again(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 65536; at++) {
        char bytes[2] = {(char)(at >> 8), (char)at};
        char room[64];
        struct buf out = {.at = room, .cap = sizeof(room)};
        struct json value;
        struct json_error fault;
        json_write_string(&out, (struct str){bytes, 2});
        if (at % 256 == 0) { /* one arena per row limits the memory */
            close_arena(NULL);
            open_arena(NULL);
        }
        if (json_parse(arena, buf_view(&out), NULL, &value, &fault) != OK)
            fail_msg("bytes %02x %02x: %s", at >> 8, at & 255, fault.text);
    }
}

static void writes_doubles(void **state)
{
    (void)state;
    static const struct {
        double n;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-17, "-17"},
        {1.1, "1.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100, "100"},
        {1e15, "1000000000000000"},
        {123456789012345680.0, "123456789012345680"},
        {1e20, "100000000000000000000"},
        {1e21, "1e21"},
        {1.5e300, "1.5e300"},
        {0.001, "0.001"},
        {1e-7, "0.0000001"},
        {1.25e-8, "1.25e-8"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {9007199254740993.0, "9007199254740992"},
        {2251799813685248.5, "2251799813685248.5"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json v = json_number(arena, rows[i].n);
        double back;
        assert_string_equal(written(&v), rows[i].text);
        assert_true(json_double(&v, &back) && back == rows[i].n && signbit(back) == signbit(rows[i].n));
    }
}

static void doubles_read_back(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252ull;
    for (int i = 0; i < 20000; i++) {
        double n, back;
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        memcpy(&n, &bits, sizeof(n));
        if (!isfinite(n))
            continue;
        struct json built = json_number(arena, n), v = parsed(written(&built));
        if (!json_double(&v, &back) || back != n)
            fail_msg("%a became %s", n, written(&built));
    }
}

static void keeps_commas_right(void **state)
{
    (void)state;
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    struct json sent = parsed("[1.10, 2]");
    json_open(&out, '{');
    json_key(&out, "text");
    json_put_text(&out, "a\"b");
    json_key_str(&out, STR_LIT("str"));
    json_put_str(&out, STR_LIT("x"));
    json_key(&out, "list");
    json_open(&out, '[');
    json_put_int(&out, INT64_MIN);
    json_put_double(&out, 0.5);
    json_put_double(&out, NAN);
    json_put_double(&out, INFINITY);
    json_put_bool(&out, true);
    json_open(&out, '[');
    json_close(&out, ']');
    json_open(&out, '{');
    json_close(&out, '}');
    json_close(&out, ']');
    json_key(&out, "sent");
    json_put(&out, &sent);
    json_key(&out, "none");
    json_put(&out, NULL);
    json_key(&out, "raw");
    json_put_raw(&out, STR_LIT("{\"id\":18446744073709551616}"));
    json_close(&out, '}');
    assert_string_equal(
        arena_dup(arena, buf_view(&text)).at,
        "{\"text\":\"a\\\"b\",\"str\":\"x\",\"list\":[-9223372036854775808,0.5,null,null,true,[],{}],"
        "\"sent\":[1.10, 2],\"none\":null,\"raw\":{\"id\":18446744073709551616}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(drops_newlines_between_tokens),
        JSON_TEST(escapes_strings),
        JSON_TEST(escapes_in_every_place),
        JSON_TEST(every_byte_pair_is_json_again),
        JSON_TEST(writes_doubles),
        JSON_TEST(doubles_read_back),
        JSON_TEST(keeps_commas_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The id of a message that does not parse, and reading JSON files. */
#include "arena_case.h"

#include <unistd.h>

TEST(reads_the_id_of_broken_messages)
{
    static const struct {
        const char *text, *id;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":tools}", "7"},
        {"{\"id\" : -12 , \"params\":{", "-12"},
        {"{\"id\":18446744073709551616,", "18446744073709551616"},
        {"{\"id\":\"a\\\"b\\u00e9\",\"x\":", "\"a\\\"b\\u00e9\""},
        {"{\"params\":{\"a\":[{},[1],\"}\\\"]\"]},\"id\":\"after\",,}", "\"after\""},
        {"{\"method\":\"\xff\",\"id\":5}", "5"},
        {"{\"method\":\"id\",\"id\":3,}", "3"},
        {" \t{\"id\":0,", "0"},
        {"{\"id\":\"😀\",]", "\"😀\""},
        /* ids that must not be accepted */
        {"", ""},
        {"nonsense", ""},
        {"[{\"id\":1,]", ""},
        {"[1,\"id\":5,", ""},
        {"{\"params\":{\"id\":1},", ""},
        {"{\"params\":{\"a\":1,\"id\":5}", ""},
        {"{\"method\":\"id\":5,", ""},
        {"{\"a\":\"id\",\"b\":5,,", ""},
        {"{\"id\":12", ""},
        {"{\"id\":12.5,", ""},
        {"{\"id\":1e3,", ""},
        {"{\"id\":012,", ""},
        {"{\"id\":-,", ""},
        {"{\"id\":null,", ""},
        {"{\"id\":true,", ""},
        {"{\"id\":{},", ""},
        {"{\"id\":\"open", ""},
        {"{\"id\":\"bad\\xescape\",", ""},
        {"{\"id\":\"\\ud800\",", ""},
        {"{\"id\":\"\xff\",", ""},
        {"{\"id\":\"a\nb\",", ""},
        {"{}\"id\":5,", ""},
        {"{\"id\"", ""},
        {"{\"id\":", ""},
        {"{\"id\\", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct str id = json_recover_id(str_of(rows[i].text));
        if (!str_is(id, rows[i].id))
            fail_msg("%s: read '" STR_FMT "'", rows[i].text, STR_ARG(id));
    }
}

TEST(looks_at_the_first_64_kilobytes)
{
    struct buf text = buf_in(arena);
    buf_text(&text, "{\"a\":\"");
    while (text.len < 65536)
        buf_byte(&text, 'x');
    buf_text(&text, "\",\"id\":1,}");
    assert_int_equal(json_recover_id(buf_view(&text)).len, 0);
}

TEST(ends_inside_its_bytes)
{
    static const char whole[] = "{\"a\\\\\":[\"\\\"\"],\"id\":\"x\\u0041\\ud83d\\ude00é\",";
    for (size_t len = 0; len < sizeof(whole); len++) {
        char *exact = malloc(len ? len : 1); /* of the exact size, for the address sanitizer */
        memcpy(exact, whole, len);
        struct str id = json_recover_id((struct str){exact, len});
        assert_true(id.len == 0 || len >= sizeof(whole) - 2);
        free(exact);
    }
}

static char path[] = "/tmp/toolgate-json-XXXXXX";

static void put_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST(reads_files)
{
    struct json v;
    struct why why;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    put_file("{\n \"a\": [1.10]\n}\n");
    assert_int_equal(json_read_file(arena, path, 1000, &v, &why), OK);
    assert_string_equal(written(json_get_text(&v, "a")), "[1.10]");
    put_file("{\n \"a\":\n [1,,2]\n}\n");
    assert_int_equal(json_read_file(arena, path, 1000, &v, &why), ERR_PARSE);
    assert_non_null(strstr(why.text, ":3: byte "));
    assert_non_null(strstr(why.text, path));
    assert_int_equal(json_read_file(arena, path, 18, &v, &why), ERR_PARSE);
    assert_int_equal(json_read_file(arena, path, 17, &v, &why), ERR_LIMIT);
    assert_non_null(strstr(why.text, "at most 17 bytes"));
    unlink(path);
    assert_int_equal(json_read_file(arena, path, 1000, &v, &why), ERR_IO);
    assert_int_equal(json_read_file(arena, "/", 1000, &v, &why), ERR_IO);
}

TEST(reads_large_files)
{
    struct json v;
    struct why why;
    strcpy(path, "/tmp/toolgate-json-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct buf text = buf_in(arena);
    buf_byte(&text, '[');
    for (int i = 0; i < 150000; i++)
        buf_printf(&text, "%d,", i);
    buf_text(&text, "null]");
    put_file(arena_dup(arena, buf_view(&text)).at);
    enum err err = json_read_file(arena, path, text.len, &v, &why);
    enum err over = json_read_file(arena, path, text.len - 1, &v, &why);
    unlink(path);
    assert_int_equal(err, OK); /* more values than a message may have */
    assert_int_equal(over, ERR_LIMIT);
}

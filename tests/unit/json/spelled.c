/* Oddly spelled JSON: what is read, what is not, and where a text was cut off. */
#include "arena_case.h"

#include "json/build.h"
#include "json/spelled.h"

static enum json_spelling read_spelled(struct str text, struct json *out, struct json_cut *cut)
{
    char *exact = malloc(text.len ? text.len : 1); /* of the exact size, for the address sanitizer */
    memcpy(exact, text.at, text.len);
    struct json value;
    enum json_spelling spelling = json_read_spelled(arena, (struct str){exact, text.len}, &value, cut);
    if (spelling == JSON_SPELLED)
        *out = json_copy(arena, &value);
    free(exact);
    return spelling;
}

TEST(reads_odd_spellings)
{
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"{}", "{}"},
        {" [1, 2.50, -3e5] ", "[1,2.50,-3e5]"},
        {"\"text\"", "\"text\""},
        {"12", "12"},
        {"{\"a\":1,}", "{\"a\":1}"},
        {"{\"a\":[1,2 , ] , }", "{\"a\":[1,2]}"},
        {"```json\n{\"a\":1}\n```", "{\"a\":1}"},
        {"  ```\n{\"a\":1}```\n", "{\"a\":1}"},
        {"```{\"a\":\"```\"}```", "{\"a\":\"```\"}"},
        {"```python\n{'a': True,}\n```", "{\"a\":true}"},
        {"{\"a\":\"one\ntwo\r\n\tthree\"}", "{\"a\":\"one\\ntwo\\r\\n\\tthree\"}"},
        {"{\\\"a\\\": \\\"b\\\"}", "{\"a\":\"b\"}"},
        {"{\\n  \\\"a\\\": [1, \\\"x\\\\ny\\\"]\\n}", "{\"a\":[1,\"x\\ny\"]}"},
        {"{\\\"a\\\": \\\"say \\\\\\\"hi\\\\\\\"\\\"}", "{\"a\":\"say \\\"hi\\\"\"}"},
        {"{\\\\\\\"a\\\\\\\": 1}", "{\"a\":1}"},
        {"{\"path\":\"a\",\"data\":[[\\\"x\\\",1]]}", "{\"path\":\"a\",\"data\":[[\"x\",1]]}"},
        {"{\"a\":1,\\\"b\\\":\\\"c d\\\"}", "{\"a\":1,\"b\":\"c d\"}"},
        {"```json\\n{\\\"a\\\": 1}\\n```", "{\"a\":1}"},
        {"{\\\"a\\\": \\\"b\\\",}", "{\"a\":\"b\"}"},
        {"{'a': True, 'b': None, 'c': [False, 1.5]}", "{\"a\":true,\"b\":null,\"c\":[false,1.5]}"},
        {"{'a': \"it's\", \"b\": 'say \"hi\"', 'c': 'it\\'s'}",
         "{\"a\":\"it's\",\"b\":\"say \\\"hi\\\"\",\"c\":\"it's\"}"},
        {"{'a': 'tab\\tline\\n\\\\ \\x41\\u00e9'}", "{\"a\":\"tab\\tline\\n\\\\ A\u00e9\"}"},
        {"{\"a\": True}", "{\"a\":true}"},
        {"'{\"a\": 1}'", "\"{\\\"a\\\": 1}\""},
        {"{\"a\": \"\\/x\"}", "{\"a\":\"/x\"}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json value, wanted = parsed(rows[i].json);
        if (read_spelled(str_of(rows[i].text), &value, NULL) != JSON_SPELLED)
            fail_msg("%s: not read", rows[i].text);
        if (!json_equal(&value, &wanted))
            fail_msg("%s: read as %s", rows[i].text, written(&value));
    }
}

TEST(rejects_what_is_no_json_or_has_two_readings)
{
    static const char *const texts[] = {
        "",
        "  ",
        "hello",
        "{a: 1}",
        "{,}",
        "[,]",
        "[1,,2]",
        "{\"a\":1,,}",
        "{\"a\" 1}",
        "{\"a\":1]",
        "}",
        "{\"a\":1}}",
        "{\"a\":1} {\"b\":2}",
        "{\"a\":1} and so on",
        "Here it is: {\"a\":1}",
        "{\"a\":1,\"a\":2}",
        "{'a':1,\"a\":2}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\q\"}",
        "{\"a\":\"\\'\"}",
        "{\"a\":01}",
        "{\"a\":1.2.3}",
        "{\"a\":NaN}",
        "{\"a\":undefined}",
        "{\"a\":TRUE}",
        "[Nones]",
        "{'a': 'it's'}",
        "{'a': 'b' 'c'}",
        "('a', 'b')",
        "{'a', 'b'}",
        "{\"a\": \"say \"hi\"\"}",
        "{\"a\": \"b, \"c\": \"d\"}",
        "{'a': '\\/x'}",
        "{\"a\": \"\\/x\", \"b\": None}",
        "{'a': '\\0'}",
        "{\\\"a\\\": \"b\"}",
        "{\\\"a\\\": \\\"\\\\d\\\"}",
        "{\\\"a\\\": \\\"x\\\\ny\\\"}", /* a line break, or a backslash and an n */
        "```json\n{\"a\":1}\n``` done",
        "``{\"a\":1}``",
        "```json\n```",
        "{\"a\":\"\x01\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\x0b 1}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct json value;
        if (read_spelled(str_of(texts[i]), &value, NULL) != JSON_NOT_JSON)
            fail_msg("%s: not rejected", texts[i]);
    }
}

TEST(tells_where_a_text_was_cut_off)
{
    static const struct {
        const char *text, *path;
        unsigned open;
        bool in_string;
        size_t chars;
    } rows[] = {
        {"{", "", 1, false, 1},
        {"[", "", 1, false, 1},
        {"\"abc", "", 0, true, 4},
        {"{\"a", "", 1, true, 3},
        {"{\"a\"", "a", 1, false, 4},
        {"{\"a\":", "a", 1, false, 5},
        {"{\"a\":tr", "a", 1, false, 7},
        {"{\"a\":12", "a", 1, false, 7},
        {"{\"a\":12,", "", 1, false, 8},
        {"{\"a\":12 ", "", 1, false, 8},
        {"{\"code\":\"print(", "code", 1, true, 15},
        {"{\"code\":\"\xc3\xa9\xe2\x82\xac", "code", 1, true, 11},
        {"{\"code\":\"a\\", "code", 1, true, 11},
        {"{\"code\":\"a\\u00", "code", 1, true, 14},
        {"{\"a\":{\"b\":1,\"c\":\"x", "a.c", 2, true, 18},
        {"{\"items\":[{\"name\":\"a\"},{\"name\":\"b", "items[1].name", 3, true, 33},
        {"{\"items\":[1,2", "items[1]", 2, false, 13},
        {"{\"items\":[1,", "items", 2, false, 12},
        {"{\"items\":[", "items", 2, false, 10},
        {"[[\"a\"],[\"b\",\"c", "[1][1]", 2, true, 14},
        {"{'a': 'b", "a", 1, true, 8},
        {"```json\n{\"a\":1", "a", 1, false, 14},
        {"```json\n{\"a\":1}", "", 0, false, 15},
        {"```json\n{\"a\":1}\n``", "", 0, false, 18},
        {"{\\\"code\\\": \\\"print(\\\\", "code", 1, true, 21},
        {"{\\\"a\\\": {\\\"b\\\": 1, ", "a", 2, false, 19},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json value;
        struct json_cut cut = {0};
        if (read_spelled(str_of(rows[i].text), &value, &cut) != JSON_CUT_OFF)
            fail_msg("%s: not cut off", rows[i].text);
        if (!str_is(cut.path, rows[i].path) || cut.open != rows[i].open ||
            cut.in_string != rows[i].in_string || cut.chars != rows[i].chars)
            fail_msg("%s: path '" STR_FMT "', %u open, in string %d, %zu characters", rows[i].text,
                     STR_ARG(cut.path), cut.open, cut.in_string, cut.chars);
    }
}

TEST(keeps_the_end_of_a_long_path)
{
    struct buf text = buf_in(arena);
    struct json value;
    struct json_cut cut;
    for (int i = 0; i < 40; i++)
        buf_text(&text, "{\"\xc3\xa9t\xc3\xa9\":");
    buf_text(&text, "{\"last\":\"");
    assert_int_equal(read_spelled(buf_view(&text), &value, &cut), JSON_CUT_OFF);
    assert_true(cut.path.len <= JSON_CUT_PATH_BYTES && cut.path.len > JSON_CUT_PATH_BYTES - 4);
    assert_memory_equal(cut.path.at + cut.path.len - 5, ".last", 5);
    assert_int_equal(cut.open, 41);
}

static struct str repeated(const char *part, size_t count, const char *end)
{
    struct buf text = buf_in(arena);
    for (size_t i = 0; i < count; i++)
        buf_text(&text, part);
    buf_text(&text, end);
    return buf_view(&text);
}

TEST(is_bounded)
{
    struct json value;
    struct str deep = repeated("[", JSON_MAX_DEPTH, "");
    assert_int_equal(read_spelled(deep, &value, NULL), JSON_CUT_OFF);
    assert_int_equal(read_spelled(repeated("[", JSON_MAX_DEPTH + 1, ""), &value, NULL), JSON_NOT_JSON);
    struct buf many = buf_in(arena);
    buf_str(&many, repeated("[", 1, ""));
    buf_str(&many, repeated("1,", JSON_MAX_NODES, "]"));
    assert_int_equal(read_spelled(buf_view(&many), &value, NULL), JSON_NOT_JSON);
    struct buf large = buf_in(arena);
    memset(buf_reserve(&large, JSON_SPELLED_MAX_BYTES + 1), ' ', JSON_SPELLED_MAX_BYTES + 1);
    large.len = JSON_SPELLED_MAX_BYTES + 1;
    memcpy(large.at, "[]", 2);
    assert_int_equal(json_read_spelled(arena, buf_view(&large), &value, NULL), JSON_NOT_JSON);
    large.len--;
    assert_int_equal(json_read_spelled(arena, buf_view(&large), &value, NULL), JSON_SPELLED);
}

/* Parsing: what is accepted and preserved, and every error with its place and message. */
#include "arena_case.h"
#include "golden.h"

static struct json_error fault;
static struct json value;

static enum err parse_str(struct str text)
{
    return json_parse(arena, text, NULL, &value, &fault);
}

static enum err parse(const char *text)
{
    return parse_str(str_of(text));
}

TEST(keeps_the_source_bytes)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "9223372036854775807",
        "18446744073709551616",
        "-9223372036854775808",
        "1.10",
        "1e400",
        "-1.5E+07",
        "\"\"",
        "\"plain\"",
        "\"caf\\u00e9 \\ud83d\\ude00 \\/ \\\\ \\\" \\b\\f\\n\\r\\t\"",
        "\"café 😀\"",
        "[]",
        "{}",
        "[1,[2,[3,{}]],[]]",
        "{\"z\":1,\"a\":{\"y\":[true,null],\"b\":\"x\"},\"m\":1.10}",
        "{ \"a\" :\t1 , \"b\" : [ 1 , 2 ] }",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct json v = parsed(texts[i]);
        assert_string_equal(written(&v), texts[i]);
    }
}

TEST(ignores_space_around_the_value)
{
    struct json v = parsed(" \t\r\n {\"a\": 1} \r\n\t ");
    assert_string_equal(written(&v), "{\"a\": 1}");
    v = parsed(" 42 ");
    assert_string_equal(written(&v), "42");
}

TEST(every_value_knows_its_bytes)
{
    struct json v = parsed("{ \"s\" : \"x\\u0041\" ,\n\"n\":[ 1 , 2.50 ,\"e\\\\\",{ } ,null,true , false ], "
                           "\"o\": { \"k\\n\" : -7 } }");
    assert_string_equal(written(json_get_text(&v, "s")), "\"x\\u0041\"");
    const struct json *n = json_get_text(&v, "n"), *o = json_get_text(&v, "o");
    assert_string_equal(written(n), "[ 1 , 2.50 ,\"e\\\\\",{ } ,null,true , false ]");
    static const char *const items[] = {"1", "2.50", "\"e\\\\\"", "{ }", "null", "true", "false"};
    assert_int_equal(n->len, 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(written(&n->items[i]), items[i]);
    assert_string_equal(written(o), "{ \"k\\n\" : -7 }");
    assert_string_equal(written(json_get_text(o, "k\n")), "-7");
}

TEST(decodes_strings)
{
    struct json v = parsed("\"\\u0000a\\u00e9\\u20ac\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\\"\\\\\"");
    static const char expected[] = "\0aé€😀/\b\f\n\r\t\"\\";
    assert_int_equal(v.len, sizeof(expected) - 1);
    assert_memory_equal(v.text, expected, v.len);
    const char *text = "{\"key\":\"no escapes\"}";
    v = *value_of_str(str_of(text));
    assert_ptr_equal(json_get_text(&v, "key")->text, text + 8); /* borrowed, not copied */
}

TEST(tells_whole_numbers)
{
    static const struct {
        const char *text;
        bool whole;
    } rows[] = {
        {"1", true},          {"1.0", true},     {"1e0", true},         {"10e-1", true},
        {"100.000e-2", true}, {"1e400", true},   {"1e999999999", true}, {"0e-999999999", true},
        {"-0", true},         {"1.5", false},    {"1e-1", false},       {"1e-99999999999999999999999", false},
        {"12.5e1", true},     {"1.25e1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(parsed(rows[i].text).integral, rows[i].whole);
}

struct fault_row {
    const char *text;
    enum json_error_code code;
    size_t offset;
};

static void check_rows(const struct fault_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (parse(rows[i].text) != ERR_PARSE)
            fail_msg("'%s' was taken", rows[i].text);
        if (fault.code != rows[i].code || fault.offset != rows[i].offset)
            fail_msg("'%s': code %d at byte %zu: %s", rows[i].text, fault.code, fault.offset, fault.text);
        golden_row(rows[i].text, fault.text);
    }
}

TEST(names_syntax_faults)
{
    static const struct fault_row rows[] = {
        {"[1,,2]", JSON_ERROR_SYNTAX, 3},
        {"[,1]", JSON_ERROR_SYNTAX, 1},
        {"[1,]", JSON_ERROR_SYNTAX, 3},
        {"{\"a\":}", JSON_ERROR_SYNTAX, 5},
        {"]", JSON_ERROR_SYNTAX, 0},
        {"{\"a\" 1}", JSON_ERROR_SYNTAX, 5},
        {"{\"a\"}", JSON_ERROR_SYNTAX, 4},
        {"{\"a\":1,}", JSON_ERROR_SYNTAX, 7},
        {"{1:2}", JSON_ERROR_SYNTAX, 1},
        {"{\"a\":1 \"b\":2}", JSON_ERROR_SYNTAX, 7},
        {"{\"a\":1]", JSON_ERROR_SYNTAX, 6},
        {"[1 2]", JSON_ERROR_SYNTAX, 3},
        {"[1}", JSON_ERROR_SYNTAX, 2},
        {"\"abc", JSON_ERROR_SYNTAX, 4},
        {"{\"a\":[1,2", JSON_ERROR_SYNTAX, 9},
        {"{\"a\":", JSON_ERROR_SYNTAX, 5},
        {"tru", JSON_ERROR_SYNTAX, 3},
        {"[trux]", JSON_ERROR_SYNTAX, 4},
        {"True", JSON_ERROR_SYNTAX, 0},
        {"['a']", JSON_ERROR_SYNTAX, 1},
        {"[NaN]", JSON_ERROR_SYNTAX, 1},
        {"[1.]", JSON_ERROR_SYNTAX, 3},
        {"[-]", JSON_ERROR_SYNTAX, 2},
        {"[-Infinity]", JSON_ERROR_SYNTAX, 2},
        {"[1e]", JSON_ERROR_SYNTAX, 3},
        {"[1e+]", JSON_ERROR_SYNTAX, 4},
        {"[01]", JSON_ERROR_SYNTAX, 2},
        {"[+1]", JSON_ERROR_SYNTAX, 1},
        {"[.5]", JSON_ERROR_SYNTAX, 1},
        {"[0x1]", JSON_ERROR_SYNTAX, 2},
        {"\"a\\x\"", JSON_ERROR_SYNTAX, 3},
        {"\"\\u12g4\"", JSON_ERROR_SYNTAX, 5},
        {"\"\\u12\"", JSON_ERROR_SYNTAX, 5},
        {"\"a\tb\"", JSON_ERROR_SYNTAX, 2},
        {"\"a\nb\"", JSON_ERROR_SYNTAX, 2},
        {"[/* no */]", JSON_ERROR_SYNTAX, 1},
        {"[1,\v2]", JSON_ERROR_SYNTAX, 3},
        {"\f[1]", JSON_ERROR_SYNTAX, 0},
        {"\xEF\xBB\xBF{}", JSON_ERROR_SYNTAX, 0},
        {"\x01", JSON_ERROR_SYNTAX, 0},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
    golden_check_rows("protocol", "JSON: syntax errors");
    assert_false(fault.soft);
    assert_int_equal(value.type, JSON_NULL);
}

TEST(names_other_faults)
{
    static const struct fault_row rows[] = {
        {"", JSON_ERROR_EMPTY, 0},
        {" \n\t", JSON_ERROR_EMPTY, 3},
        {"{}{}", JSON_ERROR_TRAILING, 2},
        {"{} x", JSON_ERROR_TRAILING, 3},
        {"{}\"abc", JSON_ERROR_TRAILING, 2},
        {"{}]", JSON_ERROR_TRAILING, 2},
        {"1 2", JSON_ERROR_TRAILING, 2},
        {"01", JSON_ERROR_TRAILING, 1},
        {"null,", JSON_ERROR_TRAILING, 4},
        {"{} \"\\u12", JSON_ERROR_TRAILING, 3},
        {"\"\xff\"", JSON_ERROR_UTF8, 1},
        {"\"\xc0\xaf\"", JSON_ERROR_UTF8, 1},             /* overlong */
        {"\"\xe0\x80\xaf\"", JSON_ERROR_UTF8, 1},         /* overlong */
        {"\"\xf0\x80\x80\xaf\"", JSON_ERROR_UTF8, 1},     /* overlong */
        {"\"ab\xed\xa0\x80\"", JSON_ERROR_UTF8, 3},       /* a surrogate */
        {"\"\xf4\x90\x80\x80\"", JSON_ERROR_UTF8, 1},     /* past U+10FFFF */
        {"\"\xf8\x88\x80\x80\x80\"", JSON_ERROR_UTF8, 1}, /* five bytes */
        {"\"\x80\"", JSON_ERROR_UTF8, 1},                 /* no start */
        {"\"\xe2\x82\"", JSON_ERROR_UTF8, 1},             /* cut short */
        {"\"\\\xff\"", JSON_ERROR_UTF8, 2},               /* after a broken escape */
        {"{}\xc3", JSON_ERROR_UTF8, 2},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
    golden_check_rows("protocol", "JSON: other errors");
}

TEST(finds_bad_utf8_at_any_offset)
{
    char text[64];
    for (size_t at = 1; at < 40; at++) {
        memset(text, 'x', sizeof(text));
        text[0] = text[41] = '"';
        text[at] = (char)0xC3;
        assert_int_equal(parse_str((struct str){text, 42}), ERR_PARSE);
        assert_int_equal(fault.code, JSON_ERROR_UTF8);
        assert_int_equal(fault.offset, at);
        text[at + 1] = (char)0xA9;
        assert_int_equal(parse_str((struct str){text, 42}), at < 40 ? OK : ERR_PARSE);
    }
}

TEST(builds_the_value_of_duplicate_keys)
{
    assert_int_equal(parse("{\"id\":7,\"params\":{\"arguments\":{\"limit\":1,\"q\":\"x\",\"limit\":2}}}"),
                     ERR_PARSE);
    assert_int_equal(fault.code, JSON_ERROR_DUPLICATE_KEY);
    assert_true(fault.soft);
    assert_int_equal(fault.offset, 49);
    golden_check("protocol", "JSON: a duplicate key", fault.text);
    assert_string_equal(written(json_get_text(&value, "id")), "7");
    assert_string_equal(written(&value), "{\"id\":7,\"params\":{\"arguments\":{\"limit\":2,\"q\":\"x\"}}}");
}

TEST(names_the_path_of_duplicate_keys)
{
    static const char *const rows[][1] = {
        {"{\"a\":1,\"a\":1}"},
        {"[{\"a\":1,\"a\":1}]"},
        {"{\"x\":[0,[1,{\"a\":1,\"a\":1}]]}"},
        {"{\"x\":{},\"y\":{\"k\":null,\"a\":[{\"b\":0},{\"c\":1,\"c\":{}}]}}"},
        {"{\"a\\u0062\":1,\"\\u0061b\":2}"},
        {"{\"\":1,\"\":2}"},
        {"{\"a\\n\\u001b\":1,\"a\\n\\u001b\":2}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i][0]), ERR_PARSE);
        assert_int_equal(fault.code, JSON_ERROR_DUPLICATE_KEY);
        golden_row(rows[i][0], fault.text);
    }
    golden_check_rows("protocol", "JSON: the path of a duplicate key");
}

TEST(cuts_a_long_path_from_the_left)
{
    struct buf text = buf_in(arena);
    for (int i = 0; i < 100; i++)
        buf_text(&text, "{\"ключ\":");
    buf_text(&text, "{\"a\":1,\"a\":2}");
    for (int i = 0; i < 100; i++)
        buf_byte(&text, '}');
    assert_int_equal(parse_str(buf_view(&text)), ERR_PARSE);
    golden_check("protocol", "JSON: a long path of a duplicate key is cut", fault.text);
    struct buf quoted = buf_in(arena);
    json_write_string(&quoted, str_of(fault.text));
    assert_null(memmem(quoted.at, quoted.len, "\xEF\xBF\xBD", 3)); /* still UTF-8 */
}

TEST(finds_duplicates_among_many_keys)
{
    struct buf text = buf_in(arena);
    buf_byte(&text, '{');
    for (int i = 0; i < 500; i++)
        buf_printf(&text, "\"key%d\":%d,", i, i);
    buf_text(&text, "\"key250\":-1}");
    assert_int_equal(parse_str(buf_view(&text)), ERR_PARSE);
    assert_int_equal(fault.code, JSON_ERROR_DUPLICATE_KEY);
    assert_int_equal(value.len, 500);
    for (int i = 0; i < 500; i++) {
        int64_t n;
        assert_true(json_int(json_get(&value, arena_printf(arena, "key%d", i)), &n));
        assert_int_equal(n, i == 250 ? -1 : i);
    }
}

TEST(many_duplicates_cost_no_more_than_one)
{
    struct buf text = buf_in(arena);
    for (int i = 0; i < 120; i++)
        buf_text(&text, "{\"a key of some length, as a path is made of them\":");
    buf_text(&text, "[{\"a\":1,\"a\":2}");
    for (int i = 0; i < 20000; i++)
        buf_text(&text, ",{\"a\":1,\"a\":2}");
    buf_byte(&text, ']');
    for (int i = 0; i < 120; i++)
        buf_byte(&text, '}');
    size_t before = arena_bytes(arena);
    assert_int_equal(parse_str(buf_view(&text)), ERR_PARSE);
    assert_int_equal(fault.code, JSON_ERROR_DUPLICATE_KEY);
    assert_true(arena_bytes(arena) - before < 64 << 20);
}

TEST(replaces_lone_surrogates)
{
    static const struct {
        const char *text, *becomes;
        size_t offset;
    } rows[] = {
        {"\"\\ud800\"", "\"\uFFFD\"", 1},
        {"\"\\udc00x\"", "\"\uFFFDx\"", 1},
        {"\"\\ud800\\u0041\"", "\"\uFFFDA\"", 1},
        {"\"\\ud800\\ud800\\udc00\"", "\"\uFFFD𐀀\"", 1},
        {"\"\\ud83d\\ude00\\ud83d\"", "\"😀\uFFFD\"", 13},
        {"[\"\\\\ud800\",\"\\uDBFF\"]", "[\"\\\\ud800\",\"\uFFFD\"]", 12},
        {"{\"\\udfff\":{\"a\":1}}", "{\"\uFFFD\":{\"a\":1}}", 2},
        {"\"\\ud800", NULL, 0},
    };
    for (size_t i = 0; rows[i].becomes; i++) {
        assert_int_equal(parse(rows[i].text), ERR_PARSE);
        assert_int_equal(fault.code, JSON_ERROR_SURROGATE);
        assert_true(fault.soft);
        assert_int_equal(fault.offset, rows[i].offset);
        assert_string_equal(written(&value), rows[i].becomes);
    }
    assert_int_equal(parse("\"\\ud800"), ERR_PARSE);
    assert_int_equal(fault.code, JSON_ERROR_SYNTAX); /* a hard fault hides a soft one */
    assert_false(fault.soft);
}

static struct str nested(uint32_t depth, const char *open, const char *inside, const char *close)
{
    struct buf text = buf_in(arena);
    for (uint32_t i = 0; i < depth; i++)
        buf_text(&text, open);
    buf_text(&text, inside);
    for (uint32_t i = 0; i < depth; i++)
        buf_text(&text, close);
    return buf_view(&text);
}

TEST(bounds_depth)
{
    assert_int_equal(parse_str(nested(JSON_MAX_DEPTH, "[", "", "]")), OK);
    assert_int_equal(parse_str(nested(JSON_MAX_DEPTH, "{\"a\":", "1", "}")), OK);
    assert_int_equal(parse_str(nested(JSON_MAX_DEPTH + 1, "[", "", "]")), ERR_LIMIT);
    assert_int_equal(fault.code, JSON_ERROR_DEPTH);
    assert_int_equal(fault.offset, JSON_MAX_DEPTH);
    golden_check("protocol", "JSON: too deep", fault.text);
    assert_int_equal(parse_str(nested(JSON_MAX_DEPTH + 1, "{\"a\":", "1", "}")), ERR_LIMIT);
    assert_int_equal(fault.offset, 5 * JSON_MAX_DEPTH);
    const struct json_limits two = {.depth = 2};
    assert_int_equal(json_parse(arena, str_of("[[1]]"), &two, &value, &fault), OK);
    assert_int_equal(json_parse(arena, str_of("[[[1]]]"), &two, &value, &fault), ERR_LIMIT);
}

TEST(stops_deep_bombs_early)
{
    struct str bomb = nested(500000, "[", "", "");
    size_t before = arena_bytes(arena);
    assert_int_equal(parse_str(bomb), ERR_LIMIT);
    assert_int_equal(fault.code, JSON_ERROR_DEPTH);
    assert_true(arena_bytes(arena) - before < 65536);
    assert_int_equal(parse_str(nested(500000, "{\"a\":", "", "")), ERR_LIMIT);
}

TEST(bounds_nodes)
{
    struct buf text = buf_in(arena);
    buf_byte(&text, '[');
    for (uint32_t i = 0; i < JSON_MAX_NODES - 2; i++)
        buf_text(&text, "0,");
    buf_text(&text, "0]");
    assert_int_equal(parse_str(buf_view(&text)), OK); /* the array is a node too */
    assert_int_equal(value.len, JSON_MAX_NODES - 1);
    text.len--;
    buf_text(&text, ",0]");
    assert_int_equal(parse_str(buf_view(&text)), ERR_LIMIT);
    assert_int_equal(fault.code, JSON_ERROR_NODES);
    golden_check("protocol", "JSON: too many values", fault.text);
    const struct json_limits three = {.nodes = 3};
    assert_int_equal(json_parse(arena, str_of("{\"a\":[1]}"), &three, &value, &fault), OK);
    assert_int_equal(json_parse(arena, str_of("{\"a\":[1,2]}"), &three, &value, &fault), ERR_LIMIT);
}

TEST(takes_a_string_of_a_megabyte)
{
    struct buf text = buf_in(arena);
    buf_text(&text, "{\"s\":\"");
    for (int i = 0; i < 1 << 20; i++)
        buf_byte(&text, 'x');
    size_t plain = text.len;
    buf_text(&text, "\"}");
    struct json v = *value_of_str(buf_view(&text));
    assert_int_equal(json_get_text(&v, "s")->len, 1 << 20);
    text.len = plain;
    buf_text(&text, "\\n\"}");
    v = *value_of_str(buf_view(&text));
    assert_int_equal(json_get_text(&v, "s")->len, (1 << 20) + 1);
    assert_int_equal(json_get_text(&v, "s")->text[1 << 20], '\n');
}

TEST(takes_a_number_of_a_megabyte)
{
    struct buf text = buf_in(arena);
    for (int i = 0; i < 1 << 20; i++)
        buf_byte(&text, '7');
    struct json v = *value_of_str(buf_view(&text));
    double n;
    assert_int_equal(v.len, 1 << 20);
    assert_true(v.integral && json_double(&v, &n) && n > 1e308);
}

/* What a terminal, a log and a line of feedback never get raw. */
#include "unit.h"
#include "base/arena.h"
#include "base/printable.h"

static void expect(const char *given, const char *expected)
{
    struct buf out = {0};
    printable_write(&out, str_of(given));
    buf_byte(&out, '\0');
    assert_string_equal(out.at, expected);
    buf_clear(&out);
}

TEST(plain_text_and_emoji_stay)
{
    expect("Zürich, 東京, \U0001F468\u200D\U0001F469", "Zürich, 東京, \U0001F468\u200D\U0001F469");
    expect("", "");
}

TEST(escapes_are_shown)
{
    expect("a\033[2Jb", "a\\x1b[2Jb");
    expect("a\rb\177", "a\\x0db\\x7f");
    expect("\xc2\x9b"
           "31m",
           "\\u{9b}31m");
    expect("one\ntwo\tthree", "one two three");
}

TEST(hidden_and_reordering_characters_are_shown)
{
    expect("\u202egpj.exe", "\\u{202e}gpj.exe");
    expect("\u2066x\u2069\u061c", "\\u{2066}x\\u{2069}\\u{61c}");
    expect("a\U000E0041\U000E01EF", "a\\u{e0041}\\u{e01ef}");
    expect("\ufeff\u200b\u2028", "\\u{feff}\\u{200b}\\u{2028}");
}

TEST(bytes_that_are_no_utf8_are_shown)
{
    expect("a\xff\xc2", "a\\xff\\xc2");
    expect("\x9b"
           "31m",
           "\\x9b31m");
}

TEST(a_joiner_stays_where_a_script_needs_it)
{
    expect("می\u200cخواهم, क्\u200dष, ❤\ufe0f\u200d\U0001F525",
           "می\u200cخواهم, क्\u200dष, ❤\ufe0f\u200d\U0001F525");
    expect("pass\u200dword", "pass\\u{200d}word");
    expect("\u200dx", "\\u{200d}x");
    expect("é\u200d\u200c", "é\u200d\\u{200c}");
    expect("\u2009\u200a", "\u2009\u200a"); /* spaces are no line ends, although their low bytes are */
}

TEST(json_text_stays_json)
{
    struct buf out = {0};
    printable_write_json(&out, str_of("{\"a\":\n\"\u202e\U000E0041\xc2\x85\"}"));
    assert_true(str_is(buf_view(&out), "{\"a\": \"\\u202e\\udb40\\udc41\\u0085\"}"));
    buf_clear(&out);
}

TEST(hidden_characters_are_counted_and_removed)
{
    struct buf out = {0};
    struct str text = str_of("one\n\ttwo\u200b\U000E0041\r\n👩\u200d💻\xff");
    assert_int_equal(printable_count_hidden(text), 2);
    printable_strip(&out, text);
    assert_true(str_is(buf_view(&out), "one\n\ttwo\r\n👩\u200d💻\xff"));
    buf_clear(&out);
}

TEST(a_plain_text_is_not_copied)
{
    struct arena *arena = arena_new();
    struct str plain = str_of("plain – 東京"), not_plain = str_of("a\nb");
    assert_ptr_equal(printable_line(arena, plain).at, plain.at);
    assert_true(str_is(printable_line(arena, not_plain), "a b"));
    arena_free(arena);
}

static void expect_visible(const char *given, const char *expected, const char *kind)
{
    struct buf out = {0};
    const char *found = printable_find_invisible(str_of(given));
    printable_strip_invisible(&out, str_of(given));
    assert_true(str_is(buf_view(&out), expected));
    if (kind)
        assert_string_equal(found, kind);
    else
        assert_null(found);
    buf_clear(&out);
}

TEST(data_loses_only_what_is_invisible)
{
    expect_visible("a\u200bb\ufeff", "ab", "zero_width");
    expect_visible("\u202egpj\u2069", "gpj", "bidirectional");
    expect_visible("x\U000E0041\U000E0042", "x", "tags");
    expect_visible("pass\u200dword", "password", "zero_width");
    expect_visible("\033[31mred\033[0m\u2028so\u00adft \u200fשלום",
                   "\033[31mred\033[0m\u2028so\u00adft \u200fשלום", NULL);
    expect_visible("می\u200cخواهم क्\u200dष 👩\u200d💻 ❤\ufe0f\u200d🔥",
                   "می\u200cخواهم क्\u200dष 👩\u200d💻 ❤\ufe0f\u200d🔥", NULL);
    const char *scotland = "🏴\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F";
    expect_visible(scotland, scotland, NULL);
    expect_visible("🏴\U000E0067 no flag", "🏴 no flag", "tags");
}

TEST(a_cut_never_splits_a_character)
{
    struct buf out = {0};
    printable_write_cut(&out, str_of("aü東"), 4);
    assert_true(str_is(buf_view(&out), "aü…"));
    buf_clear(&out);
}

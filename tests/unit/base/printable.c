/* What a terminal never gets raw. */
#include "base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(const char *given, const char *expected)
{
    struct buf out = {0};
    printable_write(&out, str_of(given));
    buf_byte(&out, '\0');
    assert_string_equal(out.at, expected);
    buf_clear(&out);
}

static void plain_text_and_emoji_stay(void **state)
{
    (void)state;
    expect("Zürich, 東京, \U0001F468\u200D\U0001F469", "Zürich, 東京, \U0001F468\u200D\U0001F469");
    expect("", "");
}

static void escapes_are_shown(void **state)
{
    (void)state;
    expect("a\033[2Jb", "a\\x1b[2Jb");
    expect("a\rb\177", "a\\x0db\\x7f");
    expect("\xc2\x9b"
           "31m",
           "\\u{9b}31m");
    expect("one\ntwo\tthree", "one two three");
}

static void hidden_and_reordering_characters_are_shown(void **state)
{
    (void)state;
    expect("\u202egpj.exe", "\\u{202e}gpj.exe");
    expect("\u2066x\u2069\u061c", "\\u{2066}x\\u{2069}\\u{61c}");
    expect("a\U000E0041\U000E01EF", "a\\u{e0041}\\u{e01ef}");
    expect("\ufeff\u200b\u2028", "\\u{feff}\\u{200b}\\u{2028}");
}

static void bytes_that_are_no_utf8_are_shown(void **state)
{
    (void)state;
    expect("a\xff\xc2", "a\\xff\\xc2");
    expect("\x9b"
           "31m",
           "\\x9b31m");
}

static void a_cut_never_splits_a_character(void **state)
{
    (void)state;
    struct buf out = {0};
    printable_write_cut(&out, str_of("aü東"), 4);
    assert_true(str_is(buf_view(&out), "aü…"));
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_and_emoji_stay),
        cmocka_unit_test(escapes_are_shown),
        cmocka_unit_test(hidden_and_reordering_characters_are_shown),
        cmocka_unit_test(bytes_that_are_no_utf8_are_shown),
        cmocka_unit_test(a_cut_never_splits_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

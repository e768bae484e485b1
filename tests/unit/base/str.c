/* Comparing, cutting, searching and globbing strings. */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct str s(const char *text)
{
    return str_of(text);
}

static void compares_by_bytes(void **state)
{
    (void)state;
    assert_true(str_eq(STR_NONE, s("")));
    assert_true(str_is(s("abc"), "abc"));
    assert_false(str_is(s("abc"), "ab"));
    assert_true(str_starts(s("abc"), "ab") && str_starts(s("abc"), "") && !str_starts(s("ab"), "abc"));
    assert_int_equal(str_of(NULL).len, 0);
    assert_int_equal(str_cmp(s("a"), s("b")), -1);
    assert_true(str_cmp(s("ab"), s("a")) > 0 && str_cmp(s("a"), s("ab")) < 0);
    assert_int_equal(str_cmp(STR_NONE, s("")), 0);
    assert_true(str_cmp(s("z"), s("é")) < 0); /* bytes are unsigned */
    assert_true(str_eq((struct str){"a\0b", 3}, (struct str){"a\0b", 3}));
    assert_false(str_eq((struct str){"a\0b", 3}, (struct str){"a\0c", 3}));
    for (size_t len = 1; len <= 40; len++) /* words of any length, which differ in any place */
        for (size_t at = 0; at < len; at++) {
            char a[40], b[40];
            memset(a, 'x', len);
            memcpy(b, a, len);
            assert_true(str_eq((struct str){a, len}, (struct str){b, len}));
            b[at] = 'y';
            assert_false(str_eq((struct str){a, len}, (struct str){b, len}));
            assert_true(str_cmp((struct str){a, len}, (struct str){b, len}) < 0);
        }
}

static void cuts_between_characters(void **state)
{
    (void)state;
    static const char text[] = "aé€😀";
    static const size_t lengths[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (size_t max = 0; max < 12; max++)
        assert_int_equal(str_cut(s(text), max).len, lengths[max]);
    assert_int_equal(str_from(s("abc"), 1).len, 2);
    assert_int_equal(str_from(s("abc"), 3).len, 0);
    assert_int_equal(str_from(s("abc"), 99).len, 0);
}

static void trims_space(void **state)
{
    (void)state;
    assert_true(str_is(str_trim(s(" \t\r\n a b \n")), "a b"));
    assert_true(str_is(str_trim(s("a")), "a"));
    assert_int_equal(str_trim(s(" \n ")).len, 0);
    assert_int_equal(str_trim(STR_NONE).len, 0);
}

static void searches_without_case(void **state)
{
    (void)state;
    assert_true(str_contains_nocase(s("Temporarily UNAVAILABLE now"), s("unavailable")));
    assert_true(str_contains_nocase(s("x"), s("")));
    assert_true(str_contains_nocase(s("aab"), s("AB")));
    assert_false(str_contains_nocase(s("ab"), s("abc")));
    assert_false(str_contains_nocase(s("[x"), s("{x"))); /* not letters, though 0x20 apart */
}

static void matches_globs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {"get_*", "get_events", true},
        {"get_*", "get_", true},
        {"get_*", "get", false},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"?", "a", true},
        {"?", "", false},
        {"?", "ab", false},
        {"*_*", "a_b", true},
        {"*_*", "ab", false},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXbYbZ", false},
        {"**", "x", true},
        {"*a", "aaa", true},
        {"a?c", "abc", true},
        {"a.c", "abc", false},
        {"[a]", "a", false},
        {"*.*", "files.read", true},
        {"a*", "b", false},
        {"*ab", "aab", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (str_glob(s(rows[i].pattern), s(rows[i].text)) != rows[i].matches)
            fail_msg("%s against %s", rows[i].pattern, rows[i].text);
}

/* 64 stars against 4096 bytes that almost match: backtracking would not end. */
static void globs_take_linear_time(void **state)
{
    (void)state;
    char pattern[129], text[4097];
    for (int i = 0; i < 64; i++)
        memcpy(pattern + 2 * i, "*a", 2);
    pattern[127] = 'b';
    memset(text, 'a', 4096);
    assert_false(str_glob((struct str){pattern, 128}, (struct str){text, 4096}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_by_bytes), cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(trims_space),       cmocka_unit_test(searches_without_case),
        cmocka_unit_test(matches_globs),     cmocka_unit_test(globs_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

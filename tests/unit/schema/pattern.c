/* Regular expressions of ECMA-262, refused syntax, and common deviations. */
#include "schema/schema_support.h"

#include "schema/format.h"

static enum pattern_result match(const char *expression, const char *subject)
{
    struct pattern *pattern;
    struct why why;
    if (pattern_compile(arena, str_of(expression), &pattern, &why) != OK)
        fail_msg("%s", why.text);
    uint32_t steps = SCHEMA_MAX_STEPS;
    return pattern_match(pattern, str_of(subject), &steps);
}

TEST(matches_as_ecma_262)
{
    static const struct {
        const char *expression, *subject;
        bool matches;
    } table[] = {
        {"b", "abc", true},
        {"^b", "abc", false},
        {"^abc$", "abc\n", false},
        {"^\\d+$", "12", true},
        {"^\\d+$", "\xE0\xA7\xAA", false},
        {"^\\w+$", "é", false},
        {"^\\s$", "\xEF\xBB\xBF", true},
        {"^[\\s]$", "\xC2\xA0", true},
        {"^\\S$", "\xC2\xA0", false},
        {"^[^\\S]$", " ", true},
        {"^.$", "\xE2\x80\xA8", false},
        {"^.$", "\xF0\x9F\x90\xB2", true},
        {"^\\u{1F432}$", "\xF0\x9F\x90\xB2", true},
        {"^\\uD83D\\uDC32$", "\xF0\x9F\x90\xB2", true},
        {"^\\x41\\u0042$", "AB", true},
        {"^\\cJ$", "\n", true},
        {"^\\p{Letter}$", "é", true},
        {"^\\p{Script=Greek}$", "π", true},
        {"^\\P{Lu}$", "a", true},
        {"^[\\w-.]+$", "a-b.c", true},
        {"^[a-\\d]+$", "a-1", true},
        {"^[[:alpha:]]$", ":]", true},
        {"^a{,2}$", "a{,2}", true},
        {"^[^]$", "x", true},
        {"[]", "x", false},
        {"^(?<n>a)\\k<n>$", "aa", true},
        {"^(a)\\1$", "aa", true},
        {"^(?:(a)|b)\\1$", "b", true},
        {"^(?!a)b", "b", true},
        {"(?<=a)b", "ab", true},
        {"^\\/\\-\\_\\\"$", "/-_\"", true},
        {"^[+-]?[0-9]{1,3}$", "-12", true},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if ((match(table[i].expression, table[i].subject) == PATTERN_MATCH) != table[i].matches)
            fail_msg("%s against %s", table[i].expression, table[i].subject);
}

TEST(syntax_of_other_dialects_is_refused)
{
    static const char *const table[] = {
        "(*UTF)a", "(?i)a", "(?P<n>a)", "(?#x)",     "a++", "a*+",  "\\a",   "\\Aa", "a\\z",
        "\\K",     "\\R",   "\\Qa",     "(",         ")",   "[",    "*",     "a**",  "a{2}{3}",
        "\\u12",   "\\x1",  "\\pL",     "\\p{Nope}", "\\",  "\\01", "(?>a)", "\\h",  "\\ud800",
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct pattern *pattern;
        struct why why = {""};
        if (pattern_compile(arena, str_of(table[i]), &pattern, &why) != ERR_SCHEMA || !why.text[0])
            fail_msg("%s is taken", table[i]);
    }
}

TEST(work_is_bounded)
{
    char *long_one = arena_alloc(arena, PATTERN_SUBJECT_MAX_BYTES + 2);
    memset(long_one, 'a', PATTERN_SUBJECT_MAX_BYTES + 1);
    long_one[PATTERN_SUBJECT_MAX_BYTES + 1] = '\0';
    assert_int_equal(match("a", long_one), PATTERN_TOO_COMPLEX);
    long_one[PATTERN_SUBJECT_MAX_BYTES] = '\0';
    assert_int_equal(match("^a+$", long_one), PATTERN_MATCH);
    assert_int_equal(match("^(a|aa)+b$", long_one), PATTERN_TOO_COMPLEX);
}

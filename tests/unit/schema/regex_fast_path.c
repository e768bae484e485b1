/* The fast path agrees with PCRE2, for random expressions on random strings. */
#include "schema/schema_support.h"

#include "schema/format.h"

#define SUBJECTS 40u /* matched with each expression */

static uint32_t seed = 12345;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static struct pattern *compiled(struct str expression)
{
    struct pattern *pattern;
    struct why why;
    if (pattern_compile(arena, expression, &pattern, &why) != OK)
        fail_msg("%s", why.text);
    return pattern;
}

/* The fast path takes no steps off; PCRE2 takes some of each match. */
TEST(common_expressions_take_the_fast_path)
{
    static const char *const table[] = {"^[A-Z]{3}$", "^[a-z][a-z0-9_]{0,62}$",  "^[A-Z]{2}-[0-9]{4,8}$",
                                        "^",          "^[A-Za-z_]+/[A-Za-z_]+$", "^[A-Za-z0-9-]+$",
                                        "^abc",       "^\\d{4}-\\d{2}$",         "^[-_.a-z\\]]*$",
                                        "^$",         "^[+-]?[0-9]{1,3}$",       "^\\w+@\\w+\\.com$"};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        uint32_t steps = SCHEMA_MAX_STEPS;
        pattern_match(compiled(str_of(table[i])), STR_LIT("abc_2026-03-21@example.com"), &steps);
        assert_int_equal(steps, SCHEMA_MAX_STEPS);
    }
}

/* ---- the same as PCRE2 ---- */

static struct str random_expression(void)
{
    static const char *const sets[] = {"a",     "b",    "[ab]",  "[a-c]", "\\d",    "\\w",
                                       "-",     "[a-]", "[^a]",  ".",     "[\\d-]", "\\.",
                                       "(a|b)", "é",    "[-.b]", "\\s",   "[b-d]",  "[--a]"};
    static const char *const counts[] = {"",    "",      "",     "?",     "*",   "+",
                                         "{2}", "{0,2}", "{1,}", "{2,3}", "{0}", "+?"};
    struct buf out = buf_in(arena);
    buf_text(&out, below(8) ? "^" : "");
    for (uint32_t n = below(5); n > 0; n--) {
        buf_text(&out, sets[below(sizeof(sets) / sizeof(*sets))]);
        buf_text(&out, counts[below(sizeof(counts) / sizeof(*counts))]);
    }
    buf_text(&out, below(4) ? "$" : "");
    return buf_view(&out);
}

static struct str random_subject(void)
{
    static const char *const pieces[] = {"a", "b", "c", "d", "a", "b", "-", ".", "1", "_", "é", "\n"};
    struct buf out = buf_in(arena);
    for (uint32_t n = below(7); n > 0; n--)
        buf_text(&out, pieces[below(sizeof(pieces) / sizeof(*pieces))]);
    return buf_view(&out);
}

TEST(agrees_with_pcre2)
{
    const char *wanted = getenv("PLAIN_EXPRESSIONS");
    uint32_t count = wanted ? (uint32_t)strtoul(wanted, NULL, 10) : 3000, fit = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct str expression = random_expression();
        struct pattern *ours = compiled(expression);
        /* A group disables the fast path. */
        struct pattern *theirs = compiled(arena_printf(arena, "(?:" STR_FMT ")", STR_ARG(expression)));
        for (uint32_t k = 0; k < SUBJECTS; k++) {
            struct str subject = random_subject();
            uint32_t steps = SCHEMA_MAX_STEPS;
            enum pattern_result answer = pattern_match(ours, subject, &steps);
            if (answer != pattern_match(theirs, subject, &steps))
                fail_msg(STR_FMT " against '" STR_FMT "'", STR_ARG(expression), STR_ARG(subject));
            fit += answer == PATTERN_MATCH;
        }
    }
    assert_true(fit > count); /* enough of both kinds were tried */
}

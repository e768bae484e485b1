/* toolgate top: the figures of two answers, the frame, and names that would command the terminal. */
#include "golden.h"

#include "base/arena.h"
#include "cli/term.h"
#include "top/top_frame.h"
#include "json/parse.h"

static const struct json *parse(struct arena *arena, const char *text)
{
    struct json *value = ARENA_NEW(arena, struct json);
    struct json_error fault;
    assert_int_equal(json_parse(arena, str_of(text), NULL, value, &fault), OK);
    return value;
}

static struct top_snapshot snapshot(const char *status, const char *sessions, int64_t at_us)
{
    struct arena *arena = arena_new();
    return (struct top_snapshot){arena, parse(arena, status), sessions ? parse(arena, sessions) : NULL,
                                 at_us};
}

#define BEFORE                                                                                               \
    "{\"version\":\"1\",\"pid\":7,\"started_ms\":1,\"uptime_s\":100,\"counters\":{\"verdicts\":{\"pass\":"   \
    "100,"                                                                                                   \
    "\"repair\":10},\"chains\":{\"success\":3,\"exhausted\":1}},\"tools\":[{\"tool\":\"a\",\"calls\":90,"    \
    "\"refused\":0},{\"tool\":\"b\",\"calls\":20,\"refused\":10}]}"
#define NOW                                                                                                  \
    "{\"version\":\"1\",\"pid\":7,\"started_ms\":1,\"uptime_s\":102,\"socket\":\"/s\",\"generation\":{"      \
    "\"number\":2,\"tools\":3},\"ledger\":{\"engine\":\"local\",\"sessions\":4},\"reload\":{\"ok\":false,"   \
    "\"errors\":\"a.lua:1: \\u001b[31mred\"},\"counters\":{\"verdicts\":{\"pass\":120,\"repair\":14},"       \
    "\"chains\":{\"success\":3,\"exhausted\":1}},\"tools\":[{\"tool\":\"a\",\"calls\":108,\"refused\":0},"   \
    "{\"tool\":\"b\",\"calls\":26,\"refused\":14,\"codes\":{\"missing\":3,\"enum\":9,\"type\":1,"            \
    "\"maximum\":2},"                                                                                        \
    "\"chains\":{\"success\":3,\"exhausted\":1}},{\"tool\":\"never\",\"calls\":0,\"refused\":0}]}"
#define SESSIONS                                                                                             \
    "{\"in_loop\":1,\"sessions\":[{\"session\":\"chat\\u001b]0;x\\u0007\",\"loop\":{\"tool\":\"b\","         \
    "\"times\":5,"                                                                                           \
    "\"code\":\"loop\"}}]}"

static void test_rates_are_differences_over_time(void **state)
{
    (void)state;
    struct top_snapshot before = snapshot(BEFORE, NULL, 1000000), now = snapshot(NOW, NULL, 3000000);
    struct top_figures f;
    top_figures_compute(&before, &now, TOP_BY_RATE, &f);
    assert_float_equal(f.calls_s, 12, 1e-9);
    assert_float_equal(f.verdicts[1].per_s, 2, 1e-9);
    assert_int_equal(f.chains, 4);
    assert_int_equal(f.recovered, 3);
    assert_int_equal(f.tool_count, 2);
    assert_true(str_is(f.tools[0].name, "a"));
    assert_float_equal(f.tools[0].calls_s, 9, 1e-9);
    assert_float_equal(f.tools[1].refused_s, 2, 1e-9);
    assert_float_equal(f.tools[1].recovered_share, 0.75, 1e-9);
    assert_true(f.tools[0].recovered_share < 0);
    assert_true(str_is(f.tools[1].codes[0].code, "enum"));
    assert_true(str_is(f.tools[1].codes[1].code, "missing"));
    assert_true(str_is(f.tools[1].codes[2].code, "maximum"));
    top_figures_compute(&before, &now, TOP_BY_REFUSALS, &f);
    assert_true(str_is(f.tools[0].name, "b"));
    arena_free(before.arena);
    arena_free(now.arena);
}

static void test_a_restart_is_no_negative_rate(void **state)
{
    (void)state;
    struct top_snapshot now = snapshot(BEFORE, NULL, 3000000);
    struct top_snapshot before =
        snapshot("{\"pid\":8,\"started_ms\":0,\"counters\":{\"verdicts\":{\"pass\":900}}}", NULL, 1000000);
    struct top_figures f;
    top_figures_compute(&before, &now, TOP_BY_RATE, &f);
    assert_float_equal(f.seconds, 0, 1e-9);
    assert_float_equal(f.calls_s, 1.1, 1e-9); /* since its start */
    arena_free(before.arena);
    arena_free(now.arena);
}

static unsigned columns_of_longest_line(struct str text)
{
    unsigned longest = 0, line = 0;
    for (size_t i = 0; i < text.len; i++) {
        line = text.at[i] == '\n' ? 0 : line + 1;
        longest = line > longest ? line : longest;
    }
    return longest;
}

static void test_a_frame_fits_every_terminal(void **state)
{
    (void)state;
    struct top_snapshot before = snapshot(BEFORE, NULL, 1000000), now = snapshot(NOW, SESSIONS, 3000000);
    struct top_figures f;
    top_figures_compute(&before, &now, TOP_BY_RATE, &f);
    for (unsigned columns = 1; columns < 200; columns += 7)
        for (unsigned rows = 1; rows < 40; rows += 3) {
            struct top_view view = {
                .columns = columns, .rows = rows, .keys = true, .notice = STR_LIT("notice")};
            struct buf out = {0};
            top_frame(&out, &view, &now, &f);
            unsigned lines = 0;
            for (size_t i = 0; i < out.len; i++)
                lines += out.at[i] == '\n';
            assert_in_range(lines, 1, rows);
            assert_true(columns_of_longest_line(buf_view(&out)) <= columns);
            assert_null(memchr(out.at, '\033', out.len));
            assert_null(memchr(out.at, '\007', out.len));
            buf_clear(&out);
        }
    arena_free(before.arena);
    arena_free(now.arena);
}

static void test_no_text_commands_the_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
        unsigned columns, used;
    } cases[] = {
        {"plain", "plain", 10, 5},
        {"plain", "plain", 5, 5},
        {"plainer", "plai~", 5, 5},
        {"\033[2Ja\r\nb\a", "?[2Ja??b?", 20, 9},
        {"a\xc2\x9b"
         "1mb",
         "a?1mb", 20, 5}, /* the C1 form of CSI */
        {"a\xe2\x80\xae"
         "b",
         "a?b", 20, 3},                                                 /* right-to-left override */
        {"a\xff\xc3", "a??", 20, 3},                                    /* no UTF-8 */
        {"\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac", 4, 4}, /* two columns each */
        {"\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5~", 3, 3},
        {"gr\xc3\xbc\xc3\x9f"
         "e",
         "gr\xc3\xbc\xc3\x9f"
         "e",
         5, 5},
        {"a", "", 0, 0},
        {"", "", 5, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf out = {0};
        unsigned used = term_clip(&out, str_of(cases[i].text), cases[i].columns);
        assert_int_equal(used, cases[i].used);
        assert_int_equal(out.len, strlen(cases[i].shown));
        assert_memory_equal(out.len ? out.at : "", cases[i].shown, out.len);
        buf_clear(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_are_differences_over_time),
        cmocka_unit_test(test_a_restart_is_no_negative_rate),
        cmocka_unit_test(test_a_frame_fits_every_terminal),
        cmocka_unit_test(test_no_text_commands_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

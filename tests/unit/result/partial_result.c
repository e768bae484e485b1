/*
 * Tables of answers that say that more follows, and of answers that only look so. The corpus, if it is found,
 * is searched for complete results that are taken for partial ones.
 */
#include "unit.h"
#include "recorded_rows.h"
#include "json/build.h"
#include "json/write.h"
#include "result/partial_result.h"

static struct partial_result partial_of(const char *text, const char *properties, const char *args)
{
    struct result result;
    struct json sent = json_string(str_of(text));
    result_read(arena, &sent, &result);
    struct json_member member = json_member(STR_LIT("properties"), *value_of(properties));
    return partial_result_detect(arena, &result, json_keep(arena, json_object(arena, &member, 1)),
                                 value_of(args));
}

TEST(an_answer_that_says_so_is_partial)
{
    static const char *const cases[][2] = {
        {"{\"items\":[1],\"has_more\":true}", "has_more"},
        {"{\"items\":[1],\"pageInfo\":{\"hasNextPage\":true,\"endCursor\":\"abc\"}}", "has_more"},
        {"{\"data\":{\"items\":[1],\"hasMore\":true}}", "has_more"},
        {"{\"items\":[1],\"next_cursor\":\"abc\"}", "next_cursor"},
        {"{\"items\":[1],\"nextPageToken\":\"abc\"}", "next_cursor"},
        {"{\"items\":[1],\"response_metadata\":{\"next_cursor\":\"abc\"}}", "next_cursor"},
        {"{\"text\":\"x\",\"truncated\":true}", "truncated"},
        {"{\"items\":[1],\"next_page\":2}", "next_page"},
        {"Showing 10 of 250 results", "n_of_m"},
        {"Showing 1-20 of 53", "n_of_m"},
        {"Showing results 1 to 20 of 53.", "n_of_m"},
        {"Found orders:\na\nb\n\n(1-20 of 53)", "n_of_m"},
        {"Displaying first 10 of about 1,250 items", "n_of_m"},
        {"10 of 250 rows:\na\nb", "n_of_m"},
        {"{\"message\":\"Showing 10 of 250 results\",\"rows\":[1]}", "n_of_m"},
        {"{\"orders\":[{\"id\":\"o1\",\"total\":10,\"name\":\"a long name of it\"},{\"id\":\"o2\",\"tot",
         "truncated_response"},
        {"{\"id\":7,\"name\":\"b", "truncated_response"},
        {"{\"orders\":[{\"id\":\"o1\",\"tot", "truncated_response"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct partial_result partial = partial_of(cases[i][0], "{}", "{}");
        if (!partial.code || strcmp(partial.code, cases[i][1]) != 0)
            fail_msg("%s: %s, expected %s", cases[i][0], partial.code ? partial.code : "complete",
                     cases[i][1]);
        assert_true(partial.detail.len > 0);
    }
}

TEST(a_complete_answer_is_not)
{
    static const char *const cases[] = {
        "{\"items\":[1],\"has_more\":false}",
        "{\"items\":[1],\"has_more\":false,\"next_cursor\":\"abc\"}",
        "{\"items\":[1],\"next_cursor\":\"\"}",
        "{\"items\":[1],\"next_cursor\":null}",
        "{\"items\":[1],\"pageInfo\":{\"hasNextPage\":false,\"endCursor\":\"abc\"}}",
        "{\"items\":[1],\"pageInfo\":{\"endCursor\":\"abc\"}}",
        "{\"text\":\"x\",\"truncated\":false}",
        "{\"truncated\":\"true\"}",
        "{\"rows\":[{\"has_more\":true,\"next_cursor\":\"x\"}]}",
        "Showing 3 of 3 results",
        "Showing 51-53 of 53",
        "It is 1 of the best",
        "He is one of 3",
        "Step 3 of 5 is done",
        "Chapter 2 of 12",
        "Page 2 of 12",
        "Rated 4 of 5 stars",
        "2 of 3 tests passed",
        "Only 3 of 10 dentists agree",
        "1 of 4.5 litres",
        "The 5 of 12 Main Street",
        "{\"message\":\"3 of 10 done\"}",
        "[1, 2, 3]",
        "{\"id\":7,\"na", /* too short to tell */
        "[\"a\", \"b\", \"c",
        "[INFO] starting the server on port 80, with 3 workers, and a queue of 12 jobs that wait",
        "{x} is a template that begins with a brace but is not JSON at all, whatever it looks like",
        "",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct partial_result partial = partial_of(cases[i], "{}", "{}");
        if (partial.code)
            fail_msg("%s: %s, expected a complete answer", cases[i], partial.code);
    }
}

TEST(what_a_command_has_cut_is_complete)
{
    const char *cut = "{\"orders\":[{\"id\":\"o1\",\"total\":10},";
    assert_string_equal("truncated_response",
                        partial_of(cut, "{}", "{\"command\":\"cat orders.json\"}").code);
    assert_null(partial_of(cut, "{}", "{\"command\":\"head -5 orders.json\"}").code);
    assert_null(partial_of(cut, "{}", "{\"command\":[\"bash\",\"-c\",\"cat a | head -n 1\"]}").code);
    assert_string_equal("truncated_response", partial_of(cut, "{}", "{\"path\":\"head\"}").code);
}

TEST(only_the_ends_of_a_long_text_are_searched)
{
    char text[2048];
    memset(text, 'x', sizeof(text));
    memcpy(text + 1000, "\nShowing 10 of 250\n", 19);
    text[sizeof(text) - 1] = '\0';
    assert_null(partial_of(text, "{}", "{}").code);
    memset(text + 1000, 'x', 19);
    memcpy(text + sizeof(text) - 20, "\nShowing 10 of 250", 19);
    assert_string_equal("n_of_m", partial_of(text, "{}", "{}").code);
}

static void next(const char *text, const char *properties, const char *args, const char *expected)
{
    struct partial_result partial = partial_of(text, properties, args);
    struct buf written = buf_in(arena);
    assert_non_null(partial.code);
    if (partial.next)
        json_write(&written, partial.next);
    if (!str_is(buf_view(&written), expected))
        fail_msg("%s with %s and %s: " STR_FMT ", expected %s", text, properties, args,
                 STR_ARG(buf_view(&written)), expected);
}

TEST(the_next_page_is_asked_for_as_the_schema_allows)
{
    static const char page[] = "{\"page\":{\"type\":\"integer\"}}",
                      offset[] = "{\"offset\":{\"type\":\"integer\"}}";
    next("{\"items\":[1],\"has_more\":true}", page, "{}", "{\"page\":2}");
    next("{\"items\":[1],\"has_more\":true}", page, "{\"page\":4}", "{\"page\":5}");
    next("{\"items\":[1,2],\"has_more\":true}", offset, "{\"offset\":10}", "{\"offset\":12}");
    next("{\"items\":[1,2],\"has_more\":true}", "{\"q\":{}}", "{}", "");
    next("{\"a\":[1],\"b\":[2],\"has_more\":true}", offset, "{}", "");
    next("{\"items\":[1],\"next_cursor\":\"abc\"}", "{\"cursor\":{\"type\":\"string\"}}", "{}",
         "{\"cursor\":\"abc\"}");
    next("{\"items\":[1],\"nextPageToken\":\"abc\"}", "{\"page_token\":{\"type\":\"string\"}}", "{}",
         "{\"page_token\":\"abc\"}");
    next("{\"pageInfo\":{\"hasNextPage\":true,\"endCursor\":\"abc\"}}", "{\"after\":{\"type\":\"string\"}}",
         "{}", "{\"after\":\"abc\"}");
    next("{\"items\":[1],\"next_page\":7}", page, "{}", "{\"page\":7}");
    next("Showing 1-20 of 53", offset, "{}", "{\"offset\":20}");
    next("Showing 21-40 of 53", "{\"start\":{\"type\":\"integer\",\"minimum\":1}}", "{}", "{\"start\":41}");
    next("Showing 10 of 250 results", offset, "{\"offset\":30}", "{\"offset\":40}");
    next("Showing 10 of 250 results", "{\"limit\":{\"type\":\"integer\",\"maximum\":100}}", "{}",
         "{\"limit\":100}");
    next("Showing 10 of 250 results", "{\"limit\":{\"type\":\"integer\"}}", "{\"limit\":10}",
         "{\"limit\":250}");
    next("Page 2 of 5", page, "{\"page\":2}", "{\"page\":3}");
}

TEST(a_place_of_a_cut_is_named)
{
    struct result result;
    struct json sent = json_string(STR_LIT("{\"orders\":[{\"id\":\"o1\",\"total\":1"));
    result_read(arena, &sent, &result);
    struct str cut = partial_result_cut(arena, &result);
    assert_true(str_is(cut, "the answer was cut off after 31 bytes inside orders[0].total"));
    sent = json_string(STR_LIT("{\"orders\":[]}"));
    result_read(arena, &sent, &result);
    assert_int_equal(0, partial_result_cut(arena, &result).len);
}

static struct {
    unsigned rows, partial;
} tally;

static void judge_row(const struct json *row)
{
    struct result result;
    result_read(arena, json_get_text(row, "result"), &result);
    struct partial_result partial = partial_result_detect(arena, &result, NULL, NULL);
    tally.rows++;
    tally.partial += partial.code != NULL;
    if (partial.code)
        printf("partial_result: %s, " STR_FMT ": " STR_FMT "\n", partial.code, STR_ARG(partial.detail),
               STR_ARG(str_cut(json_str(json_get_text(row, "result")), 150)));
}

/* Each of the recorded results is all that its tool has. */
TEST(recorded_results_are_complete)
{
    each_recorded_row(judge_row);
    printf("partial_result: %u of %u results are partial\n", tally.partial, tally.rows);
    assert_int_equal(0, tally.partial);
}

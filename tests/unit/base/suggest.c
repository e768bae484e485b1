/* Which names may be guessed for which, and which may not. */
#include "unit.h"
#include "base/suggest.h"

TEST(alike_names_are_guessed)
{
    static const char *const pairs[][2] = {
        {"dueDate", "due_date"},
        {"DUE-DATE", "due_date"},
        {"filename", "file_name"},
        {"line_start", "start_line"},
        {"line_start", "start"},
        {"file_path", "path"},
        {"titel", "title"},
        {"cty", "city"},
        {"colour", "color"},
        {"tags", "tag"},
        {"expr", "expression"},
        {"calculator", "calc"},
        {"descripton", "description"},
        {"shipping", "shipped"},
        {"id", "user_id"},
        {"get_wether", "get_weather"},
        {"read_file", "read_text_file"},
        {"userIDs", "user_id"},
        {"item", "item_10"},
        {"pay_1_v", "pay_1_v5"},
        {"HTTPServer", "http_server"},
        {"recieve", "receive"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        struct str a = str_of(pairs[i][0]), b = str_of(pairs[i][1]);
        if (suggest_score(a, b) < SUGGEST_CLOSE || suggest_score(b, a) < SUGGEST_CLOSE)
            fail_msg("%s and %s are alike: %u", a.at, b.at, suggest_score(a, b));
    }
}

TEST(different_names_are_not_guessed)
{
    static const char *const pairs[][2] = {
        {"Any", "Fantasy"},
        {"item_10", "item_12"},
        {"name", "path"},
        {"v1", "v2"},
        {"a", "b"},
        {"is", "it"},
        {"cat", "bat"},
        {"name", "game"},
        {"get_weather", "get_time"},
        {"amount", "account"},
        {"start_date", "end_date"},
        {"north", "south"},
        {"2024-05-01", "2024-05-02"},
        {"x", "extra"},
        {"min_price", "max_price"},
        {"", "a"},
        {"_", "name"},
        {"metric", "imperial"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        struct str a = str_of(pairs[i][0]), b = str_of(pairs[i][1]);
        if (suggest_score(a, b) >= SUGGEST_CLOSE || suggest_score(b, a) >= SUGGEST_CLOSE)
            fail_msg("%s and %s are not alike: %u", a.at, b.at, suggest_score(a, b));
    }
}

TEST(the_closest_is_the_only_one_that_is_as_close)
{
    const struct str ids[] = {STR("user_id"), STR("file_id"), STR("name")};
    const struct str names[] = {STR("titles"), STR("title"), STR("TITLE")};
    assert_int_equal(suggest_closest(STR_LIT("id"), ids, 3).len, 0);
    assert_true(str_is(suggest_closest(STR_LIT("userid"), ids, 3), "user_id"));
    assert_true(str_is(suggest_closest(STR_LIT("titel"), names, 2), "title"));
    assert_int_equal(suggest_closest(STR_LIT("title"), names + 1, 2).len, 0); /* two are the same */
    assert_int_equal(suggest_closest(STR_LIT("colour"), ids, 3).len, 0);
}

TEST(a_shared_word_ranks_last)
{
    const struct str tools[] = {STR("get_time"), STR("send_mail"), STR("weather_report"), STR("get_weather")};
    size_t at[SUGGEST_MAX];
    assert_int_equal(suggest_ranked(STR_LIT("get_wether"), tools, 4, at), 3);
    assert_int_equal(at[0], 3);
    assert_int_equal(suggest_ranked(STR_LIT("zzz"), tools, 4, at), 0);
}

TEST(a_long_name_is_compared_by_its_beginning)
{
    char a[200], b[200];
    memset(a, 'a', sizeof(a));
    memset(b, 'a', sizeof(b));
    b[199] = 'b';
    assert_true(suggest_score((struct str){a, 200}, (struct str){b, 200}) >= SUGGEST_CLOSE);
    for (size_t i = 1; i < sizeof(a); i += 2)
        a[i] = '_';
    suggest_score((struct str){a, 200}, (struct str){b, 200});
}

TEST(a_tool_that_does_not_exist_was_meant_for_another)
{
    static const char *const tools[] = {"search_web",
                                        "get_file_contents",
                                        "list_directory",
                                        "create_directory",
                                        "write_file",
                                        "move_file",
                                        "delete_note",
                                        "edit_note",
                                        "search_notes",
                                        "create_pull_request",
                                        "list_pull_requests",
                                        "delete_repository",
                                        "search_repositories",
                                        "create_branch",
                                        "browser_navigate",
                                        "browser_click",
                                        "browser_take_screenshot",
                                        "browser_evaluate",
                                        "find_user_id_by_email",
                                        "get_order_details",
                                        "book_reservation",
                                        "send_message",
                                        "run_shell",
                                        "get_weather",
                                        "git__git_log",
                                        "git__git_commit"};
    static const struct {
        const char *sent, *meant;
    } rows[] = {{"web_search", "search_web"},
                {"google_internet", "search_web"},
                {"read_file", "get_file_contents"},
                {"show_folder", "list_directory"},
                {"make_dir", "create_directory"},
                {"save_file", "write_file"},
                {"rename_document", "move_file"},
                {"remove_note", "delete_note"},
                {"updateNote", "edit_note"},
                {"find_notes", "search_notes"},
                {"open_pull_request", "create_pull_request"},
                {"show_pull_requests", "list_pull_requests"},
                {"drop_repo", "delete_repository"},
                {"findRepos", "search_repositories"},
                {"new-branch", "create_branch"},
                {"goto", "browser_navigate"},
                {"press_button", "browser_click"},
                {"capture_screen", "browser_take_screenshot"},
                {"execute_js", "browser_evaluate"},
                {"find_customer_by_mail", "find_user_id_by_email"},
                {"lookup_order", "get_order_details"},
                {"cancel_booking", "book_reservation"},
                {"mail", "send_message"},
                {"bash", "run_shell"},
                {"forecast", "get_weather"},
                {"git_history", "git__git_log"},
                {"commit_changes", "git__git_commit"}};
    struct str names[sizeof(tools) / sizeof(*tools)];
    size_t count = sizeof(tools) / sizeof(*tools), found = 0, best[SUGGEST_MEANT];
    for (size_t i = 0; i < count; i++)
        names[i] = str_of(tools[i]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        bool is_there = false;
        assert_int_equal(suggest_meant(str_of(rows[i].sent), names, count, best), SUGGEST_MEANT);
        for (size_t k = 0; k < SUGGEST_MEANT; k++)
            is_there |= str_is(names[best[k]], rows[i].meant);
        if (!is_there)
            fail_msg("%s: %s, %s, %s", rows[i].sent, tools[best[0]], tools[best[1]], tools[best[2]]);
        found += is_there;
    }
    assert_int_equal(found, sizeof(rows) / sizeof(*rows));
    assert_int_equal(suggest_meant(STR_LIT("x"), names, 1, best), 1); /* however little it is like it */
    assert_int_equal(suggest_meant(STR_LIT("x"), names, 0, best), 0);
}

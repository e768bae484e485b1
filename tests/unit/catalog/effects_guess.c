/* The effects that names suggest: names of real tools, and what the table must not take them for. */
#include "unit.h"
#include "catalog/definition.h"

static void is(const char *name, enum policy_effects effects)
{
    enum policy_effects guess = effects_guess(str_of(name));
    if (guess != effects)
        fail_msg("%s: guessed %d, expected %d", name, guess, effects);
}

TEST(the_verb_that_a_name_begins_with_decides)
{
    is("get_events", EFFECTS_READ);
    is("list-pull-requests", EFFECTS_READ);
    is("readFile", EFFECTS_READ);
    is("GetProductDetailsV1", EFFECTS_READ);
    is("search", EFFECTS_READ);
    is("GET_PARCEL_STATE", EFFECTS_READ);
    is("create_issue", EFFECTS_WRITE);
    is("sendEmail", EFFECTS_WRITE);
    is("book_desk", EFFECTS_WRITE);
    is("mark_all_notifications_read", EFFECTS_WRITE);
    is("delete_repository", EFFECTS_DESTRUCTIVE);
    is("removeUser", EFFECTS_DESTRUCTIVE);
    is("rm", EFFECTS_DESTRUCTIVE);
}

TEST(a_verb_is_a_whole_word)
{
    is("getaway_offers", EFFECTS_UNDECLARED);
    is("address_lookup", EFFECTS_UNDECLARED);
    is("settings", EFFECTS_UNDECLARED);
    is("listing_details", EFFECTS_UNDECLARED);
    is("bookshelf", EFFECTS_UNDECLARED);
    is("checkout", EFFECTS_UNDECLARED);
    is("GETTER", EFFECTS_UNDECLARED);
    is("", EFFECTS_UNDECLARED);
    is("__", EFFECTS_UNDECLARED);
    is("a_name_that_is_longer_than_any_verb_of_the_table", EFFECTS_UNDECLARED);
    is("antidisestablishmentarianism_get", EFFECTS_UNDECLARED);
}

TEST(a_prefix_names_a_server_or_a_group)
{
    is("calendar__get_events", EFFECTS_READ);
    is("mcp__github__create-issue", EFFECTS_WRITE);
    is("modelcontextprotocol.server-memory__delete_entities", EFFECTS_DESTRUCTIVE);
    is("users.list", EFFECTS_READ);
    is("chat.postMessage", EFFECTS_WRITE);
    is("update-server__get_x", EFFECTS_READ);
    is("read_file__v2", EFFECTS_READ); /* only the part before begins with a verb */
    is("files/remove:", EFFECTS_DESTRUCTIVE);
}

/* A tool guessed to read that writes would be the worse error. */
TEST(a_later_verb_makes_a_read_doubtful)
{
    is("get_or_create_user", EFFECTS_WRITE);
    is("findAndDelete", EFFECTS_DESTRUCTIVE);
    is("search_and_replace", EFFECTS_WRITE);
    is("get_post", EFFECTS_UNDECLARED);
    is("check_out_cart", EFFECTS_UNDECLARED);
    is("get_profile_update", EFFECTS_UNDECLARED);
    is("create_or_get", EFFECTS_WRITE);
}

TEST(what_depends_on_the_tool_is_not_guessed)
{
    static const char *const names[] = {"run_query",    "execute_sql",   "start_process",  "open_file",
                                        "order_status", "place_details", "press_key",      "browser_click",
                                        "toggle_light", "export_report", "validate_coupon"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is(names[i], EFFECTS_UNDECLARED);
}

TEST(a_name_of_steps_neither_reads_nor_writes)
{
    static const char
        *const steps[] = {"browser_press_key", "pressKey", "scroll-down",  "web.scroll",  "undo",
                          "go_back",           "next",     "slides__next", "navigateBack"},
               *const others[] = {"send_back",  "get_next",   "create_next",   "feedback",
                                  "next_month", "impression", "forward_email", "delete_previous"};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (!steps_guess(str_of(steps[i])))
            fail_msg("%s: no step", steps[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (steps_guess(str_of(others[i])))
            fail_msg("%s: taken for a step", others[i]);
}

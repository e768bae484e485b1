/* Which users may connect, and which tools exist for them. */
#include "unit.h"
#include "policy/peer.h"

#include <unistd.h>

static const uid_t seven[] = {7};
static const gid_t staff[] = {50};
static const struct str reading[] = {STR("get_*"), STR("list")};
static const struct str writing[] = {STR("set_*")};

static const struct allow_rule rules[] = {
    {.uids = seven, .uid_count = 1, .tools = {reading, 2, true}},
    {.gids = staff, .gid_count = 1, .tools = {writing, 1, true}},
};
static const struct config ruled = {.allow = rules, .allow_count = 2};

static const struct peer user = {.uid = 7, .groups = {7}, .group_count = 1};
static const struct peer member = {.uid = 8, .groups = {8, 50}, .group_count = 2};
static const struct peer both = {.uid = 7, .groups = {7, 50}, .group_count = 2};
static const struct peer stranger = {.uid = 9, .groups = {9}, .group_count = 1};

TEST(no_rules_admit_everyone)
{
    static const struct config open;
    assert_true(peer_may_connect(&open, &stranger));
    assert_true(peer_may_call(&open, &stranger, STR_LIT("anything")));
}

TEST(rules_grant_prompts_and_resources)
{
    static const struct str emails[] = {STR("mail:*")};
    static const struct allow_rule more[] = {
        {.uids = seven, .uid_count = 1, .tools = {reading, 2, true}},
        {.gids = staff, .gid_count = 1, .tools = {writing, 1, true}, .resources = {emails, 1, true}},
        {.everyone = true, .prompts = {NULL, 0, true}},
    };
    static const struct config config = {.allow = more, .allow_count = 3}, open;
    assert_true(peer_may_get(&open, &stranger, STR_LIT("x")) &&
                peer_may_read(&open, &stranger, STR_LIT("x:")));
    assert_false(peer_may_get(&ruled, &user, STR_LIT("x"))); /* a rule for tools is none for others */
    assert_false(peer_may_read(&ruled, &user, STR_LIT("x:")));
    assert_false(peer_may_get(&config, &stranger, STR_LIT("x")));
    assert_true(peer_may_read(&config, &stranger, STR_LIT("x:")));
    static const struct config first = {.allow = more, .allow_count = 2};
    assert_true(peer_may_read(&first, &member, STR_LIT("mail:1")));
    assert_false(peer_may_read(&first, &member, STR_LIT("file:1")));
    assert_false(peer_may_read_some(&first, &user));
    assert_true(peer_may_read_some(&first, &member) && peer_has_resource_globs(&first, &member));
    assert_false(peer_has_resource_globs(&first, &user));
}

TEST(rules_admit_the_users_they_name)
{
    assert_true(peer_may_connect(&ruled, &user));
    assert_true(peer_may_connect(&ruled, &member));
    assert_false(peer_may_connect(&ruled, &stranger));
}

TEST(rights_of_several_rules_add_up)
{
    assert_true(peer_may_call(&ruled, &user, STR_LIT("get_events")));
    assert_true(peer_may_call(&ruled, &user, STR_LIT("list")));
    assert_false(peer_may_call(&ruled, &user, STR_LIT("set_events")));
    assert_true(peer_may_call(&ruled, &member, STR_LIT("set_events")));
    assert_false(peer_may_call(&ruled, &member, STR_LIT("get_events")));
    assert_true(peer_may_call(&ruled, &both, STR_LIT("get_events")));
    assert_true(peer_may_call(&ruled, &both, STR_LIT("set_events")));
    assert_false(peer_may_call(&ruled, &stranger, STR_LIT("get_events")));
}

TEST(a_rule_for_everyone)
{
    static const struct allow_rule all[] = {{.everyone = true, .tools = {reading, 2, true}}};
    static const struct config config = {.allow = all, .allow_count = 1};
    assert_true(peer_may_connect(&config, &stranger));
    assert_true(peer_may_call(&config, &stranger, STR_LIT("list")));
    assert_false(peer_may_call(&config, &stranger, STR_LIT("lists")));
}

TEST(names_come_from_the_user_database)
{
    struct peer peer;
    peer_init(&peer, 0, 0, 1);
    assert_string_equal(peer.user, "root");
    assert_int_equal(peer.groups[0], 0);
    peer_init(&peer, 3999999999u, 77, 2);
    assert_string_equal(peer.user, "3999999999");
    assert_int_equal(peer.group_count, 1);
    assert_int_equal(peer.groups[0], 77);
}

/* Rules that contradict each other or the schema: load errors, and cases for lint. */
#include "policy/policy_support.h"

#include "golden.h"

#define SCHEMA                                                                                               \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"action\"],\"properties\":{"         \
    "\"action\":{\"enum\":[\"get\",\"find\",\"list\"]},\"id\":{\"type\":\"string\"},"                        \
    "\"name\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"         \
    "\"price\":{\"type\":\"number\"},\"day\":{\"type\":\"string\",\"format\":\"date\"},"                     \
    "\"whole\":{\"type\":\"boolean\"},\"kind\":{\"$ref\":\"#/$defs/Kind\"},"                                 \
    "\"page\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]},"                                     \
    "\"to\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"city\":{\"type\":"         \
    "\"string\"}}}},"                                                                                        \
    "\"$defs\":{\"Kind\":{\"enum\":[\"big\",\"small\"]}}}"

static const char *source_of(const char *rules)
{
    return arena_printf(arena, "return tool 't' { schema = json [[%s]], rules = {\n%s\n} }", SCHEMA, rules)
        .at;
}

struct expectation {
    const char *rules;
    bool refused;
};

static void expect(const struct expectation *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *error = fault_of(source_of(list[i].rules));
        if (!list[i].refused && error)
            fail_msg("%s\n%s", list[i].rules, error);
        if (list[i].refused && !error)
            fail_msg("%s loads", list[i].rules);
        if (error)
            golden_row(list[i].rules, error);
    }
}

#define EXPECT(...)                                                                                          \
    static const struct expectation list[] = {__VA_ARGS__};                                                  \
    expect(list, sizeof(list) / sizeof(list[0]))

TEST(one_rule_needs_what_another_drops)
{
    EXPECT(
        {"when { action = 'get' } : needs 'id',\nalways : drops 'id'", true},
        {"always : drops 'id',\nwhen { action = 'get' } : needs 'id'", true},
        {"when { action = 'get' } : needs 'id' : drops 'id'", true},
        {"when { limit = above(5) } : needs 'id', when { limit = above(5) } : drops 'id'", true},
        {"when { day = above '2026-05-01', action = 'get' } : needs 'id', when { day = above '2026-05-01' } "
         ": drops 'id'",
         true},
        {"when { action = none_of 'get' } : needs 'id', when { action = none_of 'get' } : drops 'id'", true},
        {"when { action = { 'get', 'find' } } : needs 'id', when { action = { 'get', 'find' } } : drops 'id'",
         true},
        {"when { action = 'get' } : needs 'to.city', when { action = 'get' } : drops 'to'", true},
        {"when { action = 'get' } : needs 'id', when { action = 'find' } : drops 'id'", false},
        {"when { limit = above(5) } : needs 'id', when { limit = below(6) } : drops 'id'", false},
        {"when { limit = above(5) } : needs 'id', when { limit = at_least(5) } : drops 'id'", false},
        {"when { name = given } : needs 'id', when { name = absent } : drops 'id'", false}, );
    golden_check_rows("load", "rule conflicts: one rule needs what another drops");
}

/* Each pair can occur together; only examples show whether it does. */
TEST(different_conditions_are_left_to_examples)
{
    EXPECT(
        {"when { action = 'get' } : needs 'id', when { name = given } : drops 'id'", false},
        {"when { limit = above(5) } : needs 'id', when { limit = below(7) } : drops 'id'", false},
        {"when { action = 'get' } : needs 'id', when { action = { 'get', 'find' } } : drops 'id'", false}, );
}

TEST(a_rule_may_change_what_another_reads)
{
    EXPECT({"when { name = 'x' } : drops 'name, id', when { name = 'x' } : needs 'id'", false},
           {"when { to = given } : drops 'to.city, id', when { to = given } : needs 'id'", false},
           {"always : defaults { limit = 50 }, when { action = 'get' } : drops 'limit'", false},
           {"when { action = 'get' } : drops 'limit', always : defaults { limit = 50 }", false},
           {"always : needs 'id' : drops 'id', when { action = 'get' } : defaults { id = 'i' }", false}, );
}

TEST(predicates_are_compared_by_function)
{
    EXPECT(
        {"when { day = is('a', function() end) } : needs 'id', when { day = is('a', function() end) } : "
         "drops 'id'",
         false},
        {"when { day = is('a', function() end) } : needs 'id', when { action = 'get' } : drops 'id'", false},
        {"when { day = is('a', function() end) } : needs 'id', always : drops 'id'", true}, );
    assert_has(fault_of("local odd = is('odd', function(n) return n % 2 == 1 end)\n"
                        "return tool 't' { rules = { when { n = odd } : needs 'id',\n"
                        "  when { n = odd, m = 1 } : drops 'id' } }"),
               "p.lua:2: rules: needs 'id', which the rule on line 3 (when m is 1 and n is odd) drops");
    golden_check_rows("load", "rule conflicts: predicates are compared by function");
}

TEST(one_rule_needs_two_of_which_another_allows_one)
{
    EXPECT({"when { action = 'get' } : needs 'id, name',\nexclusive { 'id', 'name' }", true},
           {"always : needs 'id, name' : exclusive { 'id', 'name' }", true},
           {"when { action = 'get' } : needs 'id', when { action = 'find' } : needs 'name', exclusive { "
            "'id', 'name' }",
            false},
           {"needs_one_of { 'id', 'name' }, exclusive { 'id', 'name' }", false}, );
    golden_check_rows("load", "rule conflicts: one rule needs two of which another allows one");
}

TEST(a_default_is_never_used)
{
    EXPECT({"always : drops 'limit' : defaults { limit = 5 }", true},
           {"when { action = 'get' } : defaults { limit = 5 }, always : drops 'limit'", true},
           {"when { action = 'get' } : defaults { limit = 5 },\nwhen { action = 'get' } : defaults { limit = "
            "6 }",
            true},
           {"always : defaults { limit = 5 }, when { action = 'get' } : defaults { limit = 6 }", true},
           {"when { action = 'get' } : defaults { limit = 6 }, always : defaults { limit = 5 }", false},
           {"always : defaults { limit = 'x' }", true}, {"always : defaults { kind = 'bigg' }", true}, );
    golden_check_rows("load", "rule conflicts: a default is never used");
}

TEST(the_schema_allows_no_such_value)
{
    EXPECT(
        {"when { action = 'gett' } : needs 'id'", true},
        {"when { action = { 'get', 'lst' } } : needs 'id'", true},
        {"when { kind = 'bog' } : needs 'id'", true},
        {"when { action = none_of('get', 'lst') } : needs 'id'", true},
        {"when { action = none_of('get', 'list', 'find') } : needs 'id'", true},
        {"when { limit = '5' } : needs 'id'", true}, {"when { limit = 1.5 } : needs 'id'", true},
        {"when { limit = null } : needs 'id'", true}, {"when { page = null } : needs 'id'", false},
        {"when { limit = at_least(100) } : needs 'id'", false},
        {"when { limit = above(1.5) } : needs 'id'", false}, {"when { name = above(3) } : needs 'id'", true},
        {"when { limit = above '2026-05-01' } : needs 'id'", true},
        {"when { day = above '2026-05-01' } : needs 'id'", false},
        {"when { page = above(3) } : needs 'id'", false}, {"when { action = absent } : needs 'id'", true}, );
    golden_check_rows("load", "rule conflicts: the schema allows no such value");
}

TEST(the_schema_has_no_such_argument)
{
    EXPECT({"always : needs 'idd'", true}, {"when { acton = 'get' } : needs 'id'", true},
           {"always : needs 'to.town'", true}, {"always : drops 'action'", true},
           {"exclusive { 'id', 'nam' }", true}, {"always : defaults { limt = 4 }", true},
           {"always : needs 'to.'", true}, {"always : needs 'to.city'", false}, );
    assert_has(
        fault_of("return tool 't' { unknown = 'refuse', schema = json [[{\"properties\":{\"id\":{}}}]],\n"
                 "  rules = { always : needs 'idd' } }"),
        "p.lua:2: rules: the schema does not allow 'idd'");
    load("return tool 't' { validate = false, schema = json "
         "[[{\"properties\":{\"id\":{}},\"additionalProperties\":false}]],\n"
         "  rules = { always : needs 'idd' } }");
    load("return tool 't' { schema = json [[{\"additionalProperties\":false,\"properties\":{\"id\":{}},"
         "\"patternProperties\":{\"^x\":{}}}]],\n rules = { always : needs 'xid' } }");
    golden_check_rows("load", "rule conflicts: the schema has no such argument");
}

TEST(all_conflicts_are_reported)
{
    struct policy_load_errors errors = {.arena = arena};
    const char *source = source_of("always : needs 'idd',\nalways : needs 'id' : drops 'id'");
    assert_int_not_equal(policy_set_load_string(STR_LIT("p.lua"), str_of(source), NULL, &loaded, &errors),
                         OK);
    assert_int_equal(errors.count, 2);
    assert_has(text_of(errors.list[0]), "p.lua:2: ");
    assert_has(text_of(errors.list[1]), "p.lua:3: ");
}

TEST(rules_contradict_without_a_schema)
{
    assert_has(fault_of("return tool 't' { rules = { when { n = 5 } : needs 'x',\n when { n = 5 } : "
                        "drops 'x' } }"),
               "p.lua:1: rules: needs 'x', which the rule on line 2 (when n is 5) drops");
    load("return tool 't' { rules = { when { n = 5 } : needs 'x',\n when { n = 3 } : drops 'x' } }");
}

static void add_line(void *out, bool certain, int line, struct str sentence)
{
    (void)certain;
    buf_printf(out, "%d: " STR_FMT "\n", line, STR_ARG(sentence));
}

TEST(an_unknown_name_in_an_open_schema_is_left_to_lint)
{
    const struct policy *policy =
        load("return tool 't' { schema = json [[{\"properties\":{\"ident\":{}}}]],\n"
             "  rules = { always : needs 'idnet' } }");
    struct buf out = buf_in(arena);
    policy_rule_conflicts(policy, NULL, arena, add_line, &out);
    assert_string_equal(text_of(buf_view(&out)),
                        "2: 'idnet' is not in the schema (did you mean 'ident'?): add "
                        "it there for the model to know it\n");
}

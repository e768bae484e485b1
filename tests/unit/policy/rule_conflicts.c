/* Rules that contradict each other or the schema: which are errors at load, which are left to lint. */
#include "policy/policy_support.h"

#include "policy/introspection.h"

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
    const char *rules, *error; /* NULL: none */
};

static void expect(const struct expectation *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *error = fault_of(source_of(list[i].rules));
        if (!list[i].error && error)
            fail_msg("%s\n%s", list[i].rules, error);
        if (list[i].error && !error)
            fail_msg("%s loads: expected %s", list[i].rules, list[i].error);
        if (error)
            assert_has(error, list[i].error);
    }
}

#define EXPECT(...)                                                                                          \
    static const struct expectation list[] = {__VA_ARGS__};                                                  \
    expect(list, sizeof(list) / sizeof(list[0]))

static void one_rule_needs_what_another_drops(void **state)
{
    (void)state;
    EXPECT(
        {"when { action = 'get' } : needs 'id',\nalways : drops 'id'",
         "p.lua:2: rules: needs 'id', which the rule on line 3 (always) drops: remove one of the two"},
        {"always : drops 'id',\nwhen { action = 'get' } : needs 'id'",
         "p.lua:3: rules: needs 'id', which the rule on line 2"},
        {"when { action = 'get' } : needs 'id' : drops 'id'",
         "p.lua:2: rules: needs 'id', which it drops: remove one of the two"},
        {"when { limit = above(5) } : needs 'id', when { limit = above(5) } : drops 'id'",
         "needs 'id', which"},
        {"when { day = above '2026-05-01', action = 'get' } : needs 'id', when { day = above '2026-05-01' } "
         ": drops 'id'",
         "needs 'id', which"},
        {"when { action = none_of 'get' } : needs 'id', when { action = none_of 'get' } : drops 'id'",
         "needs 'id', which"},
        {"when { action = { 'get', 'find' } } : needs 'id', when { action = { 'get', 'find' } } : drops 'id'",
         "needs 'id', which"},
        {"when { action = 'get' } : needs 'to.city', when { action = 'get' } : drops 'to'",
         "needs 'to.city', which"},
        {"when { action = 'get' } : needs 'id', when { action = 'find' } : drops 'id'", NULL},
        {"when { limit = above(5) } : needs 'id', when { limit = below(6) } : drops 'id'", NULL},
        {"when { limit = above(5) } : needs 'id', when { limit = at_least(5) } : drops 'id'", NULL},
        {"when { name = given } : needs 'id', when { name = absent } : drops 'id'", NULL}, );
}

/* Each pair can meet; that is for examples to show. */
static void different_conditions_are_left_to_examples(void **state)
{
    (void)state;
    EXPECT(
        {"when { action = 'get' } : needs 'id', when { name = given } : drops 'id'", NULL},
        {"when { limit = above(5) } : needs 'id', when { limit = below(7) } : drops 'id'", NULL},
        {"when { action = 'get' } : needs 'id', when { action = { 'get', 'find' } } : drops 'id'", NULL}, );
}

static void a_rule_may_change_what_another_reads(void **state)
{
    (void)state;
    EXPECT({"when { name = 'x' } : drops 'name, id', when { name = 'x' } : needs 'id'", NULL},
           {"when { to = given } : drops 'to.city, id', when { to = given } : needs 'id'", NULL},
           {"always : defaults { limit = 50 }, when { action = 'get' } : drops 'limit'", NULL},
           {"when { action = 'get' } : drops 'limit', always : defaults { limit = 50 }", NULL},
           {"always : needs 'id' : drops 'id', when { action = 'get' } : defaults { id = 'i' }", NULL}, );
}

static void predicates_are_compared_by_function(void **state)
{
    (void)state;
    EXPECT(
        {"when { day = is('a', function() end) } : needs 'id', when { day = is('a', function() end) } : "
         "drops 'id'",
         NULL},
        {"when { day = is('a', function() end) } : needs 'id', when { action = 'get' } : drops 'id'", NULL},
        {"when { day = is('a', function() end) } : needs 'id', always : drops 'id'", "needs 'id', which"}, );
    assert_has(fault_of("local odd = is('odd', function(n) return n % 2 == 1 end)\n"
                        "return tool 't' { rules = { when { n = odd } : needs 'id',\n"
                        "  when { n = odd, m = 1 } : drops 'id' } }"),
               "p.lua:2: rules: needs 'id', which the rule on line 3 (when m is 1 and n is odd) drops");
}

static void one_rule_needs_two_of_which_another_allows_one(void **state)
{
    (void)state;
    EXPECT({"when { action = 'get' } : needs 'id, name',\nexclusive { 'id', 'name' }",
            "p.lua:2: rules: needs 'id' and 'name', but the rule on line 3 (always) allows only one"},
           {"always : needs 'id, name' : exclusive { 'id', 'name' }",
            "needs 'id' and 'name', but it allows only one"},
           {"when { action = 'get' } : needs 'id', when { action = 'find' } : needs 'name', exclusive { "
            "'id', 'name' }",
            NULL},
           {"needs_one_of { 'id', 'name' }, exclusive { 'id', 'name' }", NULL}, );
}

static void a_default_is_never_used(void **state)
{
    (void)state;
    EXPECT({"always : drops 'limit' : defaults { limit = 5 }",
            "gives 'limit' a default, but it drops it: remove one of the two"},
           {"when { action = 'get' } : defaults { limit = 5 }, always : drops 'limit'",
            "gives 'limit' a default, but the rule on line 2 (always) drops it"},
           {"when { action = 'get' } : defaults { limit = 5 },\nwhen { action = 'get' } : defaults { limit = "
            "6 }",
            "p.lua:3: rules: its default for 'limit' is never used, as the rule on line 2 (when action is "
            "\"get\") gives 5 first: put the rule with more conditions first"},
           {"always : defaults { limit = 5 }, when { action = 'get' } : defaults { limit = 6 }",
            "put the rule with more conditions first"},
           {"when { action = 'get' } : defaults { limit = 6 }, always : defaults { limit = 5 }", NULL},
           {"always : defaults { limit = 'x' }", "the schema does not allow the default \"x\" for 'limit'"},
           {"always : defaults { kind = 'bigg' }",
            "the schema does not allow the default \"bigg\" for 'kind'"}, );
}

static void the_schema_allows_no_such_value(void **state)
{
    (void)state;
    EXPECT({"when { action = 'gett' } : needs 'id'",
            "p.lua:2: rules: the schema does not allow \"gett\" for 'action' (did you mean 'get'?)"},
           {"when { action = { 'get', 'lst' } } : needs 'id'",
            "the schema does not allow \"lst\" for 'action' (did you mean 'list'?)"},
           {"when { kind = 'bog' } : needs 'id'", "the schema does not allow \"bog\" for 'kind'"},
           {"when { action = none_of('get', 'lst') } : needs 'id'", "does not allow \"lst\""},
           {"when { action = none_of('get', 'list', 'find') } : needs 'id'",
            "never holds: the schema allows no call in which action is given and none of"},
           {"when { limit = '5' } : needs 'id'", "the schema does not allow \"5\" for 'limit'"},
           {"when { limit = 1.5 } : needs 'id'", "the schema does not allow 1.5 for 'limit'"},
           {"when { limit = null } : needs 'id'", "the schema does not allow null for 'limit': write absent"},
           {"when { page = null } : needs 'id'", NULL}, {"when { limit = at_least(100) } : needs 'id'", NULL},
           {"when { limit = above(1.5) } : needs 'id'", NULL},
           {"when { name = above(3) } : needs 'id'",
            "never holds: the schema allows no call in which name is above 3"},
           {"when { limit = above '2026-05-01' } : needs 'id'", "never holds"},
           {"when { day = above '2026-05-01' } : needs 'id'", NULL},
           {"when { page = above(3) } : needs 'id'", NULL},
           {"when { action = absent } : needs 'id'",
            "never holds: the schema allows no call in which action is left out"}, );
}

static void the_schema_has_no_such_argument(void **state)
{
    (void)state;
    EXPECT({"always : needs 'idd'", "p.lua:2: rules: the schema does not allow 'idd' (did you mean 'id'?): "
                                    "add it there, or correct the rule"},
           {"when { acton = 'get' } : needs 'id'", "does not allow 'acton' (did you mean 'action'?)"},
           {"always : needs 'to.town'", "the schema does not allow 'to.town'"},
           {"always : drops 'action'", "drops 'action', which the schema requires: make it optional there"},
           {"exclusive { 'id', 'nam' }", "does not allow 'nam'"},
           {"always : defaults { limt = 4 }", "does not allow 'limt' (did you mean 'limit'?)"},
           {"always : needs 'to.'", "the schema does not allow 'to.'"}, {"always : needs 'to.city'", NULL}, );
    assert_has(
        fault_of("return tool 't' { unknown = 'refuse', schema = json [[{\"properties\":{\"id\":{}}}]],\n"
                 "  rules = { always : needs 'idd' } }"),
        "p.lua:2: rules: the schema does not allow 'idd'");
    load("return tool 't' { validate = false, schema = json "
         "[[{\"properties\":{\"id\":{}},\"additionalProperties\":false}]],\n"
         "  rules = { always : needs 'idd' } }");
    load("return tool 't' { schema = json [[{\"additionalProperties\":false,\"properties\":{\"id\":{}},"
         "\"patternProperties\":{\"^x\":{}}}]],\n rules = { always : needs 'xid' } }");
}

static void all_conflicts_are_reported(void **state)
{
    (void)state;
    struct policy_load_errors errors = {.arena = arena};
    const char *source = source_of("always : needs 'idd',\nalways : needs 'id' : drops 'id'");
    assert_int_not_equal(policy_set_load_string(STR_LIT("p.lua"), str_of(source), NULL, &loaded, &errors),
                         OK);
    assert_int_equal(errors.count, 2);
    assert_has(text_of(errors.list[0]), "p.lua:2: ");
    assert_has(text_of(errors.list[1]), "p.lua:3: ");
}

static void rules_contradict_without_a_schema(void **state)
{
    (void)state;
    assert_has(fault_of("return tool 't' { rules = { when { n = 5 } : needs 'x',\n when { n = 5 } : "
                        "drops 'x' } }"),
               "p.lua:1: rules: needs 'x', which the rule on line 2 (when n is 5) drops");
    load("return tool 't' { rules = { when { n = 5 } : needs 'x',\n when { n = 3 } : drops 'x' } }");
}

static void add_line(void *out, int line, struct str sentence)
{
    buf_printf(out, "%d: " STR_FMT "\n", line, STR_ARG(sentence));
}

static void an_unknown_name_in_an_open_schema_is_left_to_lint(void **state)
{
    (void)state;
    const struct policy *policy =
        load("return tool 't' { schema = json [[{\"properties\":{\"ident\":{}}}]],\n"
             "  rules = { always : needs 'idnet' } }");
    struct policy_introspection introspection = {.policy = policy, .arena = arena};
    struct buf out = buf_in(arena);
    introspection_rules(&introspection, NULL, add_line, &out);
    assert_string_equal(text_of(buf_view(&out)),
                        "2: 'idnet' is not in the schema (did you mean 'ident'?): add "
                        "it there for the model to know it\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_rule_needs_what_another_drops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(different_conditions_are_left_to_examples, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rule_may_change_what_another_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(predicates_are_compared_by_function, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_rule_needs_two_of_which_another_allows_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_default_is_never_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_schema_allows_no_such_value, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_schema_has_no_such_argument, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_conflicts_are_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rules_contradict_without_a_schema, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unknown_name_in_an_open_schema_is_left_to_lint, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy_conflicts", tests, NULL, NULL);
}

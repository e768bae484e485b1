/* Rules that contradict each other or the schema: what is an error at load, what is left to lint, what is
 * neither. */
#include "policy/policy_support.h"

#include "policy/rule/rule_facts.h"

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
    const char *rules, *fault; /* NULL: none */
};

static void expect(const struct expectation *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *fault = fault_of(source_of(list[i].rules));
        if (!list[i].fault && fault)
            fail_msg("%s\n%s", list[i].rules, fault);
        if (list[i].fault && !fault)
            fail_msg("%s loads: expected %s", list[i].rules, list[i].fault);
        if (fault)
            assert_has(fault, list[i].fault);
    }
}

#define EXPECT(...)                                                                                          \
    static const struct expectation list[] = {__VA_ARGS__};                                                  \
    expect(list, sizeof(list) / sizeof(list[0]))

static void what_one_rule_needs_no_other_drops(void **state)
{
    (void)state;
    EXPECT(
        {"when { action = 'get' } : needs 'id',\nalways : drops 'id'",
         "p.lua:2: rules: needs 'id', which the rule on line 3 (always) drops, and both can hold: let their "
         "conditions exclude each other, or take one of the two out"},
        {"always : drops 'id',\nwhen { action = 'get' } : needs 'id'",
         "p.lua:3: rules: needs 'id', which the rule on line 2"},
        {"when { action = 'get' } : needs 'id' : drops 'id'",
         "p.lua:2: rules: needs 'id' and drops it: take one of the two out"},
        {"when { action = { 'get', 'find' } } : needs 'id', when { action = { 'find', 'list' } } : drops "
         "'id'",
         "needs 'id', which"},
        {"when { action = 'get' } : needs 'id', when { name = given } : drops 'id'", "needs 'id', which"},
        {"when { limit = above(5) } : needs 'id', when { limit = below(7) } : drops 'id'",
         "needs 'id', which"},
        {"when { day = above '2026-05-01' } : needs 'id', when { day = below '2026-05-02' } : drops 'id'",
         "needs 'id', which"},
        {"when { action = none_of 'get' } : needs 'id', when { action = none_of 'find' } : drops 'id'",
         "needs 'id', which"},
        {"when { action = 'get' } : needs 'to.city', when { action = 'get' } : drops 'to'",
         "needs 'to.city', which"},
        {"needs_one_of { 'id', 'name' }, when { action = 'list' } : drops 'id, name'",
         "needs one of 'id' and others, all of which the rule on line 2"},
        {"when { action = 'get' } : needs 'id', when { action = 'find' } : drops 'id'", NULL},
        {"when { action = { 'get', 'find' } } : needs 'id', when { action = 'list' } : drops 'id'", NULL},
        {"when { limit = above(5) } : needs 'id', when { limit = below(6) } : drops 'id'", NULL},
        {"when { limit = above(5) } : needs 'id', when { limit = between(1, 5) } : drops 'id'", NULL},
        {"when { price = above(5) } : needs 'id', when { price = at_most(5) } : drops 'id'", NULL},
        {"when { day = at_least '2026-05-02' } : needs 'id', when { day = below '2026-05-02' } : drops 'id'",
         NULL},
        {"when { name = given } : needs 'id', when { name = absent } : drops 'id'", NULL},
        {"when { action = none_of 'get' } : needs 'id', when { action = 'get' } : drops 'id'", NULL},
        {"when { action = none_of('get', 'find') } : needs 'id', when { action = none_of 'list' } : drops "
         "'id'",
         NULL},
        {"when { whole = none_of(true) } : needs 'id', when { whole = none_of(false) } : drops 'id'", NULL},
        {"needs_one_of { 'id', 'name' }, when { action = 'list' } : drops 'id'", NULL}, );
}

static void what_is_changed_first_is_no_conflict(void **state)
{
    (void)state;
    EXPECT({"when { action = 'list' } : drops 'name, id', when { name = 'x' } : needs 'id'", NULL},
           {"when { name = 'x' } : needs 'id', when { action = 'list' } : drops 'name, id'",
            "needs 'id', which"},
           {"always : defaults { limit = 50 }, when { action = 'get' } : drops 'limit'", NULL},
           {"when { action = 'get' } : drops 'limit', always : defaults { limit = 50 }",
            "gives 'limit' back, which the rule on line 2 (when action is \"get\") drops"}, );
}

static void predicates_are_known_by_their_function_only(void **state)
{
    (void)state;
    EXPECT(
        {"when { day = is('a', function() end) } : needs 'id', when { day = is('a', function() end) } : "
         "drops 'id'",
         NULL},
        {"when { day = is('a', function() end) } : needs 'id', when { day = '2026-05-01' } : drops 'id'",
         NULL},
        {"when { day = is('a', function() end) } : needs 'id', when { action = 'get' } : drops 'id'", NULL},
        {"when { day = is('a', function() end) } : needs 'id', always : drops 'id'", "needs 'id', which"},
        {"when { day = is('a', function() end) } : needs 'id', when { day = given } : drops 'id'",
         "needs 'id', which"}, );
    assert_has(fault_of("local odd = is('odd', function(n) return n % 2 == 1 end)\n"
                        "return tool 't' { rules = { when { n = odd } : needs 'id',\n"
                        "  when { n = odd, m = 1 } : drops 'id' } }"),
               "p.lua:2: rules: needs 'id', which the rule on line 3 (when m is 1 and n is odd) drops");
}

static void what_excludes_each_other_is_not_needed_together(void **state)
{
    (void)state;
    EXPECT({"when { action = 'get' } : needs 'id, name',\nexclusive { 'id', 'name' }",
            "p.lua:2: rules: needs 'id' and 'name', of which the rule on line 3 (always) allows one"},
           {"when { action = 'get' } : needs 'id', when { action = { 'get', 'find' } } : needs "
            "'name',\nexclusive { 'id', 'name' }",
            "rules: needs 'id' while the rule on line 2 needs 'name', of which the rule on line 3"},
           {"always : needs 'id, name' : exclusive { 'id', 'name' }",
            "needs 'id' and 'name', of which it allows one"},
           {"always : defaults { id = 'i' }, exclusive { 'id', 'name' }",
            "its default for 'id' makes every call with 'name' wrong, as the rule on line 2 (always) allows "
            "one of "
            "them: give it only when { name = absent }"},
           {"when { action = 'get' } : needs 'id', when { action = 'find' } : needs 'name', exclusive { "
            "'id', 'name' }",
            NULL},
           {"when { name = absent } : defaults { id = 'i' }, exclusive { 'id', 'name' }", NULL},
           {"needs_one_of { 'id', 'name' }, exclusive { 'id', 'name' }", NULL}, );
}

static void defaults_are_of_use(void **state)
{
    (void)state;
    EXPECT(
        {"always : drops 'limit' : defaults { limit = 5 }",
         "drops 'limit' and gives it a default: to set it in any case, write normalise"},
        {"when { action = 'get' } : defaults { limit = 5 }, when { action = { 'get', 'list' } } : drops "
         "'limit'",
         "its default for 'limit' never stays, as the rule on line 2"},
        {"when { action = 'get' } : defaults { limit = 5 },\nwhen { action = 'get' } : defaults { limit = 6 "
         "}",
         "p.lua:3: rules: its default for 'limit' is never used, as the rule on line 2 (when action is "
         "\"get\") "
         "gives 5 first: put the narrower rule first"},
        {"always : defaults { limit = 5 }, when { action = 'get' } : defaults { limit = 6 }",
         "put the narrower rule first"},
        {"when { action = 'get' } : defaults { limit = 6 }, always : defaults { limit = 5 }", NULL},
        {"always : defaults { limit = 101 }", "gives 'limit' the value 101, which the schema does not allow"},
        {"always : defaults { kind = 'bigg' }",
         "gives 'kind' the value \"bigg\", which the schema does not allow"}, );
}

static void conditions_can_hold(void **state)
{
    (void)state;
    EXPECT({"when { action = 'gett' } : needs 'id'",
            "p.lua:2: rules: 'action' is never \"gett\" by the schema (did you mean 'get'?)"},
           {"when { action = { 'get', 'lst' } } : needs 'id'",
            "never \"lst\" by the schema (did you mean 'list'?)"},
           {"when { kind = 'bog' } : needs 'id'", "'kind' is never \"bog\" by the schema"},
           {"when { action = none_of('get', 'lst') } : needs 'id'", "never \"lst\""},
           {"when { action = none_of('get', 'list', 'find') } : needs 'id'",
            "never holds, as the schema leaves no call in which action is given and none of"},
           {"when { limit = '5' } : needs 'id'", "'limit' is never \"5\" by the schema"},
           {"when { limit = 1.5 } : needs 'id'", "'limit' is never 1.5 by the schema"},
           {"when { limit = null } : needs 'id'",
            "'limit' is never null by the schema: where it may be left out, write absent"},
           {"when { page = null } : needs 'id'", NULL},
           {"when { limit = above(100) } : needs 'id'",
            "never holds, as the schema leaves no call in which limit is above 100"},
           {"when { limit = below(1) } : needs 'id'", "never holds"},
           {"when { limit = between(1.2, 1.8) } : needs 'id'", "never holds"},
           {"when { limit = at_least(100) } : needs 'id'", NULL},
           {"when { name = above(3) } : needs 'id'",
            "never holds, as the schema leaves no call in which name is above 3"},
           {"when { limit = above '2026-05-01' } : needs 'id'", "never holds"},
           {"when { day = above '2026-05-01' } : needs 'id'", NULL},
           {"when { page = above(3) } : needs 'id'", NULL},
           {"when { action = absent } : needs 'id'",
            "never holds, as the schema leaves no call in which action is left out"},
           {"always : drops 'name', when { name = given } : needs 'id'",
            "never holds, as the rule on line 2 (always) drops 'name' before: put this one first"},
           {"always : defaults { name = 'x' }, when { name = absent } : needs 'id'",
            "never holds, as the rule on line 2 (always) gives a value to 'name' before"}, );
}

static void names_are_the_schemas(void **state)
{
    (void)state;
    EXPECT({"always : needs 'idd'", "p.lua:2: rules: the schema lets no 'idd' in (did you mean 'id'?): name "
                                    "it there, or correct the rule"},
           {"when { acton = 'get' } : needs 'id'", "no 'acton' in (did you mean 'action'?)"},
           {"always : needs 'to.town'", "the schema lets no 'to.town' in"},
           {"always : drops 'action'",
            "drops 'action', which the schema requires: make it optional there, or keep it"},
           {"exclusive { 'id', 'nam' }", "no 'nam' in"},
           {"always : defaults { limt = 4 }", "no 'limt' in (did you mean 'limit'?)"},
           {"always : needs 'to.'", "the schema lets no 'to.' in"}, {"always : needs 'to.city'", NULL}, );
    assert_has(
        fault_of("return tool 't' { unknown = 'refuse', schema = json [[{\"properties\":{\"id\":{}}}]],\n"
                 "  rules = { always : needs 'idd' } }"),
        "p.lua:2: rules: the schema lets no 'idd' in");
    load("return tool 't' { validate = false, schema = json "
         "[[{\"properties\":{\"id\":{}},\"additionalProperties\":false}]],\n"
         "  rules = { always : needs 'idd' } }");
    load("return tool 't' { schema = json [[{\"additionalProperties\":false,\"properties\":{\"id\":{}},"
         "\"patternProperties\":{\"^x\":{}}}]],\n rules = { always : needs 'xid' } }");
}

static void refusals_leave_something_to_say(void **state)
{
    (void)state;
    EXPECT({"when { action = 'get' } : refuses 'no',\nwhen { action = 'get', limit = 1 } : refuses 'never'",
            "p.lua:3: rules: never refuses, as the rule on line 2 (when action is \"get\") refuses all of it "
            "first: put the narrower rule first"},
           {"when { action = 'get' } : refuses 'no', when { action = 'get', limit = 1 } : needs 'id'",
            "is never of use, as the rule on line 2 (when action is \"get\") refuses all that it holds for"},
           {"when { action = 'get' } : needs 'id' : refuses 'no'",
            "refuses whatever it holds for, so that all else it says is never of use"},
           {"when { action = 'get', limit = 1 } : refuses 'never', when { action = 'get' } : refuses 'no'",
            NULL},
           {"when { limit = given } : refuses 'no', when { limit = 1 } : drops 'limit'", NULL},
           {"always : refuses 'down for maintenance', when { action = 'get' } : needs 'id'", NULL}, );
}

static void all_conflicts_are_told(void **state)
{
    (void)state;
    struct policy_load_errors faults = {.arena = arena};
    const char *source = source_of("always : needs 'idd',\nalways : needs 'id' : drops 'id'");
    assert_int_not_equal(policy_set_load_string(STR_LIT("p.lua"), str_of(source), NULL, &loaded, &faults),
                         OK);
    assert_int_equal(faults.count, 2);
    assert_has(text_of(faults.list[0]), "p.lua:2: ");
    assert_has(text_of(faults.list[1]), "p.lua:3: ");
}

static void without_a_schema_rules_still_contradict(void **state)
{
    (void)state;
    assert_has(fault_of("return tool 't' { rules = { when { n = above(3) } : needs 'x',\n when { n = 5 } : "
                        "drops 'x' } }"),
               "p.lua:1: rules: needs 'x', which the rule on line 2 (when n is 5) drops");
    load("return tool 't' { rules = { when { n = above(3) } : needs 'x',\n when { n = 3 } : drops 'x' } }");
    load("return tool 't' { schema = json [[{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}]],\n"
         " rules = { when { a = given } : needs 'x',\n when { b = given } : drops 'x' } }");
}

/* Everything that is strange about these rules, one sentence a line with its line. */
static const char *suspicions(const char *rules)
{
    struct buf out = buf_in(arena);
    struct rule_facts facts;
    policy_rule_facts(load(source_of(rules)), arena, &facts);
    for (size_t i = 0; i < facts.suspicion_count; i++)
        buf_printf(&out, "%d: " STR_FMT "\n", facts.suspicions[i].line,
                   STR_ARG(facts.suspicions[i].sentence));
    return text_of(buf_view(&out));
}

static void what_is_only_strange_is_left_to_lint(void **state)
{
    (void)state;
    assert_string_equal(
        suspicions("when { action = 'get' } : needs 'id',\nwhen { action = 'find' } : drops 'id'"), "");
    assert_string_equal(suspicions("when { action = given, day = is('a', function() end) } : needs "
                                   "'id',\nwhen { limit = 1 } : drops 'id'"),
                        "2: 'action' is always given, as the schema requires it: leave the condition out\n"
                        "2: needs 'id', which the rule on line 3 (when limit is 1) drops: make sure that not "
                        "both can hold\n");
    assert_string_equal(
        suspicions("always : needs 'action, id' : defaults { id = 'i' },\nwhen { limit = 1 } : needs 'id'"),
        "2: needs 'action', which the schema requires already: leave it out\n"
        "2: needs 'id', which is never missing, as it gives it a value\n"
        "3: needs 'id', which is never missing, as the rule on line 2 (always) gives it a value\n"
        "3: needs 'id', and so does the rule on line 2 (always): once is enough\n");
    assert_has(suspicions("always : refuses 'down',\nwhen { action = 'get' } : needs 'id'"),
               "3: is never of use, as the rule on line 2 (always) refuses all that it holds for\n");
    struct rule_facts facts;
    policy_rule_facts(load("return tool 't' { schema = json [[{\"properties\":{\"ident\":{}}}]],\n"
                           "  rules = { always : needs 'idnet' } }"),
                      arena, &facts);
    assert_int_equal(facts.suspicion_count, 1);
    assert_string_equal(
        text_of(facts.suspicions[0].sentence),
        "'idnet' is not in the schema (did you mean 'ident'?): name it there, so that the model knows of it");
}

static void facts_name_what_rules_mention(void **state)
{
    (void)state;
    struct rule_facts facts;
    struct buf out = buf_in(arena);
    policy_rule_facts(
        load(source_of("when { action = 'get' } : needs 'id' : drops 'limit' : defaults { page = 1 },\n"
                       "when { day = is('a', function() end) } : needs_one_of { 'id', 'name' },\n"
                       "when { action = 'find' } : exclusive { 'id', 'name' },\n"
                       "when { action = 'list' } : refuses 'no'")),
        arena, &facts);
    for (size_t i = 0; i < facts.count; i++) {
        const struct rule_fact *fact = &facts.rules[i];
        buf_printf(&out, "%d%s%s", fact->line, fact->refuses ? " refuses" : "",
                   fact->has_predicate ? " predicate" : "");
        for (size_t m = 0; m < fact->mention_count; m++)
            buf_printf(&out, " %s:" STR_FMT, fact->mentions[m].as, STR_ARG(fact->mentions[m].name));
        buf_byte(&out, '\n');
    }
    assert_string_equal(text_of(buf_view(&out)), "2 when:action needs:id defaults:page drops:limit\n"
                                                 "3 predicate when:day needs_one_of:id needs_one_of:name\n"
                                                 "4 when:action exclusive:id exclusive:name\n"
                                                 "5 refuses when:action\n");
    assert_string_equal(text_of(facts.rules[3].words), "when action is \"list\": refused: no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_one_rule_needs_no_other_drops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_changed_first_is_no_conflict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(predicates_are_known_by_their_function_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_excludes_each_other_is_not_needed_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(defaults_are_of_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(conditions_can_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_the_schemas, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals_leave_something_to_say, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_conflicts_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_schema_rules_still_contradict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_only_strange_is_left_to_lint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(facts_name_what_rules_mention, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy_conflicts", tests, NULL, NULL);
}

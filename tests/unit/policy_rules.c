/* Rules: what they change, what they complain about, how they say it, and what they count. */
#include "policy_support.h"

static const struct policy *rules(const char *text)
{
    return load(arena_printf(arena, "return tool 't' { rules = {\n%s\n} }", text).at);
}

static const char *applied(const struct policy *p, const char *args)
{
    assert_int_equal(normalise(p, args), SAID_NOTHING);
    return json_of(said.args);
}

static const char *complaints(const struct policy *p, const char *args)
{
    struct buf out = buf_in(arena);
    assert_int_equal(normalise(p, args), SAID_REPAIR);
    problems_text(&out, &said.problems);
    return text_of(buf_view(&out));
}

static void drops_and_defaults_make_new_arguments(void **state)
{
    (void)state;
    const struct policy *p = rules(
        "when { action = 'by_ids' } : drops 'limit',\n"
        "when { action = 'by_span' } : defaults { limit = 50, ['opt.deep'] = true } : drops 'ids, opt.x'");
    assert_string_equal(applied(p, "{\"limit\":10,\"action\":\"by_ids\",\"n\":1.10}"),
                        "{\"action\":\"by_ids\",\"n\":1.10}");
    assert_string_equal(applied(p, "{\"action\":\"by_span\"}"),
                        "{\"action\":\"by_span\",\"limit\":50,\"opt.deep\":true}");
    assert_string_equal(applied(p, "{\"action\":\"by_span\",\"limit\":7,\"opt\":{\"x\":1,\"y\":2}}"),
                        "{\"action\":\"by_span\",\"limit\":7,\"opt\":{\"y\":2,\"deep\":true}}");
    const struct json *untouched = value_of("{\"action\":\"other\",\"limit\":10}");
    policy_normalise(p, &a_call, untouched, arena, &said);
    assert_ptr_equal(said.args, untouched);
}

static void conditions_are_values_and_lists(void **state)
{
    (void)state;
    const struct policy *p = rules("when { a = { 1, 'x' }, b = true } : drops 'z',\n"
                                   "when { c = set { 'm', 'k' } } : drops 'z',\n"
                                   "when { d = null } : drops 'z',\n"
                                   "when { ['e.f'] = 2 } : drops 'z'");
    static const char *const hold[] = {"\"a\":1,\"b\":true", "\"a\":1.0,\"b\":true", "\"a\":\"x\",\"b\":true",
                                       "\"c\":\"k\"",        "\"d\":null",           "\"e\":{\"f\":2}",
                                       "\"e.f\":2"};
    static const char *const fail[] = {"\"a\":1", "\"a\":2,\"b\":true", "\"b\":true", "\"c\":\"l\"",
                                       "\"d\":0", "\"e\":{}",           "\"c\":1"};
    for (size_t i = 0; i < sizeof(hold) / sizeof(hold[0]); i++)
        assert_null(strstr(applied(p, text_of(arena_printf(arena, "{\"z\":0,%s}", hold[i]))), "\"z\""));
    for (size_t i = 0; i < sizeof(fail) / sizeof(fail[0]); i++)
        assert_non_null(strstr(applied(p, text_of(arena_printf(arena, "{\"z\":0,%s}", fail[i]))), "\"z\""));
}

static void all_demands_are_told_at_once(void **state)
{
    (void)state;
    const struct policy *p = rules("when { action = 'by_span' } : needs 'start, end',\n"
                                   "needs_one_of { 'id', 'name' },\n"
                                   "exclusive { 'x', 'y', 'z' }");
    assert_string_equal(complaints(p, "{\"action\":\"by_span\",\"end\":null,\"x\":1,\"z\":1}"),
                        "- 'start': required field is missing when action is \"by_span\" — provide a value\n"
                        "- 'end': required field is missing when action is \"by_span\" — provide a value\n"
                        "- arguments: at least one of 'id', 'name' is required — provide one\n"
                        "- 'z': can't be given together with 'x' — remove one of the two\n");
    assert_string_equal(said.problems.list[0].code, "missing");
    assert_string_equal(said.problems.list[3].code, "exclusive");
    assert_string_equal(applied(p, "{\"action\":\"other\",\"id\":1}"), "{\"action\":\"other\",\"id\":1}");
}

static void rules_are_heard_beside_the_schema(void **state)
{
    (void)state;
    const struct policy *p = rules("when { action = 'by_span' } : needs 'start' : defaults { limit = 1 }, "
                                   "always : needs 'limit, start'");
    struct problems problems;
    problems_init(&problems, arena);
    problems_add(&problems,
                 (struct problem){.path = STR("start"), .code = "missing", .message = STR("said already")});
    policy_rules_explain(p, value_of("{\"action\":\"by_span\"}"), &problems);
    assert_int_equal(problems.count, 1);
    assert_int_equal(policy_rule_hits(p)[0], 0);
}

static void a_rule_refuses_in_check(void **state)
{
    (void)state;
    const struct policy *p =
        rules("when { action = 'wipe' } : refuses('no_wiping', 'nothing is wiped here', 'archive it')");
    assert_true(p->hooks[HOOK_CHECK]);
    assert_int_equal(check(p, "{\"action\":\"wipe\"}"), SAID_REFUSE);
    assert_true(str_is(said.code, "no_wiping") && str_is(said.detail, "nothing is wiped here") &&
                str_is(said.hint, "archive it"));
    assert_int_equal(check(p, "{\"action\":\"read\"}"), SAID_NOTHING);
    assert_int_equal(policy_rule_hits(p)[0], 1);
}

static void rules_say_what_they_demand(void **state)
{
    (void)state;
    const struct policy *p =
        rules("when { action = 'by_ids', mode = { 'a', 'b' } } : needs 'ids' : drops 'limit',\n"
              "when { n = 3 } : needs('start', 'end') : defaults { limit = 50 },\n"
              "exclusive('a', 'b'),\n"
              "always : needs_one_of { 'x', 'y' } : refuses 'no'");
    static const char *const words[] = {
        "when action is \"by_ids\" and mode is one of \"a\", \"b\": 'ids' is required; 'limit' is dropped",
        "when n is 3: 'start', 'end' are required; 'limit' is 50 when left out",
        "at most one of 'a', 'b' may be given",
        "at least one of 'x', 'y' is required; refused: no",
    };
    assert_int_equal(p->rule_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(text_of(p->rule_words[i]), words[i]);
}

static void hits_count_what_a_rule_did(void **state)
{
    (void)state;
    const struct policy *p =
        rules("when { a = 1 } : needs 'b', when { a = 1 } : drops 'c', when { a = 2 } : drops 'c'");
    normalise(p, "{\"a\":1}");
    normalise(p, "{\"a\":1,\"b\":1,\"c\":1}");
    normalise(p, "{\"a\":1,\"b\":1}");
    normalise(p, "{\"a\":3}");
    const uint64_t *hits = policy_rule_hits(p);
    assert_true(hits[0] == 1 && hits[1] == 1 && hits[2] == 0);
}

static void defaults_take_the_schemas_word_for_empty_tables(void **state)
{
    (void)state;
    const struct policy *p =
        load("return tool 't' { schema = json "
             "[[{\"properties\":{\"o\":{\"type\":\"object\"},\"l\":{\"type\":\"array\"}}}]],\n"
             "rules = { always : defaults { o = {}, l = {}, q = {} } } }");
    assert_string_equal(applied(p, "{}"), "{\"l\":[],\"o\":{},\"q\":[]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drops_and_defaults_make_new_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(conditions_are_values_and_lists, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_demands_are_told_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rules_are_heard_beside_the_schema, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rule_refuses_in_check, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rules_say_what_they_demand, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hits_count_what_a_rule_did, set_up, tear_down),
        cmocka_unit_test_setup_teardown(defaults_take_the_schemas_word_for_empty_tables, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy_rules", tests, NULL, NULL);
}

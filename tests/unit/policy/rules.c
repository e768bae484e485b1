/* Rules: their changes, problems, descriptions and counters. */
#include "policy/policy_support.h"
#include "golden.h"

static const struct policy *rules(const char *text)
{
    return load(arena_printf(arena, "return tool 't' { rules = {\n%s\n} }", text).at);
}

static const char *applied(const struct policy *p, const char *args)
{
    assert_int_equal(normalise(p, args), OUTCOME_PASS);
    return json_of(said.args);
}

static const char *complaints(const struct policy *p, const char *args)
{
    struct buf out = buf_in(arena);
    assert_int_equal(normalise(p, args), OUTCOME_REPAIR);
    problems_text(&out, &said.problems);
    return text_of(buf_view(&out));
}

TEST(drops_and_defaults_make_new_arguments)
{
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

TEST(conditions_are_values_and_lists)
{
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

/* Returns the letters of the arguments that match this condition. */
static const char *holding(const char *condition, const char *const *args, size_t count)
{
    struct buf out = buf_in(arena);
    const struct policy *p = rules(arena_printf(arena, "when { %s } : drops 'z'", condition).at);
    for (size_t i = 0; i < count; i++)
        if (!strstr(applied(p, arena_printf(arena, "{\"z\":0%s%s}", *args[i] ? "," : "", args[i]).at),
                    "\"z\""))
            buf_byte(&out, (char)('a' + i));
    return text_of(buf_view(&out));
}

TEST(conditions_are_ranges)
{
    static const char *const numbers[] = {
        "\"n\":99.5", "\"n\":100", "\"n\":100.0000000000000000001", "\"n\":1e400", "\"n\":\"101\"",
        "\"n\":null", ""};
    assert_string_equal(holding("n = above(100)", numbers, 7), "cd");
    assert_string_equal(holding("n = at_least(100)", numbers, 7), "bcd");
    assert_string_equal(holding("n = below(100)", numbers, 7), "a");
    assert_string_equal(holding("n = at_most(100)", numbers, 7), "ab");
    assert_string_equal(holding("n = between(99.5, 100)", numbers, 7), "ab");
    static const char *const times[] = {
        "\"t\":\"2026-04-30T23:59:59Z\"", "\"t\":\"2026-05-01\"", "\"t\":\"2026-05-01T01:00:00+02:00\"",
        "\"t\":\"2026-05-01T00:00:01Z\"", "\"t\":\"tomorrow\"",   "\"t\":1777593601"};
    assert_string_equal(holding("t = above '2026-05-01'", times, 6), "d");
    assert_string_equal(holding("t = at_least '2026-05-01'", times, 6), "bd");
    assert_string_equal(holding("t = below '2026-05-01'", times, 6), "ac");
    assert_string_equal(holding("t = at_most '2026-05-01T00:00:00Z'", times, 6), "abc");
    assert_string_equal(holding("t = between('2026-04-30T23:00:00Z', '2026-05-01')", times, 6), "abc");
}

TEST(conditions_test_the_arguments)
{
    static const char *const args[] = {"\"m\":\"a\"", "\"m\":\"b\"", "\"m\":0", "\"m\":null", ""};
    assert_string_equal(holding("m = given", args, 5), "abc");
    assert_string_equal(holding("m = absent", args, 5), "de");
    assert_string_equal(holding("m = none_of { 'a', 0 }", args, 5), "b");
    assert_string_equal(holding("m = none_of('a', 'b')", args, 5), "c");
    assert_string_equal(holding("m = none_of(set { 'a', 'x' })", args, 5), "bc");
    assert_string_equal(holding("['o.m'] = absent, m = none_of 'b'", args, 5), "ac");
}

TEST(conditions_are_predicates)
{
    static const char *const args[] = {"\"d\":\"2026-05-02\"", "\"d\":\"2026-05-04\"", "\"d\":null", "",
                                       "\"d\":\"2026-05-02\",\"k\":1"};
    const char *weekend = "d = is('on a weekend', function(day) return time(day) / 86400 % 7 - 2 < 2 and"
                          " time(day) / 86400 % 7 >= 2 end)";
    assert_string_equal(holding(weekend, args, 5), "ae");
    assert_string_equal(holding(arena_printf(arena, "%s, k = absent", weekend).at, args, 5), "a");
    assert_string_equal(
        holding("d = is('x', function(day, args) args.d, args.z = nil, nil; return args.k end)", args, 5),
        "e");
}

TEST(predicates_of_valid_arguments_only)
{
    const struct policy *p = rules("when { d = is('x', function(d) return d.no.such end) } : needs 'e',\n"
                                   "always : needs 'f'");
    struct problems problems;
    problems_init(&problems, arena);
    policy_rules_explain(p, value_of("{\"d\":1}"), &problems);
    assert_int_equal(problems.count, 1);
    assert_true(str_is(problems.list[0].path, "f"));
}

TEST(a_predicate_that_breaks_names_its_rule)
{
    const struct policy *p = rules("when { k = 1 } : needs 'x',\n"
                                   "when { d = is('before noon',\n"
                                   "  function(d) return d.hour < 12 end) } : refuses 'no'");
    assert_int_equal(normalise(p, "{\"d\":\"9\",\"k\":2}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "p.lua:4: ");
    golden_row("d.hour of a string", said.why.text);
    assert_int_equal(check(p, "{\"d\":\"9\"}"), OUTCOME_POLICY_ERROR);
    assert_int_equal(p->failures->count, 2);
    assert_int_equal(check(p, "{\"k\":\"9\"}"), OUTCOME_PASS);
    options.deadline_ms = POLICY_DEADLINE_MS;
    p = rules("when { d = is('for ever', function() while true do end end) } : needs 'x'");
    assert_int_equal(normalise(p, "{\"d\":1}"), OUTCOME_POLICY_ERROR);
    golden_row("while true do end", said.why.text);
    p = rules("when { d = is('odd', function(d) return { d } end) } : needs 'x'");
    assert_int_equal(normalise(p, "{\"d\":1}"), OUTCOME_POLICY_ERROR);
    golden_row("returns a table", said.why.text);
    golden_check_rows("load", "policy fault: predicates of rules");
}

TEST(a_predicate_decides_what_is_needed)
{
    const struct policy *p =
        rules("when { n = is('odd', function(n) return n % 2 == 1 end) } : needs 'why',\n"
              "when { n = is('above all', function(n) return n > 90 end) } : refuses('top', 'no')");
    assert_string_equal(complaints(p, "{\"n\":3}"), "- 'why' is missing when n is odd — provide a value\n");
    assert_string_equal(applied(p, "{\"n\":4}"), "{\"n\":4}");
    assert_int_equal(check(p, "{\"n\":92}"), OUTCOME_REFUSE);
    assert_true(str_is(said.code, "top"));
    assert_true(p->rule_hits[0] == 1 && p->rule_hits[1] == 1);
}

TEST(errors_in_conditions_are_found_at_load)
{
    static const char *const slips[][1] = {
        {"when { n = above } : needs 'x'"},
        {"when { n = above() } : needs 'x'"},
        {"when { n = above 'soon' } : needs 'x'"},
        {"when { n = at_least(1/0) } : needs 'x'"},
        {"when { n = between(10, 1) } : needs 'x'"},
        {"when { n = between(1, '2026-05-01') } : needs 'x'"},
        {"when { n = betwen(1, 2) } : needs 'x'"},
        {"when { n = { 1, above(2) } } : needs 'x'"},
        {"when { n = { 1, given } } : needs 'x'"},
        {"when { n = none_of {} } : needs 'x'"},
        {"when { n = function() end } : needs 'x'"},
        {"when { n = is(function() end) } : needs 'x'"},
        {"when { n = is 'fast' } : needs 'x'"},
        {"when { n = is(' ', function() end) } : needs 'x'"},
        {"when { n = seen() } : needs 'x'"},
        {"exclusive 'a'"},
        {"needs_one_of 'a'"},
        {"always : needs 'a, b, a'"},
    };
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
        const char *fault =
            fault_of(arena_printf(arena, "return tool 't' { rules = {\n%s\n} }", slips[i][0]).at);
        if (!fault)
            fail_msg("%s loads", slips[i][0]);
        golden_row(slips[i][0], fault);
    }
    golden_check_rows("load", "rules: conditions that are refused");
}

TEST(all_problems_are_reported_at_once)
{
    const struct policy *p = rules("when { action = 'by_span' } : needs 'start, end',\n"
                                   "needs_one_of { 'id', 'name' },\n"
                                   "exclusive { 'x', 'y', 'z' }");
    golden_check("feedback", "rules: all that is missing or in conflict",
                 complaints(p, "{\"action\":\"by_span\",\"end\":null,\"x\":1,\"z\":1}"));
    assert_string_equal(said.problems.list[0].code, "missing");
    assert_string_equal(said.problems.list[3].code, "exclusive");
    assert_string_equal(applied(p, "{\"action\":\"other\",\"id\":1}"), "{\"action\":\"other\",\"id\":1}");
}

TEST(rules_are_reported_beside_the_schema)
{
    const struct policy *p = rules("when { action = 'by_span' } : needs 'start' : defaults { limit = 1 }, "
                                   "always : needs 'limit, start'");
    struct problems problems;
    problems_init(&problems, arena);
    problems_add(&problems,
                 (struct problem){.path = STR("start"), .code = "missing", .message = STR("said already")});
    policy_rules_explain(p, value_of("{\"action\":\"by_span\"}"), &problems);
    assert_int_equal(problems.count, 1);
    assert_int_equal(p->rule_hits[0], 0);
}

TEST(a_rule_refuses_in_check)
{
    const struct policy *p =
        rules("when { action = 'wipe' } : refuses('no_wiping', 'nothing is wiped here', 'archive it')");
    assert_true(p->hooks[HOOK_CHECK]);
    assert_int_equal(check(p, "{\"action\":\"wipe\"}"), OUTCOME_REFUSE);
    assert_true(str_is(said.code, "no_wiping") && str_is(said.detail, "nothing is wiped here") &&
                str_is(said.hint, "archive it"));
    assert_int_equal(check(p, "{\"action\":\"read\"}"), OUTCOME_PASS);
    assert_int_equal(p->rule_hits[0], 1);
}

TEST(rules_describe_their_needs)
{
    const struct policy *p =
        rules("when { action = 'by_ids', mode = { 'a', 'b' } } : needs 'ids' : drops 'limit',\n"
              "when { n = 3 } : needs('start', 'end') : defaults { page = 50 },\n"
              "exclusive('a', 'b'),\n"
              "always : needs_one_of { 'x', 'y' },\n"
              "when { n = above(100), m = between(1, 2.5) } : refuses 'no',\n"
              "when { n = below(0), m = at_least(3), o = at_most(4) } : refuses 'no',\n"
              "when { s = above '2026-05-01', e = between('2026-05-01', '2026-06-01') } : refuses 'no',\n"
              "when { m = none_of { 'a', 'b' }, n = none_of(1), o = given, p = absent } : refuses 'no',\n"
              "when { z = 1, d = is('on a weekend', function() end) } : refuses 'no'");
    assert_int_equal(p->rule_count, 9);
    struct buf described = buf_in(arena);
    for (size_t i = 0; i < 9; i++)
        buf_printf(&described, STR_FMT "\n", STR_ARG(policy_rule_words(p, i)));
    golden_check("feedback", "rules: in words", text_of(buf_view(&described)));
}

TEST(hits_count_the_effects_of_a_rule)
{
    const struct policy *p =
        rules("when { a = 1 } : needs 'b', when { a = 1 } : drops 'c', when { a = 2 } : drops 'c'");
    normalise(p, "{\"a\":1}");
    normalise(p, "{\"a\":1,\"b\":1,\"c\":1}");
    normalise(p, "{\"a\":1,\"b\":1}");
    normalise(p, "{\"a\":3}");
    const uint64_t *hits = p->rule_hits;
    assert_true(hits[0] == 1 && hits[1] == 1 && hits[2] == 0);
}

TEST(the_schema_decides_the_type_of_empty_default_tables)
{
    const struct policy *p =
        load("return tool 't' { schema = json "
             "[[{\"properties\":{\"o\":{\"type\":\"object\"},\"l\":{\"type\":\"array\"}}}]],\n"
             "rules = { always : defaults { o = {}, l = {}, q = {} } } }");
    assert_string_equal(applied(p, "{}"), "{\"l\":[],\"o\":{},\"q\":[]}");
}

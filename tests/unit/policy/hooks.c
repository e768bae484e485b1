/* The results that each hook may return, and the call that it gets. */
#include "policy/policy_support.h"
#include "golden.h"

TEST(check_returns_nothing_repair_refuse_or_ask)
{
    assert_int_equal(check_body("", "{}"), OUTCOME_PASS);
    assert_int_equal(check_body("return nil", "{}"), OUTCOME_PASS);
    assert_int_equal(
        check_body(
            "return repair { path = 'end', code = 'before_start', message = 'must not be before start',\n"
            "expected = 'later', got = args.x, suggest = { start = 1 } }",
            "{\"x\":[1.10]}"),
        OUTCOME_REPAIR);
    assert_int_equal(said.problems.count, 1);
    const struct problem *p = &said.problems.list[0];
    assert_true(str_is(p->path, "end") && str_is(p->message, "must not be before start") &&
                str_is(p->expected, "\"later\""));
    assert_string_equal(p->code, "before_start");
    assert_string_equal(json_of(said.suggest), "{\"start\":1}");
    assert_int_equal(
        check_body("return repair { { message = 'a' }, { path = 'p', message = 'b', suggest = 5 } }", "{}"),
        OUTCOME_REPAIR);
    assert_int_equal(said.problems.count, 2);
    assert_true(str_is(said.problems.list[1].suggestion, "5") && said.problems.list[0].path.len == 0);
    assert_int_equal(check_body("return repair 'do it better'", "{}"), OUTCOME_REPAIR);
    assert_true(str_is(said.problems.list[0].message, "do it better"));
    assert_int_equal(check_body("return refuse('no', 'not allowed', 'ask first')", "{}"), OUTCOME_REFUSE);
    assert_true(str_is(said.code, "no") && str_is(said.detail, "not allowed") &&
                str_is(said.hint, "ask first"));
    assert_int_equal(check_body("return refuse 'not allowed'", "{}"), OUTCOME_REFUSE);
    assert_true(str_is(said.code, "refused") && str_is(said.detail, "not allowed"));
    assert_int_equal(check_body("return ask('Which?', { 'a', 'b' })", "{}"), OUTCOME_ASK);
    assert_true(str_is(said.detail, "Which?"));
    assert_string_equal(json_of(said.choices), "[\"a\",\"b\"]");
}

TEST(run_returns_a_value_or_a_failure)
{
    assert_int_equal(run_body("return { sum = args.a + args.b }", "{\"a\":1,\"b\":2}"), OUTCOME_VALUE);
    assert_string_equal(json_of(said.value), "{\"sum\":3}");
    assert_int_equal(run_body("return 'done'", "{}"), OUTCOME_VALUE);
    assert_string_equal(json_of(said.value), "\"done\"");
    assert_int_equal(run_body("return tool_return { value = { a = 1 }, content = { { type = 'text', text = "
                              "'x' } }, metadata = { m = 1 } }",
                              "{}"),
                     OUTCOME_VALUE);
    assert_string_equal(json_of(said.value), "{\"a\":1}");
    assert_string_equal(json_of(said.content), "[{\"text\":\"x\",\"type\":\"text\"}]");
    assert_string_equal(json_of(said.metadata), "{\"m\":1}");
    assert_int_equal(run_body("return failed('not_there', 'no such thing', 'look again')", "{}"),
                     OUTCOME_FAILED);
    assert_true(str_is(said.code, "not_there") && str_is(said.hint, "look again"));
    assert_int_equal(run_body("return transient('busy', 2.5)", "{}"), OUTCOME_TRANSIENT);
    assert_true(said.after_s == 3 && str_is(said.detail, "busy"));
    assert_int_equal(run_body("return transient('busy', 1 / 0)", "{}"), OUTCOME_TRANSIENT);
    assert_int_equal(said.after_s, 1000000000);
    assert_int_equal(run_body("return transient('busy', 0 / 0)", "{}"), OUTCOME_TRANSIENT);
    assert_int_equal(said.after_s, -1);
    assert_int_equal(run_body("return transient 'busy'", "{}"), OUTCOME_TRANSIENT);
    assert_int_equal(said.after_s, -1);
    assert_int_equal(run_body("return retry 'use another'", "{}"), OUTCOME_RETRY);
    assert_true(str_is(said.detail, "use another"));
    assert_int_equal(run_body("return need_user('Which?')", "{}"), OUTCOME_ASK);
    assert_int_equal(run_body("return ok()", "{}"), OUTCOME_POLICY_ERROR);
}

TEST(result_is_judged)
{
    assert_int_equal(judge_body("", "{}"), OUTCOME_PASS);
    assert_int_equal(judge_body("return ok { coverage = 'SATISFIED', facts = { n = #result.list },\n"
                                "follow_up = { tool = 'x', args = { id = 1 } } }",
                                "{\"list\":[1,2]}"),
                     OUTCOME_OK);
    assert_true(str_is(said.coverage, "SATISFIED"));
    assert_string_equal(json_of(said.facts), "{\"n\":2}");
    assert_string_equal(json_of(said.follow_up), "{\"args\":{\"id\":1},\"tool\":\"x\"}");
    assert_int_equal(judge_body("return ok 'NEEDS_MORE_TOOLS'", "{}"), OUTCOME_OK);
    assert_int_equal(judge_body("return ok { coverage = 'SATISFYED' }", "{}"), OUTCOME_POLICY_ERROR);
    golden_row("result: ok { coverage = 'SATISFYED' }", said.why.text);
    assert_int_equal(
        judge_body("return partial('more', 'there is more', { page = result.page + 1 }, 'go on')",
                   "{\"page\":1}"),
        OUTCOME_PARTIAL);
    assert_string_equal(json_of(said.next_args), "{\"page\":2}");
    assert_true(str_is(said.code, "more") && str_is(said.hint, "go on"));
    assert_int_equal(judge_body("return garbage('empty', 'nothing in it', 'widen')", "{}"), OUTCOME_GARBAGE);
    assert_int_equal(judge_body("return broken('cut', 'cut in the middle')", "{}"), OUTCOME_BROKEN);
    assert_int_equal(judge_body("return transient('later', 5)", "{}"), OUTCOME_TRANSIENT);
    assert_int_equal(judge_body("return failed 'no'", "{}"), OUTCOME_FAILED);
    assert_int_equal(judge_body("return need_user 'Which?'", "{}"), OUTCOME_ASK);
    assert_int_equal(judge_body("return ok { facts = { asked = call.args.asked } }", "{}"), OUTCOME_OK);
    assert_string_equal(json_of(said.facts), "{\"asked\":1}");
    assert_int_equal(judge_body("return repair 'x'", "{}"), OUTCOME_POLICY_ERROR);
    golden_row("result: repair 'x'", said.why.text);
    golden_check_rows("load", "policy fault: what a result hook returns");
}

TEST(normalise_changes_or_repairs)
{
    assert_string_equal(normalised("args.n = tonumber(args.n) return args", "{\"n\":\"5\"}"), "{\"n\":5}");
    assert_int_equal(
        normalise(with_hook("normalise", "args", "return repair { path = 'n', message = 'm' }"), "{}"),
        OUTCOME_REPAIR);
    assert_int_equal(said.problems.count, 1);
    const struct policy *p = load("return tool 't' { rules = { always : needs 'x' }, normalise = function() "
                                  "error('not reached') end }");
    assert_int_equal(normalise(p, "{}"), OUTCOME_REPAIR);
}

TEST(prepare_rewords_or_hides)
{
    const struct json *def = value_of("{\"name\":\"t\", \"inputSchema\":{\"z\":1.10}}");
    const struct policy *p = with_hook(
        "prepare", "def, call", "if call.user == 'eve' then return nil end def.title = call.user return def");
    struct policy_call call = {.user = STR("ana")};
    policy_prepare(p, &call, def, arena, &said);
    assert_string_equal(json_of(said.value),
                        "{\"name\":\"t\",\"inputSchema\":{\"z\":1.10},\"title\":\"ana\"}");
    call.user = STR_LIT("eve");
    policy_prepare(p, &call, def, arena, &said);
    assert_true(said.kind == OUTCOME_PASS && !said.value);
    policy_prepare(load("return tool 't' {}"), &call, def, arena, &said);
    assert_ptr_equal(said.value, def);
    policy_prepare(with_hook("prepare", "def", "return 5"), &call, def, arena, &said);
    assert_int_equal(said.kind, OUTCOME_POLICY_ERROR);
}

static double last_done, last_total;

static void on_progress(void *owner, double done, double total, struct str message)
{
    assert_ptr_equal(owner, &last_done);
    assert_true(str_is(message, "half"));
    last_done = done;
    last_total = total;
}

TEST(the_call_has_its_fields)
{
    struct policy_call call = {.tool = STR("t"),
                               .session = STR("s1"),
                               .goal = STR("g"),
                               .step = STR("m1"),
                               .user = STR("ana"),
                               .uid = 1000,
                               .turn = 3,
                               .attempt = 2,
                               .history = value_of("[{\"tool\":\"x\"}]"),
                               .facts = value_of("{\"n\":1}"),
                               .owner = &last_done,
                               .progress = on_progress};
    const struct policy *p =
        with_hook("run", "args, call",
                  "call.progress(1, 2, 'half')\n"
                  "return { call.tool, call.session, call.goal, call.step, call.user, call.uid, call.turn,\n"
                  "call.attempt, call.history[1].tool, call.facts.n, call.peer.user, #call.history }");
    policy_run(p, &call, value_of("{}"), arena, &said);
    assert_int_equal(said.kind, OUTCOME_VALUE);
    assert_string_equal(json_of(said.value),
                        "[\"t\",\"s1\",\"g\",\"m1\",\"ana\",1000,3,2,\"x\",1,\"ana\",1]");
    assert_true(last_done == 1 && last_total == 2);
    call = (struct policy_call){.tool = STR("t")};
    p = with_hook("run", "args, call",
                  "call.progress(1) return { #call.history, next(call.facts) == nil, call.goal == nil }");
    policy_run(p, &call, value_of("{}"), arena, &said);
    assert_string_equal(json_of(said.value), "[0,true,true]");
}

TEST(history_and_facts_are_loaded_only_if_read)
{
    assert_true(with_hook("check", "args, call", "return call.history[1] and nil")->wants.history);
    assert_true(with_hook("check", "args, c", "local x = c['facts']")->wants.facts);
    const struct policy *p = with_hook(
        "result", "r", "-- call.history\n local s = 'call.facts' return ok { facts = { history = 1 } }");
    assert_true(!p->wants.history && !p->wants.facts);
}

TEST(a_broken_hook_names_its_line)
{
    assert_int_equal(check_body("local x = args.a.b", "{}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "p.lua:3: ");
    golden_row("check: args.a.b", said.why.text);
    assert_int_equal(check_body("return refuse(args)", "{}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "p.lua:2: ");
    golden_row("check: return refuse(args)", said.why.text);
    assert_int_equal(check_body("local r = refuse(args) return r", "{}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "p.lua:3: ");
    golden_row("check: local r = refuse(args)", said.why.text);
    golden_check_rows("load", "policy fault: a hook that breaks");
}

TEST(long_paths_are_whole_in_messages)
{
    struct policy_load_errors faults = {.arena = arena};
    struct str name = STR("/a/rather/long/path/to/a/folder/in/which/an/operator/keeps/policies/t.lua");
    assert_int_equal(policy_set_load_string(name,
                                            STR_LIT("return tool 't' { check = function() error('x') end }"),
                                            NULL, &loaded, &faults),
                     OK);
    assert_int_equal(check(policy_set_at(loaded, 0), "{}"), OUTCOME_POLICY_ERROR);
    assert_string_equal(said.why.text,
                        "/a/rather/long/path/to/a/folder/in/which/an/operator/keeps/policies/t.lua:1: x");
    assert_int_equal(
        policy_set_load_string(name, STR_LIT("return tool 't' { titel = 1 }"), NULL, &loaded, &faults),
        ERR_POLICY);
    assert_has(text_of(faults.list[0]),
               "/a/rather/long/path/to/a/folder/in/which/an/operator/keeps/policies/t.lua:1: unknown field");
}

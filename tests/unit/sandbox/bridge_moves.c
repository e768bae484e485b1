/* Values that a policy moves keep their bytes. */
#include "policy/policy_support.h"

#include "json/diff.h"

#define ODD_A "{ \"z\":1.10, \"a\" : \"caf\\u00e9\",\"id\":9007199254740993 }"
#define ODD_B "{\"y\":1E2,\"b\":[ ],\"x\":{ }}"

TEST(tables_keep_their_bytes_wherever_they_go)
{
    assert_string_equal(normalised("args.b = args.a args.a = nil", "{\"a\":" ODD_A "}"), "{\"b\":" ODD_A "}");
    assert_string_equal(normalised("args.a, args.b = args.b, args.a", "{\"a\":" ODD_A ",\"b\":" ODD_B "}"),
                        "{\"a\":" ODD_B ",\"b\":" ODD_A "}");
    assert_string_equal(normalised("return { list = { args.a, args.a } }", "{\"a\":" ODD_A "}"),
                        "{\"list\":[" ODD_A "," ODD_A "]}");
    assert_string_equal(normalised("return args.deep.er", "{\"deep\":{\"er\":" ODD_A "}}"), ODD_A);
    assert_string_equal(normalised("args.b = { args, 1 }\n return args.b[1].a", "{\"a\":" ODD_A "}"), ODD_A);
}

TEST(lists_may_be_sorted_and_filtered)
{
    assert_string_equal(normalised("table.sort(args.l, function(a, b) return a.n < b.n end)",
                                   "{\"l\":[{ \"n\":3.0,\"b\":1 },{\"z\":1.50,\"n\":1},{\"n\":2}]}"),
                        "{\"l\":[{\"z\":1.50,\"n\":1},{\"n\":2},{ \"n\":3.0,\"b\":1 }]}");
    assert_string_equal(normalised("local kept = {}\n for _, one in ipairs(args.l) do\n"
                                   "if one.n > 1 then kept[#kept + 1] = one end end\n args.l = kept",
                                   "{\"l\":[{ \"n\":3.0 },{\"n\":1},{\"q\":1,\"n\":2}]}"),
                        "{\"l\":[{ \"n\":3.0 },{\"q\":1,\"n\":2}]}");
    assert_string_equal(normalised("table.remove(args.l, 1)", "{\"l\":[1,{ \"z\":1,\"a\":1e0 }]}"),
                        "{\"l\":[{ \"z\":1,\"a\":1e0 }]}");
}

TEST(a_moved_table_may_be_changed)
{
    assert_string_equal(
        normalised("args.b, args.a = args.a, nil\n args.b.a = 'new' args.b.more = 1", "{\"a\":" ODD_A "}"),
        "{\"b\":{\"z\":1.10,\"a\":\"new\",\"id\":9007199254740993,\"more\":1}}");
    assert_string_equal(normalised("local o = args.l[1] table.remove(o.x) args.o = o args.l = nil",
                                   "{\"l\":[{\"y\":1,\"x\":[5]}]}"),
                        "{\"o\":{\"y\":1,\"x\":[]}}");
}

TEST(results_and_values_keep_their_bytes_too)
{
    assert_int_equal(run_body("return args.a", "{\"a\":" ODD_A "}"), OUTCOME_VALUE);
    assert_string_equal(json_of(said.value), ODD_A);
    run_body("return tool_return { value = { got = args.a }, metadata = args.b }",
             "{\"a\":" ODD_A ",\"b\":" ODD_B "}");
    assert_string_equal(json_of(said.value), "{\"got\":" ODD_A "}");
    assert_string_equal(json_of(said.metadata), ODD_B);
    assert_int_equal(judge_body("return ok { facts = { first = result.l[2] } }", "{\"l\":[1," ODD_A "]}"),
                     OUTCOME_OK);
    assert_string_equal(json_of(said.facts), "{\"first\":" ODD_A "}");
    judge_body("return partial('more', 'd', result.next)", "{\"next\":" ODD_B "}");
    assert_string_equal(json_of(said.next_args), ODD_B);
    judge_body("return ok { facts = { asked = call.args, id = result.id } }",
               "{\"id\":12345678901234567890}");
    assert_string_equal(json_of(said.facts), "{\"asked\":{\"asked\":1},\"id\":12345678901234567890}");
}

TEST(any_number_of_ids_may_be_copied)
{
    struct buf args = buf_in(arena), becomes = buf_in(arena);
    for (int i = 0; i < 40; i++) {
        buf_printf(&args, "%s\"n%02d\":9007199254%02d99321", i ? "," : "{", i, i + 50);
        buf_printf(&becomes, "%s9007199254%02d99321", i ? "," : "[", i + 50);
    }
    buf_text(&args, "}");
    buf_text(&becomes, "]");
    assert_string_equal(
        normalised("local l = {}\n for i = 0, 39 do l[i + 1] = args[('n%02d'):format(i)] end\n"
                   "return { l = l }",
                   text_of(buf_view(&args))),
        arena_printf(arena, "{\"l\":%s}", text_of(buf_view(&becomes))).at);
}

/* The collector may free an unreferenced table: a new table at the same address is another value. */
TEST(new_tables_are_not_taken_for_old_ones)
{
    struct buf args = buf_in(arena);
    buf_text(&args, "{\"l\":[");
    for (int i = 0; i < 500; i++)
        buf_printf(&args, "%s{\"z\":[1.0],\"a\":1.0}", i ? "," : "");
    buf_text(&args, "]}");
    const struct policy *policy =
        with_hook("normalise", "args",
                  "args.l = nil\n for i = 1, 30000 do local t = { { i }, a = i } end\n"
                  "local made = {}\n for i = 1, 500 do made[i] = { z = { 1 }, a = 1 } end\n"
                  "args.made = made");
    assert_int_equal(normalise(policy, text_of(buf_view(&args))), OUTCOME_PASS);
    const struct json *made = json_get_text(said.args, "made");
    for (uint32_t i = 0; i < 500; i++)
        assert_string_equal(json_of(&made->items[i]), "{\"a\":1,\"z\":[1]}");
}

TEST(the_patch_has_the_changes)
{
    const struct json *before = value_of("{\"a\":" ODD_A ",\"l\":[1.0,{\"x\":1,\"y\":2}],\"q\":1}");
    policy_normalise(with_hook("normalise", "args", "args.l[2].y = 3 args.q = nil args.b = args.a"), &a_call,
                     before, arena, &said);
    struct json patch = json_patch(arena, before, said.args);
    assert_string_equal(json_of(&patch), "[{\"op\":\"remove\",\"path\":\"/q\"},"
                                         "{\"op\":\"replace\",\"path\":\"/l/1/y\",\"value\":3},"
                                         "{\"op\":\"add\",\"path\":\"/b\",\"value\":" ODD_A "}]");
    policy_normalise(with_hook("normalise", "args", "args.l[2].y = 2 args.q = 1"), &a_call, before, arena,
                     &said);
    assert_ptr_equal(said.args, before);
}

/* ---- long strings ---------------------------------------------------------------------------- */

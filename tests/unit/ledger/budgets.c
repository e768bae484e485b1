/* What random walks (model.c) do not reach of budgets, steps and limits: agents, batches, full tables, ends
 * of ranges.
 */

#include "ledger/ledger_case.h"

static void effects(struct ledger_case *t, enum ledger_effects effects, uint32_t same_call)
{
    t->limits.effects = effects;
    t->limits.same_call = same_call;
}

FIXTURE_OF(case_begin, case_end)

#define STORY(name) TEST_OF(name, struct ledger_case *t)

static void numbered(struct ledger_case *t, const char *tool, unsigned from, unsigned count)
{
    char arguments[16];
    for (unsigned i = from; i < from + count; i++) {
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        case_runs(t, tool, arguments, "done");
    }
}

/* 256 counts and a window of 32: the next call may be one that was forgotten. */
STORY(with_too_many_writes_nothing_new_is_destroyed)
{
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    numbered(t, "delete", 0, 289);
    assert_string_equal(case_asks(t, "delete", "{500}"), "refuse writes_per_turn");
    assert_string_equal(case_asks(t, "delete", "{5}"), "refuse same_call");
    effects(t, LEDGER_EFFECTS_WRITE, 2);
    assert_string_equal(case_asks(t, "write", "{500}"), "run"); /* with a note */
    assert_true(str_is(t->answer.would, "writes_per_turn"));
    effects(t, LEDGER_EFFECTS_READ, 3);
    assert_string_equal(case_asks(t, "read", "{500}"), "run");
    assert_int_equal(t->answer.would.len, 0);
    case_turn(t, 2);
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    case_runs(t, "delete", "{500}", "done");
}

/* The main agent's loop is seen although three others work beside it. */
STORY(agents_do_not_push_each_others_calls_out)
{
    effects(t, LEDGER_EFFECTS_READ, 5);
    for (unsigned i = 0; i < 2; i++)
        case_runs(t, "poll", "{}", "same");
    t->place.agent = 7;
    numbered(t, "read", 0, 100);
    t->place.agent = 8;
    numbered(t, "read", 0, 100);
    t->place.agent = 0;
    assert_string_equal(case_asks(t, "poll", "{}"), "refuse loop");
    t->place.agent = 9;
    numbered(t, "read", 0, 100);
    t->place.agent = 10;
    numbered(t, "read", 0, 100);
    t->place.agent = 7;
    numbered(t, "read", 100, 100);
    t->place.agent = 0; /* it is none of the three that called last */
    assert_string_equal(case_asks(t, "poll", "{}"), "run");
}

/* What re-arms a call does not leave the window before it. */
STORY(a_write_outlasts_what_it_re_arms)
{
    effects(t, LEDGER_EFFECTS_WRITE, 1);
    case_runs(t, "put", "{1}", "done");
    t->place.agent = 7;
    case_runs(t, "save", "{1}", "done");
    effects(t, LEDGER_EFFECTS_READ, 5);
    numbered(t, "read", 0, 2 * LEDGER_WINDOW);
    t->place.agent = 0;
    effects(t, LEDGER_EFFECTS_WRITE, 1);
    case_runs(t, "put", "{1}", "done");
}

/* A call that is still to be reported stays, so that what it came to counts. */
STORY(a_call_that_did_not_run_after_all_is_not_spent)
{
    effects(t, LEDGER_EFFECTS_WRITE, 1);
    assert_string_equal(case_asks(t, "put", "{1}"), "run");
    uint64_t admission = t->admissions;
    effects(t, LEDGER_EFFECTS_READ, 5);
    numbered(t, "read", 0, 3 * LEDGER_WINDOW);
    effects(t, LEDGER_EFFECTS_WRITE, 1);
    case_settle_as(t, "put", "{1}", admission, LEDGER_CLASS_RELEASED, NULL);
    case_runs(t, "put", "{1}", "done");
}

/* What destroys is remembered before what only writes. */
STORY(edits_do_not_bar_what_destroys)
{
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    case_runs(t, "delete", "{0}", "done");
    effects(t, LEDGER_EFFECTS_WRITE, 2);
    numbered(t, "edit", 0, 400);
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    case_runs(t, "delete", "{1}", "done");
    effects(t, LEDGER_EFFECTS_WRITE, 2);
    numbered(t, "edit", 400, 400);
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    assert_string_equal(case_asks(t, "delete", "{1}"), "refuse same_call");
    assert_string_equal(case_asks(t, "delete", "{0}"), "refuse same_call");
}

/* A silence gives back nothing that destroys, also where the call leaves the window after it. */
STORY(a_guessed_turn_forgets_no_deletion)
{
    t->place.turn = 0;
    t->place.turn_idle_s = 90;
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    case_runs(t, "delete", "{0}", "done");
    case_now += 100000;
    effects(t, LEDGER_EFFECTS_READ, 5);
    numbered(t, "read", 0, 2 * LEDGER_WINDOW);
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    assert_string_equal(case_asks(t, "delete", "{0}"), "refuse same_call");
}

STORY(each_agent_has_its_own_calls_without_progress)
{
    effects(t, LEDGER_EFFECTS_READ, 9);
    for (unsigned i = 0; i < 3; i++) {
        t->place.agent = 7;
        case_admit_as(t, "read", "{1}", LEDGER_SO_FAR_REFUSED);
        assert_int_equal(t->answer.no_progress, i + 1);
        t->place.agent = 0;
        char arguments[16];
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        case_runs(t, "look", arguments, arguments);
        assert_int_equal(t->settled.no_progress, 0);
    }
}

STORY(an_error_with_another_number_is_the_same)
{
    char text[64], command[16];
    effects(t, LEDGER_EFFECTS_UNKNOWN, 3);
    for (unsigned i = 1; i <= 11; i++) {
        assert_string_equal(case_asks(t, "fetch", "{1}"), "run");
        snprintf(text, sizeof(text), "no route after %u ms (request %08xa)", 10 * i, i);
        case_settle_as(t, "fetch", "{1}", t->admissions, LEDGER_CLASS_TOOL_ERROR, text);
        assert_int_equal(t->settled.failed_alike, i);
        snprintf(command, sizeof(command), "{%u}", i);
        case_runs(t, "shell", command, command);
    }
    assert_string_equal(case_asks(t, "fetch", "{1}"), "refuse same_failure");
}

STORY(calls_that_were_sent_together_are_of_one_step)
{
    effects(t, LEDGER_EFFECTS_READ, 3);
    t->place.batch = 1;
    for (int i = 0; i < 3; i++)
        case_runs(t, "get", "{1}", "r");
    assert_string_equal(case_asks(t, "get", "{1}"), "refuse same_call");
    t->place.batch = 2;
    case_runs(t, "get", "{1}", "r");
    assert_int_equal(t->answer.spent, 2);
    t->place.batch = 3;
    assert_string_equal(case_asks(t, "get", "{1}"), "refuse loop");
}

STORY(a_call_that_did_not_run_counts_in_no_limit)
{
    t->limits.tool.calls_per_session = 1;
    for (int i = 0; i < 3; i++) { /* the upstream is down and gives a retry time */
        assert_string_equal(case_asks(t, "search", "{1}"), "run");
        struct ledger_call settle = {.place = t->place,
                                     .admission = t->admissions,
                                     .tool = STR_LIT("search"),
                                     .arguments = case_hash("{1}"),
                                     .class = LEDGER_CLASS_TRANSIENT,
                                     .label = STR_LIT("unavailable"),
                                     .limits = &t->limits,
                                     .not_begun = true};
        ledger_ask(t->ledger, LEDGER_SETTLE, &settle, t->arena, &t->settled, NULL, NULL);
    }
    case_runs(t, "search", "{2}", "2");
    assert_string_equal(case_asks(t, "search", "{3}"), "refuse calls_per_session");
}

STORY(costs_beyond_32_bits_are_counted)
{
    t->limits.tool.cost_per_session = 100000000 * (uint64_t)LEDGER_COST_UNIT;
    t->limits.costs = true;
    t->limits.cost = 60000000 * (uint64_t)LEDGER_COST_UNIT;
    case_runs(t, "search", "{1}", "1");
    assert_string_equal(case_asks(t, "search", "{2}"), "refuse cost_per_session");
    assert_int_equal(t->answer.used, 60000000 * (uint64_t)LEDGER_COST_UNIT);
}

/* Found from outside: the pause lasted until the clock had come back to where it was. */
STORY(a_pause_ends_also_if_the_clock_was_set_back)
{
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    case_runs(t, "job_status", "{1}", "running");
    case_now += 1000 - 3600000;
    assert_string_equal(case_asks(t, "job_status", "{1}"), "refuse too_soon");
    case_now += 5000;
    case_runs(t, "job_status", "{1}", "running");
}

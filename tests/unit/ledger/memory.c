/* What random walks do not reach: ends of ranges, the bound of facts, and how long a session lives. */

#include "ledger/ledger_case.h"

#include "base/buf.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"

static void be_quiet(void)
{
    log_quiet();
}

FIXTURE_OF(case_begin, case_end)
GROUP(be_quiet, do_nothing)

#define STORY(name) TEST_OF(name, struct ledger_case *t)

static struct json parsed(struct ledger_case *t, const char *text)
{
    struct json value;
    struct json_error fault;
    assert_int_equal(json_parse(t->arena, str_of(text), NULL, &value, &fault), OK);
    return value;
}

static struct ledger_call admit_of(const struct ledger_case *t, const char *tool, const char *args)
{
    return (struct ledger_call){.place = t->place,
                                .admission = t->admissions,
                                .tool = str_of(tool),
                                .arguments = case_hash(args),
                                .limits = &t->limits};
}

static void give(struct ledger_case *t, const char *tool, const char *args, const struct hash128 *ids,
                 size_t count, const struct json *facts)
{
    assert_string_equal(case_asks(t, tool, args), "run");
    struct ledger_call settle = {.place = t->place,
                                 .admission = t->admissions,
                                 .tool = str_of(tool),
                                 .arguments = case_hash(args),
                                 .label = STR_LIT("ok"),
                                 .result = case_hash(args),
                                 .limits = &t->limits,
                                 .gives_ids = ids,
                                 .gives_id_count = count,
                                 .facts = facts};
    ledger_ask(t->ledger, LEDGER_SETTLE, &settle, t->arena, &t->settled, NULL, NULL);
    assert_int_equal(t->settled.error, OK);
}

static struct ledger_answer view_of(struct ledger_case *t)
{
    struct ledger_answer view;
    struct ledger_call request = {.place = t->place};
    ledger_ask(t->ledger, LEDGER_VIEW, &request, t->arena, &view, NULL, NULL);
    return view;
}

static const char *text_of(struct ledger_case *t, const struct json *value)
{
    struct buf buf = buf_in(t->arena);
    json_write(&buf, value);
    buf_byte(&buf, '\0');
    return buf.at;
}

/* ---- ends of ranges ------------------------------------------------------- */

/* The store keeps a session of which the ledger thinks that it is over: it was loaded for ever. */
STORY(a_clock_beyond_the_second_that_a_session_can_hold_ends)
{
    case_now = ((int64_t)UINT32_MAX + 100000) * 1000;
    case_runs(t, "get", "{1}", "r");
    case_runs(t, "get", "{2}", "r");
    assert_string_equal(case_asks(t, "get", "{3}"), "run");
}

STORY(a_turn_256_turns_ago_is_not_the_current_one)
{
    case_turn(t, 7);
    case_runs(t, "get", "{1}", "r");
    case_runs(t, "get", "{1}", "r");
    case_turn(t, 7 + 256);
    case_runs(t, "get", "{1}", "r");
    assert_int_equal(t->settled.repeats, 1);
}

/* ---- ids ------------------------------------------------------------------ */

/* Ids are stored one after the other: a string across two of them is not an id. */
STORY(a_string_across_two_ids_is_not_seen)
{
    struct hash128 given[] = {{1, 0x0102030405060708u}, {2, 0x1112131415161718u}};
    struct hash128 asked[] = {{1, 0x0506070811121314u}, {1, 0x0102030405060708u}};
    struct ledger_call see = {.place = t->place, .gives_ids = given, .gives_id_count = 2};
    ledger_ask(t->ledger, LEDGER_SEE, &see, t->arena, NULL, NULL, NULL);
    t->admissions++;
    struct ledger_call request = admit_of(t, "read", "{1}");
    request.ids = asked;
    request.id_count = 2;
    ledger_ask(t->ledger, LEDGER_ADMIT, &request, t->arena, &t->answer, NULL, NULL);
    assert_int_equal(t->answer.unseen, 1);
}

/* ---- facts ---------------------------------------------------------------- */

STORY(facts_are_limited)
{
    char text[5100];
    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof(text), "{\"f%d\":\"%05000d\"}", i, i);
        struct json facts = parsed(t, arena_dup(t->arena, str_of(text)).at);
        char args[16];
        snprintf(args, sizeof(args), "{%d}", i);
        give(t, "a", args, NULL, 0, &facts);
    }
    struct ledger_answer view = view_of(t);
    assert_int_equal(json_get_text(&view.session, "facts")->len, 3);
}

/* ---- lifetime ------------------------------------------------------------- */

STORY(a_session_ends_a_day_after_its_last_call)
{
    int64_t hour = 3600000;
    struct hash128 id = case_hash("e1");
    struct json facts = parsed(t, "{\"a\":1}");
    give(t, "list", "{}", &id, 1, &facts);
    for (int i = 0; i < 5; i++) {
        case_now += 20 * hour; /* each call renews the session and its parts */
        case_runs(t, "get", "{1}", i % 2 ? "a" : "b");
    }
    struct ledger_answer view = view_of(t);
    assert_int_equal(view.error, OK);
    const struct json *history = json_get_text(&view.session, "history");
    assert_int_equal(history->len, 6);
    assert_true(str_is(json_str(json_get_text(&history->items[0], "tool")), "list"));
    assert_string_equal(text_of(t, json_get_text(&view.session, "facts")), "{\"a\":1}");
    t->admissions++;
    struct ledger_call request = admit_of(t, "read", "{1}");
    request.ids = &id;
    request.id_count = 1;
    ledger_ask(t->ledger, LEDGER_ADMIT, &request, t->arena, &t->answer, NULL, NULL);
    assert_int_equal(t->answer.unseen, 0);
    assert_true(t->answer.ids_complete);
    case_now += 30 * hour;
    assert_int_equal(view_of(t).error, ERR_NOT_FOUND);
    case_runs(t, "get", "{1}", "a");
    assert_false(t->settled.unchanged);
}

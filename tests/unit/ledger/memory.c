/* What a session stores (ids, facts, goal, journal), for how long, and that repeated operations count once.
 */
#include <stdio.h>

#include "ledger/ledger_case.h"

#include "base/buf.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"

static struct json parsed(struct ledger_case *t, const char *text)
{
    struct json value;
    struct json_error fault;
    assert_int_equal(json_parse(t->arena, str_of(text), NULL, &value, &fault), OK);
    return value;
}

static struct ledger_admit admit_of(const struct ledger_case *t, const char *tool, const char *args)
{
    return (struct ledger_admit){.place = t->place,
                                 .admission = t->admissions,
                                 .tool = str_of(tool),
                                 .arguments = case_hash(args),
                                 .limits = &t->limits};
}

static void give(struct ledger_case *t, const char *tool, const char *args, const struct hash128 *ids,
                 size_t count, const struct json *facts)
{
    assert_string_equal(case_asks(t, tool, args), "run");
    struct ledger_settle settle = {.place = t->place,
                                   .admission = t->admissions,
                                   .tool = str_of(tool),
                                   .arguments = case_hash(args),
                                   .label = STR_LIT("ok"),
                                   .result = case_hash(args),
                                   .limits = &t->limits,
                                   .gives_ids = ids,
                                   .gives_id_count = count,
                                   .facts = facts};
    ledger_settle(t->ledger, &settle, t->arena, &t->settled, NULL, NULL);
    assert_int_equal(t->settled.error, OK);
}

static struct ledger_view view_of(struct ledger_case *t)
{
    struct ledger_view view;
    ledger_view(t->ledger, t->place.session, t->arena, &view, NULL, NULL);
    return view;
}

static const char *text_of(struct ledger_case *t, const struct json *value)
{
    struct buf buf = buf_in(t->arena);
    json_write(&buf, value);
    buf_byte(&buf, '\0');
    return buf.at;
}

/* ---- at most once --------------------------------------------------------- */

static void a_repeated_admit_gets_the_same_answer(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get", "{1}", "r");
    assert_string_equal(case_asks(t, "get", "{1}"), "run");
    t->admissions--;
    assert_string_equal(case_asks(t, "get", "{1}"), "run");
    assert_int_equal(t->answer.repeats, 1);
    case_settle_as(t, "get", "{1}", t->admissions, LEDGER_CLASS_OK, "r");
    assert_string_equal(case_asks(t, "get", "{1}"), "refuse loop");
    t->admissions--;
    assert_string_equal(case_asks(t, "get", "{1}"), "refuse loop");
    assert_string_equal(case_asks(t, "get", "{1}"), "refuse loop");
    assert_string_equal(case_asks(t, "get", "{1}"), "halt loop");
}

/* The store keeps a session of which the ledger thinks that it is over: it was loaded for ever. */
static void a_clock_beyond_the_second_that_a_session_can_hold_ends(void **state)
{
    struct ledger_case *t = *state;
    case_now = ((int64_t)UINT32_MAX + 100000) * 1000;
    case_runs(t, "get", "{1}", "r");
    case_runs(t, "get", "{2}", "r");
    assert_string_equal(case_asks(t, "get", "{3}"), "run");
}

static void a_repeated_repair_costs_one_attempt(void **state)
{
    struct ledger_case *t = *state;
    for (int i = 0; i < 4; i++) {
        assert_string_equal(case_invalid(t, "create", "{1}"), "repair");
        assert_int_equal(t->answer.attempt, 1);
        assert_int_equal(t->answer.attempts_left, 2);
        t->admissions--;
    }
}

static void a_repeated_settle_counts_once(void **state)
{
    struct ledger_case *t = *state;
    assert_string_equal(case_asks(t, "create", "{1}"), "run");
    for (int i = 0; i < 4; i++) {
        case_settle_as(t, "create", "{1}", t->admissions, LEDGER_CLASS_INVALID, NULL);
        assert_int_equal(t->settled.attempt, 1);
        assert_int_equal(t->settled.attempts_left, 2);
        assert_int_equal(t->settled.no_progress, 1);
        assert_int_equal(t->settled.says, LEDGER_REPAIR);
    }
}

static void a_settle_without_its_admit_is_counted_as_unknown(void **state)
{
    struct ledger_case *t = *state;
    case_turn(t, 0);
    case_settle_as(t, "get", "{1}", 4711, LEDGER_CLASS_OK, "r");
    case_settle_as(t, "get", "{1}", 4711, LEDGER_CLASS_OK, "r");
    const struct json session = view_of(t).session;
    const struct json *history = json_get_text(&session, "history");
    assert_int_equal(history->len, 1);
    assert_true(str_is(json_str(json_get_text(&history->items[0], "class")), "unknown"));
    assert_string_equal(case_asks(t, "get", "{1}"), "run");
    assert_int_equal(t->answer.repeats, 1);
}

static void a_late_turn_number_counts_in_the_current_turn(void **state)
{
    struct ledger_case *t = *state;
    case_turn(t, 5);
    case_runs(t, "get", "{1}", "r");
    case_turn(t, 3);
    assert_string_equal(case_asks(t, "get", "{1}"), "run");
    assert_int_equal(t->answer.turn, 5);
    assert_int_equal(t->answer.repeats, 1);
}

static void a_turn_256_turns_ago_is_not_the_current_one(void **state)
{
    struct ledger_case *t = *state;
    case_turn(t, 7);
    case_runs(t, "get", "{1}", "r");
    case_runs(t, "get", "{1}", "r");
    case_turn(t, 7 + 256);
    case_runs(t, "get", "{1}", "r");
    assert_int_equal(t->settled.repeats, 1);
}

/* ---- ids ------------------------------------------------------------------ */

static void ids_of_a_result_are_seen(void **state)
{
    struct ledger_case *t = *state;
    struct hash128 given[] = {case_hash("e1"), case_hash("e2")};
    struct hash128 asked[] = {case_hash("e2"), case_hash("e3"), case_hash("e1")};
    give(t, "list", "{}", given, 2, NULL);
    t->admissions++;
    struct ledger_admit request = admit_of(t, "read", "{1}");
    request.ids = asked;
    request.id_count = 3;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_int_equal(t->answer.unseen, 2);
    assert_true(t->answer.ids_complete);
    ledger_see(t->ledger, t->place.session, &asked[1], 1);
    request.admission++;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_int_equal(t->answer.unseen, 0);
}

/* Ids are stored one after the other: a string across two of them is not an id. */
static void a_string_across_two_ids_is_not_seen(void **state)
{
    struct ledger_case *t = *state;
    struct hash128 given[] = {{1, 0x0102030405060708u}, {2, 0x1112131415161718u}};
    struct hash128 asked[] = {{1, 0x0506070811121314u}, {1, 0x0102030405060708u}};
    ledger_see(t->ledger, t->place.session, given, 2);
    t->admissions++;
    struct ledger_admit request = admit_of(t, "read", "{1}");
    request.ids = asked;
    request.id_count = 2;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_int_equal(t->answer.unseen, 1);
}

static void a_new_session_has_a_complete_empty_record(void **state)
{
    struct ledger_case *t = *state;
    struct hash128 asked[64];
    for (int i = 0; i < 64; i++)
        asked[i] = (struct hash128){1, (uint64_t)i * 77 + 5};
    t->admissions++;
    struct ledger_admit request = admit_of(t, "read", "{1}");
    request.ids = asked;
    request.id_count = 64;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_true(t->answer.unseen == UINT64_MAX);
    assert_true(t->answer.ids_complete);
}

static void a_record_with_evicted_ids_is_incomplete(void **state)
{
    struct ledger_case *t = *state;
    struct hash128 ids[LEDGER_SEEN_IDS_MAX + 8];
    for (size_t i = 0; i < LEDGER_SEEN_IDS_MAX + 8; i++)
        ids[i] = (struct hash128){0, 0x0101010101010101u * (i % 251) + i};
    ledger_see(t->ledger, t->place.session, ids, LEDGER_SEEN_IDS_MAX + 8);
    t->admissions++;
    struct ledger_admit request = admit_of(t, "read", "{1}");
    struct hash128 asked[] = {ids[0], ids[8], ids[LEDGER_SEEN_IDS_MAX + 7]};
    request.ids = asked;
    request.id_count = 3;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_int_equal(t->answer.unseen, 1);
    assert_false(t->answer.ids_complete);
}

/* ---- facts, goal, journal ------------------------------------------------- */

static void facts_are_merged(void **state)
{
    struct ledger_case *t = *state;
    struct json first = parsed(t, "{\"b\":{\"n\":1.10},\"a\":1}"),
                second = parsed(t, "{\"a\":[2],\"c\":\"x\"}");
    give(t, "a", "{1}", NULL, 0, &first);
    give(t, "a", "{2}", NULL, 0, &second);
    t->admissions++;
    struct ledger_admit request = admit_of(t, "a", "{3}");
    request.wants_facts = true;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_string_equal(text_of(t, &t->answer.facts), "{\"a\":[2],\"b\":{\"n\":1.10},\"c\":\"x\"}");
    assert_int_equal(t->answer.history.type, JSON_NULL);
}

static void facts_are_limited(void **state)
{
    struct ledger_case *t = *state;
    char text[5100];
    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof(text), "{\"f%d\":\"%05000d\"}", i, i);
        struct json facts = parsed(t, arena_dup(t->arena, str_of(text)).at);
        char args[16];
        snprintf(args, sizeof(args), "{%d}", i);
        give(t, "a", args, NULL, 0, &facts);
    }
    struct ledger_view view = view_of(t);
    assert_int_equal(json_get_text(&view.session, "facts")->len, 3);
}

static void the_goal_belongs_to_its_turn(void **state)
{
    struct ledger_case *t = *state;
    struct ledger_turned turned;
    ledger_turn(
        t->ledger,
        &(struct ledger_turn){.session = t->place.session, .turn = 4, .goal = STR_LIT("book a flight")},
        t->arena, &turned, NULL, NULL);
    case_turn(t, 0);
    case_runs(t, "get", "{1}", "r");
    assert_int_equal(t->answer.turn, 4);
    assert_true(str_is(t->answer.goal, "book a flight"));
    case_turn(t, 5);
    case_runs(t, "get", "{1}", "r");
    assert_int_equal(t->answer.goal.len, 0);
}

static void the_journal_has_one_entry_per_logical_call(void **state)
{
    struct ledger_case *t = *state;
    case_invalid(t, "create", "{1}");
    case_invalid(t, "create", "{2}");
    case_runs(t, "create", "{3}", "made");
    case_invalid(t, "update", "{1}");
    t->admissions++;
    struct ledger_admit request = admit_of(t, "a", "{3}");
    request.wants_history = true;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_string_equal(
        text_of(t, &t->answer.history),
        "[{\"tool\":\"create\",\"class\":\"ok\",\"code\":null,\"turn\":1,\"step\":3,"
        "\"at_ms\":1700000000000,\"retries\":2},"
        "{\"tool\":\"update\",\"class\":\"invalid_arguments\",\"code\":null,\"step\":4,\"retries\":0,"
        "\"open\":true}]");
}

static void the_journal_has_the_codes_of_refusals(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get", "{1}", "r");
    case_runs(t, "get", "{1}", "r");
    case_asks(t, "get", "{1}");
    case_admit_as(t, "gte", "{1}", LEDGER_SO_FAR_REFUSED);
    struct ledger_view view = view_of(t);
    const struct json *history = json_get_text(&view.session, "history");
    assert_int_equal(history->len, 4);
    assert_true(str_is(json_str(json_get_text(&history->items[2], "class")), "loop"));
    assert_true(str_is(json_str(json_get_text(&history->items[2], "code")), "loop"));
    assert_true(str_is(json_str(json_get_text(&history->items[3], "class")), "unknown_tool"));
    assert_true(str_is(json_str(json_get_text(&history->items[3], "tool")), "gte"));
}

static int64_t number_of(const struct json *entry, const char *key)
{
    int64_t n = -1;
    json_int(json_get_text(entry, key), &n);
    return n;
}

/* Journals `count` calls, numbered by their turns; the last is in turn `last`. */
static void has_in_order(struct ledger_case *t, int64_t count, int64_t last)
{
    struct ledger_view view = view_of(t);
    const struct json *history = json_get_text(&view.session, "history");
    assert_int_equal(history->len, count);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(number_of(&history->items[i], "turn"), last - count + 1 + i);
}

static void run_turns(struct ledger_case *t, uint32_t from, uint32_t to)
{
    char args[16];
    for (t->place.turn = from; t->place.turn <= to; t->place.turn++) {
        snprintf(args, sizeof(args), "{%u}", t->place.turn);
        case_runs(t, "get", args, args);
    }
}

static void the_journal_is_a_ring(void **state)
{
    struct ledger_case *t = *state;
    for (uint32_t calls = 1; calls <= 500; calls++) {
        run_turns(t, calls, calls);
        if (calls % 7 == 0 || calls > 490)
            has_in_order(t, calls < LEDGER_HISTORY_DEFAULT ? calls : LEDGER_HISTORY_DEFAULT, calls);
    }
}

static void a_view_returns_the_session(void **state)
{
    struct ledger_case *t = *state;
    assert_int_equal(view_of(t).error, ERR_NOT_FOUND);
    case_invalid(t, "create", "{1}");
    assert_string_equal(case_asks(t, "get", "{1}"), "run");
    struct ledger_view view = view_of(t);
    assert_int_equal(view.error, OK);
    const struct json *budgets = json_get_text(&view.session, "budgets");
    assert_string_equal(text_of(t, budgets),
                        "{\"calls_in_turn\":1,\"calls\":1,\"cost_in_turn\":0,\"cost\":0,"
                        "\"turn_began_ms\":1700000000000,\"no_progress\":1,\"waiting\":1,"
                        "\"chains\":[{\"tool\":\"create\",\"ext\":\"it\",\"invalid\":1,\"ended\":false}]}");
    assert_true(str_is(json_str(json_get_text(&view.session, "session")), "uid:1000/chat-7"));
}

static void a_session_can_be_forgotten(void **state)
{
    struct ledger_case *t = *state;
    enum err err = OK;
    case_runs(t, "get", "{1}", "r");
    ledger_reset(t->ledger, t->place.session, STR_NONE, t->arena, &err, NULL, NULL);
    assert_int_equal(err, OK);
    assert_int_equal(view_of(t).error, ERR_NOT_FOUND);
    struct ledger_status status;
    ledger_status(t->ledger, &status);
    assert_int_equal(status.sessions, 0);
}

/* ---- lifetime ------------------------------------------------------------- */

static void a_session_ends_a_day_after_its_last_call(void **state)
{
    struct ledger_case *t = *state;
    int64_t hour = 3600000;
    struct hash128 id = case_hash("e1");
    struct json facts = parsed(t, "{\"a\":1}");
    give(t, "list", "{}", &id, 1, &facts);
    for (int i = 0; i < 5; i++) {
        case_now += 20 * hour; /* each call renews the session and its parts */
        case_runs(t, "get", "{1}", i % 2 ? "a" : "b");
    }
    struct ledger_view view = view_of(t);
    assert_int_equal(view.error, OK);
    const struct json *history = json_get_text(&view.session, "history");
    assert_int_equal(history->len, 6);
    assert_true(str_is(json_str(json_get_text(&history->items[0], "tool")), "list"));
    assert_string_equal(text_of(t, json_get_text(&view.session, "facts")), "{\"a\":1}");
    t->admissions++;
    struct ledger_admit request = admit_of(t, "read", "{1}");
    request.ids = &id;
    request.id_count = 1;
    ledger_admit(t->ledger, &request, t->arena, &t->answer, NULL, NULL);
    assert_int_equal(t->answer.unseen, 0);
    assert_true(t->answer.ids_complete);
    case_now += 30 * hour;
    assert_int_equal(view_of(t).error, ERR_NOT_FOUND);
    case_runs(t, "get", "{1}", "a");
    assert_false(t->settled.unchanged);
}

static void the_oldest_sessions_are_evicted_beyond_the_memory_limit(void **state)
{
    (void)state;
    struct ledger_options options = {.now_ms = case_clock, .memory_bytes = 200000};
    struct ledger_case t = {.limits = ledger_default_limits, .arena = arena_new()};
    struct why why;
    char name[32];
    assert_int_equal(ledger_new_local(&options, &t.ledger, &why), OK);
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "chat-%d", i);
        t.place.session = str_of(name);
        case_runs(&t, "get", "{1}", "r");
        t.place.session = STR_LIT("chat-0"); /* stays in use */
        assert_string_equal(case_asks(&t, "get", arena_printf(t.arena, "{%d}", i).at), "run");
    }
    struct ledger_status status;
    ledger_status(t.ledger, &status);
    assert_in_range(status.sessions, 50, 1000);
    assert_int_equal(status.sessions + status.forgotten, 2000);
    assert_true(status.bytes < 250000);
    assert_int_equal(view_of(&t).error, OK);
    t.place.session = STR_LIT("chat-5");
    assert_int_equal(view_of(&t).error, ERR_NOT_FOUND);
    t.place.session = STR_LIT("chat-1999");
    assert_int_equal(view_of(&t).error, OK);
    ledger_free(t.ledger);
    arena_free(t.arena);
}

static void a_name_names_no_session_of_another_user(void **state)
{
    (void)state;
    struct hash128 a = ledger_session_id(STR_LIT("uid:1000/chat")),
                   b = ledger_session_id(STR_LIT("uid:1001/chat"));
    struct hash128 a2 = ledger_session_id(STR_LIT("uid:1000/other"));
    assert_true(a.high != b.high); /* whatever the names are */
    assert_true(a.high == a2.high && a.low != a2.low);
}

static void sessions_are_independent(void **state)
{
    struct ledger_case *t = *state;
    case_runs(t, "get", "{1}", "r");
    case_runs(t, "get", "{1}", "r");
    t->place.session = STR_LIT("uid:1001/chat-7");
    case_runs(t, "get", "{1}", "r");
    t->place.session = STR_LIT("");
    case_runs(t, "get", "{1}", "r");
    t->place.session = STR_LIT("uid:1000/}:s{");
    case_runs(t, "get", "{1}", "r");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_repeated_admit_gets_the_same_answer),
        STORY(a_clock_beyond_the_second_that_a_session_can_hold_ends),
        STORY(a_repeated_repair_costs_one_attempt),
        STORY(a_repeated_settle_counts_once),
        STORY(a_settle_without_its_admit_is_counted_as_unknown),
        STORY(a_late_turn_number_counts_in_the_current_turn),
        STORY(a_turn_256_turns_ago_is_not_the_current_one),
        STORY(ids_of_a_result_are_seen),
        STORY(a_string_across_two_ids_is_not_seen),
        STORY(a_new_session_has_a_complete_empty_record),
        STORY(a_record_with_evicted_ids_is_incomplete),
        STORY(facts_are_merged),
        STORY(facts_are_limited),
        STORY(the_goal_belongs_to_its_turn),
        STORY(the_journal_has_one_entry_per_logical_call),
        STORY(the_journal_has_the_codes_of_refusals),
        STORY(the_journal_is_a_ring),
        STORY(a_view_returns_the_session),
        STORY(a_session_can_be_forgotten),
        STORY(a_session_ends_a_day_after_its_last_call),
        STORY(the_oldest_sessions_are_evicted_beyond_the_memory_limit),
        STORY(sessions_are_independent),
        cmocka_unit_test(a_name_names_no_session_of_another_user),
    };
    log_quiet();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

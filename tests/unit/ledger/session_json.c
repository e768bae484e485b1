/* A session as JSON: history, facts, and all of it. */

#include "unit.h"
#include "base/arena.h"
#include "json/write.h"
#include "ledger/session.h"

#define BEGAN_MS 1700000000000

struct json_case {
    struct arena *arena;
    struct session session;
    struct session_parts parts;
};

static int begin(void **state)
{
    struct json_case *t = test_calloc(1, sizeof(*t));
    t->arena = arena_new();
    t->parts.journal = buf_in(t->arena);
    session_begin(&t->session, 7, BEGAN_MS);
    t->session.journal_max = 3;
    t->parts.details = buf_in(t->arena);
    *state = t;
    return 0;
}

static int end(void **state)
{
    struct json_case *t = *state;
    arena_free(t->arena);
    test_free(t);
    return 0;
}

FIXTURE_OF(begin, end)

#define STORY(name) TEST_OF(name, struct json_case *t)

static void field(struct json_case *t, struct str name, const char *value)
{
    detail_add(&t->parts.details, name, str_of(value));
}

static void tool_field(struct json_case *t, const char *tool)
{
    uint32_t hash = session_tool(str_of(tool));
    char name[5] = {'t', (char)hash, (char)(hash >> 8), (char)(hash >> 16), (char)(hash >> 24)};
    field(t, (struct str){name, sizeof(name)}, tool);
}

/* The next entry of the journal, where the ring has its place. */
static void note(struct json_case *t, struct session_note note)
{
    session_parts_add_note(&t->parts, &t->session, t->session.journal_count++, &note);
}

static void notes(struct json_case *t, uint8_t count)
{
    for (uint8_t i = 1; i <= count; i++)
        note(t, (struct session_note){.second = BEGAN_MS / 1000 + i,
                                      .tool = session_tool(STR_LIT("search")),
                                      .label = ledger_label_number(STR_LIT("ok")),
                                      .turn = 1,
                                      .step = i});
}

static void add_chain(struct json_case *t, const char *tool, uint8_t attempts, bool ended)
{
    struct session_chain *chain = &t->session.chains[t->session.chain_count++];
    *chain = (struct session_chain){.attempts = attempts, .step = 9, .ended = ended};
    chain->name_len = (uint8_t)strlen(tool);
    memcpy(chain->name, tool, chain->name_len);
}

static void assert_json(struct json_case *t, struct json value, const char *expected)
{
    struct str text = json_to_str(t->arena, &value);
    if (!str_is(text, expected))
        fail_msg("expected %s\ngot      " STR_FMT, expected, STR_ARG(text));
}

STORY(history_tells_each_call_oldest_first)
{
    tool_field(t, "search");
    assert_json(t, session_json_history(t->arena, &t->session, &t->parts), "[]");
    notes(t, 1);
    note(t, (struct session_note){.second = 1,
                                  .tool = 5,
                                  .label = ledger_label_number(STR_LIT("loop")),
                                  .code = CODE_LOOP,
                                  .turn = 300,
                                  .step = 2,
                                  .retries = 3});
    assert_json(t, session_json_history(t->arena, &t->session, &t->parts),
                "[{\"tool\":\"search\",\"class\":\"ok\",\"code\":null,\"turn\":1,\"step\":1,"
                "\"at_ms\":1700000001000,\"retries\":0},"
                "{\"tool\":null,\"class\":\"loop\",\"code\":\"loop\",\"turn\":300,\"step\":2,"
                "\"at_ms\":1000,\"retries\":3}]");
}

STORY(a_journal_that_is_cut_short_loses_entries)
{
    notes(t, 3);
    t->parts.journal.len -= 1;
    assert_int_equal(session_json_history(t->arena, &t->session, &t->parts).len, 2);
    t->parts.journal.len = 0;
    assert_int_equal(session_json_history(t->arena, &t->session, &t->parts).len, 0);
    t->session.journal_max = 0; /* none is kept */
    assert_int_equal(session_json_history(t->arena, &t->session, &t->parts).len, 0);
}

STORY(facts_are_sorted_by_name)
{
    field(t, STR_LIT("fuser"), "{\"id\":7}");
    field(t, STR_LIT("g"), "not a fact");
    field(t, STR_LIT("forder"), "[1.50,\"x\"]");
    tool_field(t, "f");
    assert_json(t, session_json_facts(t->arena, &t->parts), "{\"order\":[1.50,\"x\"],\"user\":{\"id\":7}}");
}

STORY(a_session_tells_all_that_is_used)
{
    struct session *s = &t->session;
    tool_field(t, "search");
    tool_field(t, "book");
    field(t, STR_LIT("g"), "find \"it\"");
    s->turn = 2;
    s->step = 4;
    s->has_goal = true;
    s->calls_in_turn = 1;
    s->calls_made = 3;
    s->cost_in_turn = 250000;
    s->cost = 500000;
    s->idle[0].calls = 6;
    s->ids = IDS_FORGOTTEN;
    t->parts.ids.len = 5 * (size_t)SESSION_ID_BYTES;
    s->call_count = 2;
    s->calls[0].class = CALL_PENDING;
    s->calls[1].class = CALL_OK;
    s->counter_count = 2;
    s->counters[0] = (struct session_counter){.tool = session_tool(STR_LIT("search")),
                                              .turn = 1,
                                              .calls_turn = 2,
                                              .calls = 2,
                                              .cost_turn = 250000,
                                              .cost = 250000};
    s->counters[1] = (struct session_counter){.tool = session_tool(STR_LIT("book")),
                                              .turn = 2,
                                              .calls_turn = 1,
                                              .calls = 1,
                                              .cost_turn = 250000,
                                              .cost = 250000};
    add_chain(t, "create", 2, false);
    add_chain(t, "update", 3, true); /* no entry of the history */
    assert_json(
        t, session_json(t->arena, STR_LIT("uid:1000/chat-7"), &t->session, &t->parts),
        "{\"session\":\"uid:1000/chat-7\",\"turn\":2,\"step\":4,\"goal\":\"find \\\"it\\\"\","
        "\"budgets\":{\"calls_in_turn\":1,\"calls\":3,\"cost_in_turn\":0.25,\"cost\":0.5,"
        "\"turn_began_ms\":1700000000000,\"no_progress\":6,\"waiting\":1,"
        "\"chains\":[{\"tool\":\"create\",\"ext\":null,\"invalid\":2,\"ended\":false},"
        "{\"tool\":\"update\",\"ext\":null,\"invalid\":3,\"ended\":true}],"
        "\"tools\":[{\"tool\":\"book\",\"calls_in_turn\":1,\"calls\":1,\"cost_in_turn\":0.25,\"cost\":0.25},"
        "{\"tool\":\"search\",\"calls_in_turn\":0,\"calls\":2,\"cost_in_turn\":0,\"cost\":0.25}]},"
        "\"ids\":{\"seen\":5,\"complete\":false},\"facts\":{},"
        "\"history\":[{\"tool\":\"create\",\"class\":\"invalid_arguments\",\"code\":null,\"step\":9,"
        "\"retries\":1,\"open\":true}]}");
}

STORY(a_goal_of_an_earlier_turn_is_not_told)
{
    field(t, STR_LIT("g"), "of an earlier turn");
    struct json view = session_json(t->arena, STR_LIT("s"), &t->session, &t->parts);
    assert_int_equal(json_get_text(&view, "goal")->type, JSON_NULL);
    assert_null(json_get_text(json_get_text(&view, "budgets"), "tools")); /* none has limits */
    assert_true(json_get_text(json_get_text(&view, "ids"), "complete")->truth);
}

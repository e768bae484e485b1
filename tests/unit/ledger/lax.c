/* What the fleet learns of schemas: when it knows a problem, when it forgets it, and the record's bytes. */

#include "ledger_case.h"

#include "ledger/record.h"

#define SCHEMA 77

static const struct ledger_problem limit = {.place = STR("limit"), .code = STR("missing")};

static bool alone; /* no other user */

static void finds(struct ledger_case *t, const char *session, uint32_t user, struct ledger_problem problem)
{
    struct ledger_lax found = {.schema = SCHEMA,
                               .tool = STR_LIT("find_rows"),
                               .session = ledger_session_id(str_of(session)),
                               .user = user,
                               .alone = alone};
    ledger_lax_found(t->ledger, &found, &problem, 1);
}

static bool knows(struct ledger_case *t, uint64_t schema, struct ledger_problem problem)
{
    return ledger_lax_look(t->ledger, schema, &problem, 1);
}

FIXTURE_OF(case_begin, case_end)

#define STORY(name) TEST_OF(name, struct ledger_case *t)

STORY(two_users_are_needed_unless_there_is_one)
{
    const char *const sessions[] = {"u/0", "u/1", "u/2", "u/3"};
    alone = false;
    for (int i = 0; i < 4; i++)
        finds(t, sessions[i], 1, limit);
    assert_false(knows(t, SCHEMA, limit));
    finds(t, "v/y", 2, limit);
    assert_true(knows(t, SCHEMA, limit));
    alone = true;
    struct ledger_problem other = {.place = STR("other"), .code = STR("type")};
    for (int i = 0; i < 3; i++)
        finds(t, sessions[i], 1, other);
    assert_true(knows(t, SCHEMA, other));
}

static void learn(struct ledger_case *t)
{
    finds(t, "u/a", 1, limit);
    finds(t, "u/b", 1, limit);
    finds(t, "u/c", 1, limit);
    assert_true(knows(t, SCHEMA, limit));
}

STORY(it_is_known_for_thirty_days)
{
    struct ledger_lax *list;
    alone = true;
    learn(t);
    assert_int_equal(ledger_lax_list(t->ledger, t->arena, &list), 1);
    assert_true(str_is(list[0].tool, "find_rows"));
    assert_true(str_is(list[0].path, "limit"));
    case_now += (int64_t)LAX_KNOWN_S * 1000 - 1000;
    finds(t, "u/d", 1, limit); /* does not lengthen it */
    assert_true(knows(t, SCHEMA, limit));
    case_now += 1000;
    assert_false(knows(t, SCHEMA, limit));
    assert_int_equal(ledger_lax_list(t->ledger, t->arena, &list), 0);
    learn(t);
}

STORY(an_operator_makes_it_forgotten)
{
    learn(t);
    ledger_lax_forget(t->ledger, STR_LIT("find_rows"), STR_LIT("other"));
    assert_true(knows(t, SCHEMA, limit));
    ledger_lax_forget(t->ledger, STR_LIT("find_rows"), STR_LIT("limit"));
    assert_false(knows(t, SCHEMA, limit));
    learn(t);
    ledger_lax_forget(t->ledger, STR_LIT("find_rows"), STR_NONE);
    assert_false(knows(t, SCHEMA, limit));
}

/* A newer build's record, say: what this daemon finds out itself still counts for it. */
STORY(a_record_that_cannot_be_read_does_not_make_it_forget)
{
    static const char newer[] = "a record of a later format";
    struct session_store *store = ledger_store(t->ledger);
    struct store_request request = {.id = {.high = hash_stable(STR_LIT("schema_lax of the fleet")).low},
                                    .parts[PART_CORE] = STR(newer),
                                    .renew_ttl_s = 60};
    assert_true(store->kind->ask(store, &request));
    alone = true;
    learn(t);
    finds(t, "u/d", 1, (struct ledger_problem){.place = STR("other"), .code = STR("type")}); /* reads again */
    assert_true(knows(t, SCHEMA, limit));
    request = (struct store_request){.id = request.id};
    assert_true(store->kind->ask(store, &request));
    assert_true(str_is(request.stored[PART_CORE], newer));
    case_now += 61000; /* it has expired */
    finds(t, "u/e", 1, limit);
    assert_true(store->kind->ask(store, &request));
    assert_true(request.stored[PART_CORE].len > sizeof(newer));
    assert_true(knows(t, SCHEMA, limit));
}

STORY(a_path_that_is_too_long_is_not_learnt)
{
    char path[LAX_PATH_BYTES + 2];
    memset(path, 'a', sizeof(path));
    struct ledger_problem problem = {.place = {path, sizeof(path)}, .code = STR("missing")};
    for (int i = 0; i < 3; i++)
        finds(t, i == 0 ? "u/a" : i == 1 ? "u/b" : "u/c", 1, problem);
    assert_false(knows(t, SCHEMA, problem));
}

static bool decodes(struct str bytes, struct lax_table *table, struct arena *arena)
{
    struct record_coder c = {.rest = bytes, .arena = arena};
    lax_table_code(table, &c);
    return !c.bad && !c.rest.len;
}

TEST(the_record_is_bounded_and_decodes_to_itself)
{
    static struct lax_table table, back;
    struct arena *arena = arena_new();
    struct buf bytes = {0}, again = {0};
    struct record_coder to = {.out = &bytes}, back_to = {.out = &again};
    for (unsigned i = 1; i <= LAX_ENTRIES_MAX + 5; i++) {
        struct ledger_lax f = {.schema = i,
                               .session = {i, 0},
                               .user = 1,
                               .tool = STR("t"),
                               .path = STR("pp"),
                               .code = STR("ccc")};
        assert_true(lax_table_apply(&table, &f, 1000 + i, arena));
        assert_false(lax_table_apply(&table, &f, 2000 + i, arena));
    }
    assert_int_equal(table.count, LAX_ENTRIES_MAX);
    assert_int_equal(table.list[0].schema, 6);
    lax_table_code(&table, &to);
    assert_true(bytes.len <= LAX_RECORD_BYTES);
    assert_true(decodes(buf_view(&bytes), &back, arena));
    lax_table_code(&back, &back_to);
    assert_true(str_eq(buf_view(&bytes), buf_view(&again)));
    for (size_t len = 0; len < bytes.len; len += 7) /* cut off */
        assert_false(decodes((struct str){bytes.at, len}, &back, arena));
    for (size_t at = 0; at < bytes.len; at++) { /* damaged: never more than a table */
        char was = bytes.at[at];
        bytes.at[at] = (char)(was ^ 0x5a);
        decodes(buf_view(&bytes), &back, arena);
        assert_true(back.count <= LAX_ENTRIES_MAX);
        bytes.at[at] = was;
    }
    buf_clear(&bytes);
    buf_clear(&again);
    arena_free(arena);
}

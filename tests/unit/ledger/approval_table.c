/* The table of approvals: who is pushed out when it is full, when an entry expires, and its bytes. */
#include "arena_case.h"

#include "ledger/approvals.h"
#include "ledger/record.h"

static struct approval_table table;

static void begin(void)
{
    open_arena();
    memset(&table, 0, sizeof(table));
}

FIXTURE(begin, close_arena)

static struct approval_request ask(uint64_t number, uint32_t uid, uint64_t session, int64_t now_ms)
{
    struct approval_request r = {.kind = APPROVAL_ASK, .arena = arena};
    r.asked =
        (struct approval){.id = number, .uid = uid, .session_hash = session, .question = STR_LIT("Go on?")};
    memcpy(r.asked.binding, &number, sizeof(number));
    approval_table_apply(&table, &r, now_ms, arena);
    return r;
}

static struct approval_request decide(uint64_t id, bool given, uint32_t pid, int64_t now_ms)
{
    struct approval_request r = {.kind = APPROVAL_DECIDE, .arena = arena, .given = given};
    r.asked = (struct approval){.id = id, .process = {1, pid}, .answered_by = STR_LIT("anna")};
    approval_table_apply(&table, &r, now_ms, arena);
    return r;
}

static enum approval_state spend(uint64_t id, int64_t now_ms)
{
    struct approval_request r = {.kind = APPROVAL_SPEND, .arena = arena, .ids = {id}, .id_count = 1};
    approval_table_apply(&table, &r, now_ms, arena);
    return r.found;
}

TEST(is_spent_once_and_can_be_given_back)
{
    assert_true(ask(1, 7, 1, 0).is_new);
    assert_int_equal(spend(1, 0), APPROVAL_NONE);
    assert_int_equal(decide(1, true, 5, 0).entry.state, APPROVAL_APPROVED);
    assert_int_equal(spend(1, 0), APPROVAL_SPENT);
    assert_int_equal(spend(1, 0), APPROVAL_NONE);
    struct approval_request back = {.kind = APPROVAL_REOPEN, .arena = arena, .ids = {1}, .id_count = 1};
    assert_true(approval_table_apply(&table, &back, 0, arena));
    assert_int_equal(spend(1, 0), APPROVAL_SPENT);
    assert_true(ask(1, 7, 1, 0).is_new); /* the same call asks anew */
}

TEST(several_are_spent_together_or_not_at_all)
{
    ask(1, 7, 1, 0);
    ask(2, 7, 1, 0);
    decide(1, true, 5, 0);
    struct approval_request both = {.kind = APPROVAL_SPEND, .arena = arena, .ids = {1, 2}, .id_count = 2};
    assert_false(approval_table_apply(&table, &both, 0, arena));
    decide(2, true, 5, 0);
    assert_true(approval_table_apply(&table, &both, 0, arena));
}

TEST(ends_with_its_time)
{
    ask(1, 7, 1, 1000);
    assert_int_equal(decide(1, true, 5, 1000 + APPROVAL_MS).found, APPROVAL_NONE);
    ask(2, 7, 1, 0);
    decide(2, true, 5, APPROVAL_MS - 1);
    assert_int_equal(spend(2, 2 * APPROVAL_MS - 2), APPROVAL_SPENT);
    ask(3, 7, 1, 0);
    decide(3, true, 5, 1);
    assert_int_equal(spend(3, APPROVAL_MS + 1), APPROVAL_NONE);
}

/* A user with very many questions makes room for another's by its own. */
TEST(room_is_made_by_who_has_most)
{
    uint64_t id = 1;
    for (uint32_t uid = 1; uid <= APPROVALS_MAX / APPROVALS_USER_MAX; uid++)
        for (unsigned i = 0; i < APPROVALS_USER_MAX; i++, id++)
            assert_true(ask(id, uid, i / APPROVALS_SESSION_MAX, 0).is_new);
    assert_int_equal(table.count, APPROVALS_MAX);
    assert_true(ask(id++, 99, 1, 0).is_new);
    assert_true(ask(id++, 99, 1, 0).is_new);
    assert_int_equal(table.count, APPROVALS_MAX);
    for (unsigned i = 0; i < 2 * APPROVALS_SESSION_MAX; i++)
        ask(id++, 99, 1, 0);
    unsigned of_99 = 0;
    for (unsigned i = 0; i < table.count; i++)
        of_99 += table.list[i].uid == 99;
    assert_int_equal(of_99, APPROVALS_SESSION_MAX);
}

TEST(an_answer_is_pushed_out_by_nobody)
{
    for (uint64_t id = 1; id <= APPROVALS_SESSION_MAX; id++) {
        ask(id, 7, 1, 0);
        decide(id, id % 2, 5, 0);
    }
    struct approval_request r = ask(100, 7, 1, 0);
    assert_true(r.is_full);
    assert_int_equal(table.count, APPROVALS_SESSION_MAX);
    assert_int_equal(spend(1, 0), APPROVAL_SPENT);
    assert_true(ask(101, 7, 1, 0).is_new);
}

static bool decodes(struct str bytes, struct approval_table *read)
{
    struct record_coder c = {.rest = bytes, .arena = arena};
    approval_table_code(read, &c);
    return !c.bad && !c.rest.len;
}

TEST(its_bytes_are_read_back_and_cut_ones_are_none)
{
    struct buf first = {0}, second = {0};
    struct record_coder to = {.out = &first}, back = {.out = &second};
    struct approval_table *other = calloc(1, sizeof(*other));
    assert_non_null(other);
    ask(1, 7, 1, 5);
    ask(2, 8, 2, 6);
    decide(2, true, 5, 7);
    approval_table_code(&table, &to);
    assert_true(decodes(buf_view(&first), other));
    approval_table_code(other, &back);
    assert_true(str_eq(buf_view(&first), buf_view(&second)));
    for (size_t len = 0; len < first.len; len++)
        assert_false(decodes((struct str){first.at, len}, other));
    for (size_t at = 0; at < first.len; at++) { /* whatever is in them, it is read within its bounds */
        first.at[at] ^= (char)0xff;
        decodes(buf_view(&first), other);
        assert_true(other->count <= APPROVALS_MAX);
        first.at[at] ^= (char)0xff;
    }
    buf_clear(&first);
    buf_clear(&second);
    free(other);
}

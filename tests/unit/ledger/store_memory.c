/* The store in memory: guards, parts, times to live, the bound in bytes, rates. */
#include "arena_case.h"

#include "base/buf.h"
#include "ledger/session.h"
#include "ledger/ledger.h"
#include "ledger/store.h"

#include <malloc.h>

#define DAY_S 86400u

static int64_t clock_ms;

static int64_t story_clock(void)
{
    return clock_ms;
}

struct gone {
    unsigned expired, evicted;
    struct hash128 last;
    size_t core_len;
};

static void note_gone(void *owner, struct hash128 id, struct str core, bool evicted)
{
    struct gone *gone = owner;
    gone->expired += !evicted;
    gone->evicted += evicted;
    gone->last = id;
    gone->core_len = core.len;
}

struct story {
    struct session_store *store;
    struct store_request request;
    uint32_t user; /* who asks */
    struct gone gone;
};

static struct session_store *begin(struct story *t, size_t memory_bytes)
{
    struct store_memory_options options = {
        .memory_bytes = memory_bytes, .now_ms = story_clock, .gone = note_gone, .owner = &t->gone};
    clock_ms = 1700000000000;
    return t->store = store_memory_new(&options);
}

static int story_begin(void **state)
{
    struct story *t = calloc(1, sizeof(*t));
    begin(t, 0);
    *state = t;
    return 0;
}

static int story_end(void **state)
{
    struct story *t = *state;
    t->store->kind->free(t->store);
    free(t);
    return 0;
}

FIXTURE_OF(story_begin, story_end)

#define STORY(name) TEST_OF(name, struct story *t)

static struct hash128 id_of(uint64_t n)
{
    return (struct hash128){n, n * 3};
}

static struct store_request *load(struct story *t, uint64_t n)
{
    t->request = (struct store_request){.id = id_of(n)};
    assert_true(t->store->kind->ask(t->store, &t->request));
    assert_int_equal(t->request.result, STORE_DONE);
    return &t->request;
}

static const char *core_of(struct story *t, uint64_t n)
{
    static char text[64];
    struct str core = load(t, n)->stored[PART_CORE];
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(core));
    return text;
}

static enum store_result commit(struct story *t, uint64_t n, const char *guard, struct store_request values,
                                uint32_t ttl_s)
{
    t->request = values;
    t->request.id = id_of(n);
    t->request.user = t->user;
    t->request.guard = str_of(guard);
    t->request.renew_ttl_s = ttl_s;
    assert_true(t->store->kind->ask(t->store, &t->request));
    return t->request.result;
}

static enum store_result set_core(struct story *t, uint64_t n, const char *guard, const char *core,
                                  uint32_t ttl_s)
{
    return commit(t, n, guard, (struct store_request){.parts = {[PART_CORE] = str_of(core)}}, ttl_s);
}

static struct store_memory_usage usage_of(const struct story *t)
{
    struct store_memory_usage usage;
    store_memory_usage(t->store, &usage);
    return usage;
}

/* ---- guard ---------------------------------------------------------------- */

STORY(a_commit_needs_the_core_it_was_made_from)
{
    assert_int_equal(set_core(t, 1, "v1", "v2 b", DAY_S), STORE_CONFLICT);
    assert_int_equal(t->request.stored[PART_CORE].len, 0);
    assert_int_equal(usage_of(t).sessions, 0);
    assert_int_equal(set_core(t, 1, "", "v1 a", DAY_S), STORE_DONE);
    assert_int_equal(set_core(t, 1, "", "v1 b", DAY_S), STORE_CONFLICT);
    assert_true(str_is(t->request.stored[PART_CORE], "v1 a"));
    assert_int_equal(set_core(t, 1, "v0", "v1 b", DAY_S), STORE_CONFLICT);
    assert_int_equal(set_core(t, 1, "v1 and more", "v1 b", DAY_S), STORE_CONFLICT);
    assert_string_equal(core_of(t, 1), "v1 a");
    assert_int_equal(set_core(t, 1, "v1", "v2 b", 0), STORE_DONE);
    assert_string_equal(core_of(t, 1), "v2 b");
    assert_string_equal(core_of(t, 2), "");
}

STORY(a_forgotten_session_is_gone_with_its_parts)
{
    struct store_request values = {
        .parts = {[PART_CORE] = STR_LIT("v1"), [PART_IDS] = STR_LIT("ids")},
    };
    assert_int_equal(commit(t, 1, "", values, DAY_S), STORE_DONE);
    t->request = (struct store_request){.id = id_of(1), .guard = STR_LIT("v0"), .forget = true};
    t->store->kind->ask(t->store, &t->request); /* whatever is stored */
    assert_int_equal(t->request.result, STORE_DONE);
    assert_int_equal(load(t, 1)->stored[PART_IDS].len, 0);
    assert_int_equal(t->request.stored[PART_CORE].len, 0);
    assert_int_equal(usage_of(t).sessions, 0);
    assert_int_equal(usage_of(t).forgotten, 0);
    assert_int_equal(t->gone.expired + t->gone.evicted, 0);
}

/* ---- parts ---------------------------------------------------------------- */

STORY(a_part_without_a_value_stays_as_it_is)
{
    struct store_request first = {.parts = {STR_LIT("v1"), STR_LIT("notes"), {NULL, 0}, STR_LIT("details")}};
    struct store_request second = {
        .parts = {STR_LIT("v2 long"), {NULL, 0}, STR_LIT("12345678"), STR_LIT("")}};
    assert_int_equal(commit(t, 1, "", first, DAY_S), STORE_DONE);
    assert_int_equal(commit(t, 1, "v1", second, 0), STORE_DONE);
    const struct str *stored = load(t, 1)->stored;
    assert_true(str_is(stored[PART_CORE], "v2 long"));
    assert_true(str_is(stored[PART_JOURNAL], "notes"));
    assert_true(str_is(stored[PART_IDS], "12345678"));
    assert_int_equal(stored[PART_DETAILS].len, 0);
    assert_int_equal(set_core(t, 1, "v2", "v3", 0), STORE_DONE);
    assert_string_equal(core_of(t, 1), "v3");
}

/* ---- time and memory ------------------------------------------------------ */

STORY(all_parts_live_until_their_time_is_over)
{
    set_core(t, 1, "", "v1", 100);
    clock_ms += 99000;
    assert_int_equal(set_core(t, 1, "v1", "v1 later", 100), STORE_DONE);
    clock_ms += 99000;
    assert_string_equal(core_of(t, 1), "v1 later");
    assert_int_equal(set_core(t, 1, "v1", "v1 again", 0), STORE_DONE); /* does not renew */
    clock_ms += 999;
    assert_string_equal(core_of(t, 1), "v1 again");
    clock_ms += 1;
    assert_string_equal(core_of(t, 1), "");
    assert_int_equal(t->gone.expired, 1);
    assert_int_equal(t->gone.core_len, strlen("v1 again"));
    assert_int_equal(t->gone.last.high, 1);
    assert_int_equal(set_core(t, 1, "v1", "v2", 100), STORE_CONFLICT);
    assert_int_equal(set_core(t, 1, "", "v1", 100), STORE_DONE);
    assert_int_equal(usage_of(t).forgotten, 0);
}

STORY(sessions_that_nobody_asks_for_go_a_few_at_a_time)
{
    for (uint64_t n = 1; n <= 1000; n++)
        set_core(t, n, "", "v1", 100);
    clock_ms += 100000;
    core_of(t, 5000);
    size_t left = usage_of(t).sessions;
    assert_in_range(left, 900, 999);
    for (int i = 0; i < 1000; i++)
        core_of(t, 5000);
    assert_int_equal(usage_of(t).sessions, 0);
    assert_int_equal(t->gone.expired, 1000);
    assert_int_equal(t->gone.evicted, 0);
}

STORY(one_that_lives_longer_does_not_stand_in_their_way)
{
    set_core(t, 5000, "", "what is learnt of schemas", 30 * DAY_S);
    for (uint64_t n = 1; n <= 10; n++)
        set_core(t, n, "", "v1", 100);
    clock_ms += 100000;
    for (int i = 0; i < 10; i++)
        core_of(t, 6000);
    assert_int_equal(usage_of(t).sessions, 1);
    assert_int_equal(t->gone.expired, 10);
}

STORY(the_sessions_untouched_for_longest_are_evicted)
{
    t->store->kind->free(t->store);
    begin(t, 100000);
    for (uint64_t n = 1; n <= 5000; n++) {
        assert_int_equal(set_core(t, n, "", "v1 of a session that stays", DAY_S), STORE_DONE);
        assert_string_equal(core_of(t, 1), "v1 of a session that stays"); /* is touched by a load, too */
    }
    struct store_memory_usage usage = usage_of(t);
    assert_in_range(usage.sessions, 300, 1000);
    assert_int_equal(usage.forgotten, 5000 - usage.sessions);
    assert_int_equal(t->gone.evicted, usage.forgotten);
    assert_true(usage.bytes < 100000 + 20000); /* the tables are extra */
    assert_string_equal(core_of(t, 5000), "v1 of a session that stays");
    assert_string_equal(core_of(t, 5000 - usage.sessions), "");
    assert_string_equal(core_of(t, 5000 - usage.sessions + 2), "v1 of a session that stays");
}

STORY(a_flood_of_sessions_evicts_those_of_its_own_user)
{
    t->store->kind->free(t->store);
    begin(t, 100000);
    t->user = 1000;
    for (uint64_t n = 1; n <= 100; n++)
        set_core(t, n, "", "v1 of an idle user", DAY_S);
    t->user = 1001;
    for (uint64_t n = 1001; n <= 6000; n++)
        set_core(t, n, "", "v1 of a flood", DAY_S);
    for (uint64_t n = 1; n <= 100; n++)
        assert_string_equal(core_of(t, n), "v1 of an idle user");
    assert_string_equal(core_of(t, 6000), "v1 of a flood");
    assert_string_equal(core_of(t, 1001), "");
    assert_int_equal(usage_of(t).largest_user, 1001);
    t->user = 1002; /* a third user has room, too */
    set_core(t, 9000, "", "v1 of a newcomer", DAY_S);
    t->user = 1001;
    for (uint64_t n = 6001; n <= 7000; n++)
        set_core(t, n, "", "v1 of a flood", DAY_S);
    assert_string_equal(core_of(t, 9000), "v1 of a newcomer");
}

/* More users than shares: the last share is common, and the bound holds. */
STORY(users_beyond_the_shares_are_bounded_together)
{
    t->store->kind->free(t->store);
    begin(t, 100000);
    for (uint64_t n = 1; n <= 5000; n++) {
        t->user = (uint32_t)n;
        set_core(t, n, "", "v1", DAY_S);
    }
    assert_true(usage_of(t).bytes < 100000 + 20000);
    assert_string_equal(core_of(t, 5000), "v1");
}

STORY(the_session_touched_last_stays_however_large)
{
    static char large[20000];
    t->store->kind->free(t->store);
    begin(t, 10000);
    memset(large, 'v', sizeof(large) - 1);
    set_core(t, 1, "", "v1", DAY_S);
    assert_int_equal(set_core(t, 2, "", large, DAY_S), STORE_DONE);
    assert_int_equal(load(t, 2)->stored[PART_CORE].len, sizeof(large) - 1);
    assert_int_equal(usage_of(t).sessions, 1);
    assert_int_equal(t->gone.last.high, 1);
    set_core(t, 3, "", "v1", DAY_S);
    assert_string_equal(core_of(t, 2), "");
    assert_string_equal(core_of(t, 3), "v1");
}

/* A session of so many calls, as the ledger writes it: a call at a time, a note of each, the name of a tool.
 */
static void play_calls(struct story *t, uint64_t n, unsigned calls)
{
    static char core[4096], notes[4096];
    const size_t head = 96;
    for (unsigned i = 0; i < calls; i++) {
        size_t window = i < LEDGER_WINDOW ? i + 1 : LEDGER_WINDOW;
        size_t kept = i < LEDGER_HISTORY_DEFAULT ? i + 1 : LEDGER_HISTORY_DEFAULT;
        struct store_request values = {
            .parts = {[PART_CORE] = {core, head + window * sizeof(struct session_call)},
                      [PART_JOURNAL] = {notes, kept * sizeof(struct session_note)},
                      [PART_DETAILS] = STR_LIT("12345678t1234get_weather")},
        };
        core[0] = 'v';
        assert_int_equal(commit(t, n, i ? "v" : "", values, DAY_S), STORE_DONE);
    }
}

static void takes_at_most(struct story *t, unsigned calls, size_t most)
{
    const size_t sessions = 10000;
    size_t before = usage_of(t).bytes, before_malloc = mallinfo2().uordblks;
    for (uint64_t n = 1; n <= sessions; n++)
        play_calls(t, n, calls);
    size_t bytes = usage_of(t).bytes - before, by_malloc = mallinfo2().uordblks - before_malloc;
    assert_int_equal(usage_of(t).sessions, sessions);
    assert_in_range(bytes / sessions, most / 2, most);
    if (by_malloc > 0) /* no sanitizer allocates instead */
        assert_in_range(by_malloc, bytes * 98 / 100, bytes * 102 / 100);
}

TEST(a_session_of_20_calls_takes_little)
{
    takes_at_most(*state, 20, 1300);
}

TEST(a_session_of_120_calls_takes_little)
{
    takes_at_most(*state, 120, 2800);
}

/* ---- rates ---------------------------------------------------------------- */

static uint32_t ask_rate(struct story *t, uint64_t bucket, uint64_t admission, uint32_t count,
                         uint32_t window_s)
{
    struct store_rate_request request = {.bucket = id_of(bucket),
                                         .user = t->user,
                                         .admission = admission,
                                         .rates = {{count, window_s}},
                                         .rate_count = 1};
    assert_true(t->store->kind->rate(t->store, &request));
    assert_int_equal(request.result, STORE_DONE);
    return request.wait_ms;
}

STORY(a_rate_takes_its_count_and_then_one_a_step)
{
    for (uint64_t n = 1; n <= 5; n++)
        assert_int_equal(ask_rate(t, 1, n, 5, 10), 0);
    assert_int_equal(ask_rate(t, 1, 6, 5, 10), 2000);
    clock_ms += 1999;
    assert_int_equal(ask_rate(t, 1, 7, 5, 10), 1);
    assert_int_equal(ask_rate(t, 2, 7, 5, 10), 0); /* another bucket */
    clock_ms += 1;
    assert_int_equal(ask_rate(t, 1, 8, 5, 10), 0);
    assert_int_equal(ask_rate(t, 1, 9, 5, 10), 2000);
    clock_ms += 10000;
    for (uint64_t n = 10; n < 15; n++)
        assert_int_equal(ask_rate(t, 1, n, 5, 10), 0);
    assert_int_equal(ask_rate(t, 1, 15, 5, 10), 2000);
}

STORY(an_admission_is_taken_once)
{
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask_rate(t, 1, 7, 2, 60), 0);
    assert_int_equal(ask_rate(t, 1, 8, 2, 60), 0);
    assert_int_equal(ask_rate(t, 1, 9, 2, 60), 30000);
    assert_int_equal(ask_rate(t, 1, 7, 2, 60), 0); /* also when there is no room */
    for (uint64_t n = 1; n <= STORE_RATE_ADMISSIONS + 1; n++)
        assert_int_equal(ask_rate(t, 2, n, 1000, 60), 0);
    clock_ms += 1;
    assert_int_equal(ask_rate(t, 2, 1000, 1, 60), 0); /* admissions 1 and 2 are forgotten over it */
    for (uint64_t n = 3; n <= STORE_RATE_ADMISSIONS + 1; n++)
        assert_int_equal(ask_rate(t, 2, n, 1, 60), 0);
    assert_int_equal(ask_rate(t, 2, 2, 1, 60), 60000);
}

STORY(all_rates_of_a_bucket_must_have_room)
{
    struct store_rate_request request = {.bucket = id_of(1), .rates = {{2, 1}, {3, 60}}, .rate_count = 2};
    const uint32_t waits[] = {0, 0, 500, 500};
    for (size_t i = 0; i < 4; i++) {
        request.admission = i + 1;
        t->store->kind->rate(t->store, &request);
        assert_int_equal(request.wait_ms, waits[i]);
    }
    clock_ms += 1000;
    request.admission = 5; /* the refused ones took nothing of the second rate */
    t->store->kind->rate(t->store, &request);
    assert_int_equal(request.wait_ms, 0);
    request.admission = 6;
    t->store->kind->rate(t->store, &request);
    assert_int_equal(request.wait_ms, 19000);
}

STORY(steps_that_are_no_whole_number_still_make_the_count)
{
    const uint32_t counts[] = {1, 3, 7, 700, 999, 3000};
    for (uint32_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        uint64_t n = 1;
        for (; n <= counts[i]; n++)
            assert_int_equal(ask_rate(t, 100 + i, n, counts[i], 1), 0);
        assert_in_range(ask_rate(t, 100 + i, n, counts[i], 1), 1, 1000 / counts[i] + 1);
    }
}

STORY(no_clock_that_was_put_back_keeps_anyone_out_for_long)
{
    for (uint64_t n = 1; n <= 3; n++)
        ask_rate(t, 1, n, 3, 3600);
    assert_int_equal(ask_rate(t, 1, 4, 3, 3600), 1200000);
    clock_ms -= 1000000000;
    assert_int_equal(ask_rate(t, 1, 4, 3, 3600), 1200000);
    assert_int_equal(ask_rate(t, 1, 5, 2, 10), 0); /* the policy has changed: another rate */
}

STORY(buckets_expire_and_are_bounded)
{
    size_t empty = usage_of(t).bytes;
    for (uint64_t n = 1; n <= 100; n++)
        ask_rate(t, n, n, 1, 3600);
    assert_true(usage_of(t).bytes > empty);
    clock_ms += 3599000;
    assert_int_equal(ask_rate(t, 1, 1000, 1, 3600), 1000);
    clock_ms += 1000;
    for (uint64_t n = 0; n < 100; n++)
        ask_rate(t, 1, 2000 + n, 1000, 1);
    assert_true(usage_of(t).bytes < empty + 2 * 1024);
    t->store->kind->free(t->store);
    begin(t, 1000000);
    for (uint64_t n = 1; n <= 5000; n++)
        ask_rate(t, n, n, 1, 3600);
    assert_true(usage_of(t).bytes < 200000);
    assert_true(ask_rate(t, 5000, 1, 1, 3600) > 0); /* the newest stay */
    t->user = 1001;                                 /* another's flood does not refill the newest */
    for (uint64_t n = 6001; n <= 12000; n++)
        ask_rate(t, n, n, 1, 3600);
    assert_true(ask_rate(t, 5000, 1, 1, 3600) > 0);
}

TEST(the_wall_clock_is_the_default)
{
    struct store_memory_options none = {0};
    struct session_store *store = store_memory_new(&none);
    assert_string_equal(store->kind->name, "local");
    assert_true(store->kind->now_ms(store) > 1700000000000);
    store->kind->free(store);
}

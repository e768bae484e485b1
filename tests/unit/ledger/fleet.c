/* Which daemons share a Redis: who is gone, and the record's bytes. */

#include "ledger_case.h"

#include "io/conn.h"
#include "ledger/record.h"

enum { FLEETS = 2 };
static struct fleet fleets[FLEETS];
static struct session_store *store;
static struct loop *loop;

static void begin(void)
{
    struct store_memory_options options = {.memory_bytes = 1u << 20, .now_ms = case_clock};
    case_now = 1700000000000;
    store = store_memory_new(&options);
    loop = loop_new();
    for (int i = 0; i < FLEETS; i++)
        fleet_init(&fleets[i], loop, store);
}

static void end(void)
{
    store->kind->free(store);
    for (int i = 0; i < FLEETS; i++)
        fleet_clear(&fleets[i]);
    loop_free(loop);
}

FIXTURE(begin, end)

TEST(one_that_is_silent_is_gone)
{
    fleet_tell(&fleets[0], 7);
    fleet_tell(&fleets[1], 9);
    case_now += (int64_t)FLEET_GONE_S * 1000;
    record_run(&fleets[1].record);
    assert_int_equal(fleets[1].count, 2);
    case_now += 1000;
    record_run(&fleets[1].record);
    assert_int_equal(fleets[1].count, 1);
    assert_string_equal("", fleets[1].warning);
}

TEST(damaged_bytes_are_never_more_than_a_fleet)
{
    struct arena *arena = arena_new();
    struct buf bytes = {0};
    struct record_coder to = {.out = &bytes};
    fleet_tell(&fleets[0], 7);
    fleet_code(&fleets[0], &to);
    for (size_t len = 0; len < bytes.len; len++) {
        struct record_coder from = {.rest = {bytes.at, len}, .arena = arena};
        fleet_code(&fleets[1], &from);
        assert_true(from.bad && !fleets[1].count);
    }
    for (size_t at = 0; at < bytes.len; at++) {
        char was = bytes.at[at];
        bytes.at[at] = (char)(was ^ 0x5a);
        struct record_coder from = {.rest = buf_view(&bytes), .arena = arena};
        fleet_code(&fleets[1], &from);
        assert_true(fleets[1].count <= FLEET_DAEMONS_MAX);
        bytes.at[at] = was;
    }
    fleets[1].count = 0;
    buf_clear(&bytes);
    arena_free(arena);
}

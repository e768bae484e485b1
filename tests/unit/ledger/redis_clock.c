/* The clock of a Redis server, read from its replies. */

#include "unit.h"

#include <hiredis/hiredis.h>

#include "ledger/redis.h"

static bool read_time(struct redis_clock *clock, const char *seconds, const char *micros, int64_t asked_us)
{
    redisReply first = {
        .type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)seconds, .len = strlen(seconds)};
    redisReply second = {.type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)micros, .len = strlen(micros)};
    redisReply *items[] = {&first, &second};
    redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 2, .element = items};
    return redis_clock_read(clock, &reply, asked_us);
}

/* A wall clock that is decades off does not matter, nor does a reading that took long. */
TEST(a_clock_depends_on_the_server_alone)
{
    struct redis_clock clock = {.read_us = 0}, newer;
    assert_true(read_time(&clock, "4102444800", "500000", redis_clock_local_us()));
    assert_in_range(redis_clock_now_ms(&clock), 4102444800500, 4102444800600);
    /* Half a second under way: the middle is taken, and the one before is more exact. */
    assert_true(read_time(&newer, "4102444800", "400000", redis_clock_local_us() - 500000));
    assert_in_range(newer.error_us, 250000, 260000);
    redis_clock_update(&clock, &newer);
    assert_in_range(redis_clock_now_ms(&clock), 4102444800500, 4102444800600);
    /* Another server, or its clock was set: the readings contradict each other. */
    assert_true(read_time(&newer, "4102448400", "0", redis_clock_local_us() - 500000));
    redis_clock_update(&clock, &newer);
    assert_in_range(redis_clock_now_ms(&clock), 4102448400000, 4102448400400);
    assert_false(read_time(&newer, "41024484x0", "0", 0));
    assert_false(read_time(&newer, "", "0", 0));
    assert_false(read_time(&newer, "4102448400", "1000000", 0));
    assert_false(read_time(&newer, "99999999999999999999", "0", 0));
}

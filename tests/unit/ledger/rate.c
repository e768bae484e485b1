/* The memory store and lua/ledger/rate.lua take the same calls and say the same waits, over long random
 * walks. */
#include "arena_case.h"

#include "base/embedded.h"
#include "ledger/store.h"

#include <lauxlib.h>
#include <lualib.h>

#define STEPS      20000
#define BUCKETS    6
#define ADMISSIONS 100 /* more than a bucket remembers, few enough to come again */

/* As much of a server as the script uses: hashes with a time to live, numbers as text. */
static const char server[] =
    "now_ms, keys = 0, {}\n"
    "local commands = {}\n"
    "function commands.TIME() return { tostring(math.floor(now_ms / 1000)), tostring(now_ms % 1000 * 1000) } "
    "end\n"
    "function commands.HGET(key, field) return keys[key] and keys[key].fields[field] or false end\n"
    "function commands.HSET(key, ...)\n"
    "  keys[key] = keys[key] or { fields = {} }\n"
    "  for i = 1, select('#', ...), 2 do\n"
    "    local name, value = select(i, ...)\n"
    "    keys[key].fields[name] = type(value) == 'number' and string.format('%.17g', value) or value\n"
    "  end\n"
    "end\n"
    "function commands.PEXPIRE(key, ms) keys[key].expires = now_ms + ms end\n"
    "redis = { call = function(name, key, ...)\n"
    "  if keys[key] and keys[key].expires and keys[key].expires <= now_ms then keys[key] = nil end\n"
    "  return commands[name](key, ...)\n"
    "end }\n";

static int64_t clock_ms;

static int64_t story_clock(void)
{
    return clock_ms;
}

static uint32_t random_state = 11;

static uint32_t below(uint32_t count)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % count;
}

struct walk {
    lua_State *lua;
    struct session_store *store;
};

static void push_text(lua_State *lua, uint32_t n)
{
    lua_pushfstring(lua, "%d", (int)n);
}

static void add_argument(lua_State *lua, int at, uint32_t n)
{
    push_text(lua, n);
    lua_rawseti(lua, -2, at);
}

static uint32_t ask_script(struct walk *w, const struct store_rate_request *request)
{
    lua_State *lua = w->lua;
    int top = lua_gettop(lua), at = 4;
    lua_newtable(lua);
    push_text(lua, (uint32_t)request->bucket.low);
    lua_rawseti(lua, -2, 1);
    lua_setglobal(lua, "KEYS");
    lua_newtable(lua);
    lua_pushlstring(lua, (const char *)&request->admission, sizeof(request->admission));
    lua_rawseti(lua, -2, 1);
    add_argument(lua, 2, STORE_RATE_ADMISSIONS);
    add_argument(lua, 3, (uint32_t)request->held_us);
    for (uint32_t i = 0; i < request->rate_count; i++, at += 2) {
        add_argument(lua, at, request->rates[i].count);
        add_argument(lua, at + 1, request->rates[i].window_s);
    }
    lua_setglobal(lua, "ARGV");
    lua_pushnumber(lua, (lua_Number)clock_ms);
    lua_setglobal(lua, "now_ms");
    lua_pushvalue(lua, 1);
    if (lua_pcall(lua, 0, 1, 0) != 0)
        fail_msg("%s", lua_tostring(lua, -1));
    uint32_t wait_ms = (uint32_t)lua_tonumber(lua, -1);
    lua_settop(lua, top);
    return wait_ms;
}

static uint32_t ask_memory(struct walk *w, struct store_rate_request *request)
{
    assert_true(w->store->kind->rate(w->store, request));
    return request->wait_ms;
}

/* Mostly little time, seldom so much that a bucket expires, and once in a while the clock is put back. */
static void let_time_pass(void)
{
    uint32_t how = below(100);
    if (how < 60)
        clock_ms += below(200);
    else if (how < 95)
        clock_ms += below(5000);
    else if (how < 99)
        clock_ms += below(200000);
    else
        clock_ms -= below(50000);
}

static void walk_begin(struct walk *w)
{
    const struct store_memory_options options = {.now_ms = story_clock};
    struct str script = embedded_text("ledger/rate.lua");
    clock_ms = 1700000000000;
    w->store = store_memory_new(&options);
    w->lua = luaL_newstate();
    assert_non_null(w->lua);
    luaL_openlibs(w->lua);
    assert_int_equal(luaL_loadbuffer(w->lua, script.at, script.len, "=rate.lua"), 0);
    assert_int_equal(luaL_dostring(w->lua, server), 0);
}

TEST(both_stores_take_the_same_calls)
{
    static const struct {
        uint32_t count, window_s;
    } rates[] = {{1, 1}, {3, 1}, {7, 2}, {10, 60}, {100, 60}, {999, 1}, {20, 3600}};
    struct walk w;
    unsigned taken = 0, waiting = 0;
    walk_begin(&w);
    for (int step = 0; step < STEPS; step++) {
        struct store_rate_request request = {.admission = 1 + below(ADMISSIONS)};
        request.bucket.low = below(BUCKETS); /* and with it its rates: one or two */
        request.rate_count = 1 + request.bucket.low % 2;
        for (uint32_t i = 0, at = (uint32_t)request.bucket.low; i < request.rate_count; i++, at++) {
            request.rates[i].count = rates[at].count;
            request.rates[i].window_s = rates[at].window_s;
        }
        if (below(2))
            request.admission = 1000 + (uint64_t)step;
        if (below(4) == 0) { /* one of the last is given back, which may be none of this bucket */
            request.admission = request.admission > 1000 ? request.admission - below(20) : request.admission;
            request.held_us = 1 + below(below(2) ? 1000 : 10000000);
        }
        let_time_pass();
        uint32_t expected = ask_script(&w, &request), wait_ms = ask_memory(&w, &request);
        if (wait_ms != expected)
            fail_msg("step %d: the script says %u ms, the memory store %u ms", step, expected, wait_ms);
        taken += wait_ms == 0;
        waiting += wait_ms > 0;
    }
    assert_true(taken > STEPS / 10 && waiting > STEPS / 10);
    lua_close(w.lua);
    w.store->kind->free(w.store);
}

TEST(a_rate_of_more_than_one_call_a_millisecond_limits_too)
{
    struct walk w;
    unsigned taken = 0;
    walk_begin(&w);
    for (uint64_t admission = 1; admission <= 5000; admission++) {
        struct store_rate_request request = {.admission = admission, .rates = {{2000, 1}}, .rate_count = 1};
        uint32_t expected = ask_script(&w, &request), wait_ms = ask_memory(&w, &request);
        assert_int_equal(wait_ms, expected);
        taken += wait_ms == 0;
    }
    assert_int_equal(taken, 2000);
    lua_close(w.lua);
    w.store->kind->free(w.store);
}

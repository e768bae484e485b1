/* A call that passes allocates nothing from the system: its values are in its arena, its tables in the
 * sandbox's heap. */
#include "policy/policy_support.h"

#define WARM_CALLS    2000
#define COUNTED_CALLS 20000

static size_t taken;

#ifndef __SANITIZE_ADDRESS__ /* which replaces malloc */
void *__libc_malloc(size_t size);
void *malloc(size_t size);
void *malloc(size_t size)
{
    taken++;
    return __libc_malloc(size);
}
#endif

static const char *const six =
    "{\"action\":\"by_time_span\",\"start\":\"2026-05-01T00:00:00Z\",\"end\":\"2026-05-02T00:00:00Z\","
    "\"limit\":50,\"calendar_id\":\"cal-7f3a\",\"in\":{\"all_day\":false,\"tags\":[\"a\",{\"b\":1.10}]}}";

static void pass(const struct policy *policy, const struct json *args)
{
    struct arena *own = arena_new();
    policy_normalise(policy, &a_call, args, own, &said);
    assert_int_equal(said.kind, OUTCOME_PASS);
    assert_ptr_equal(said.args, args);
    policy_check(policy, &a_call, args, own, &said);
    assert_int_equal(said.kind, OUTCOME_PASS);
    arena_free(own);
}

TEST(a_passing_call_takes_no_memory)
{
    const struct policy *policy =
        load("return tool 't' {\n  normalise = function(args) return args end,\n"
             "  check = function(args, call)\n    if args.limit > 100 then return refuse('a', 'b') end\n"
             "    if args.action ~= 'by_time_span' and call.goal == '' then return refuse('c', 'd') end\n"
             "  end,\n}");
    const struct json *args = value_of(six);
    for (int i = 0; i < WARM_CALLS; i++)
        pass(policy, args);
    size_t before = taken, arenas = arena_malloc_count();
    for (int i = 0; i < COUNTED_CALLS; i++)
        pass(policy, args);
#ifndef __SANITIZE_ADDRESS__
    assert_true(before > 0);
#endif
    assert_int_equal(taken - before, 0);
    assert_int_equal(arena_malloc_count() - arenas, 0);
}

/* The counters: per tool, within their bounds, and loops as an operator counts them. */
#include "gate/metrics.h"

#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct metrics metrics;

static int setup(void **state)
{
    (void)state;
    metrics_clear(&metrics);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    metrics_clear(&metrics);
    return 0;
}

static struct verdict verdict_of(enum error_class class, const char *code)
{
    struct verdict v = {0};
    verdict_set(&v, class, str_of(code), STR_NONE, STR_NONE);
    return v;
}

static void ends(const char *tool, const char *session, struct verdict verdict)
{
    struct metrics_call call = {
        .mode = CALL_CHECK, .tool = str_of(tool), .session = str_of(session), .verdict = &verdict};
    metrics_count_call(&metrics, &call);
}

static uint64_t code_count(const char *tool, const char *code)
{
    const struct metrics_tool *row = metrics_tool(&metrics, str_of(tool));
    for (size_t i = 0; row && i < row->code_count; i++)
        if (str_is(row->codes[i].code, code))
            return row->codes[i].count;
    return 0;
}

static void counts_each_outcome_of_a_tool(void **state)
{
    (void)state;
    ends("book", "a", verdict_of(CLASS_OK, ""));
    ends("book", "a", verdict_of(CLASS_OK, ""));
    ends("book", "a", verdict_of(CLASS_RETRY_BUDGET, "same_call"));
    const struct metrics_tool *row = metrics_tool(&metrics, STR_LIT("book"));
    assert_int_equal(row->calls, 3);
    assert_int_equal(row->refused, 1);
    assert_int_equal(row->outcome_count, 2);
    assert_int_equal(row->outcomes[0].count, 2);
    assert_int_equal(row->outcomes[1].verdict, VERDICT_REFUSE);
    assert_int_equal(row->outcomes[1].class, CLASS_RETRY_BUDGET);
    assert_int_equal(code_count("book", "same_call"), 1);
    assert_null(metrics_tool(&metrics, STR_LIT("cancel")));
}

static void a_problem_of_a_group_counts_as_often_as_it_occurs(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct verdict v = verdict_of(CLASS_INVALID_ARGUMENTS, "invalid_arguments");
    problems_init(&v.problems, arena);
    problems_add(&v.problems, (struct problem){.path = STR_LIT("a"), .code = "missing"});
    problems_add(&v.problems, (struct problem){.path = STR_LIT("b"), .code = "maximum", .count = 4});
    problems_add(&v.problems, (struct problem){.path = STR_LIT("c"), .code = "list", .warning = true});
    ends("book", "a", v);
    assert_int_equal(code_count("book", "missing"), 1);
    assert_int_equal(code_count("book", "maximum"), 4);
    assert_int_equal(code_count("book", "list"), 0);
    assert_int_equal(code_count("book", "invalid_arguments"), 0);
    arena_free(arena);
}

static void codes_are_bounded_and_identifiers(void **state)
{
    char code[32];
    (void)state;
    ends("book", "a", verdict_of(CLASS_TOOL_ERROR, "No such customer: Ann Example"));
    assert_int_equal(code_count("book", METRICS_OTHER), 1);
    for (unsigned i = 0; i < 3 * METRICS_CODES_MAX; i++) {
        snprintf(code, sizeof(code), "E%u", i);
        ends("book", "a", verdict_of(CLASS_TOOL_ERROR, code));
    }
    const struct metrics_tool *row = metrics_tool(&metrics, STR_LIT("book"));
    assert_in_range(row->code_count, METRICS_CODES_MAX - 1, METRICS_CODES_MAX);
    assert_int_equal(code_count("book", "E0"), 1);
    assert_int_equal(code_count("book", METRICS_OTHER), 1 + 3 * METRICS_CODES_MAX - (row->code_count - 1));
}

static void tools_are_bounded(void **state)
{
    char name[32];
    (void)state;
    ends("", "a", verdict_of(CLASS_UNKNOWN_TOOL, "unknown_tool"));
    for (unsigned i = 0; i < 2 * METRICS_TOOLS_MAX; i++) {
        snprintf(name, sizeof(name), "tool_%u", i);
        ends(name, "a", verdict_of(CLASS_OK, ""));
    }
    ends("", "a", verdict_of(CLASS_UNKNOWN_TOOL, "unknown_tool"));
    uint64_t calls = 0;
    for (size_t i = 0; i < metrics.tool_count; i++)
        calls += metrics.tools[i]->calls;
    assert_in_range(metrics.tool_count, METRICS_TOOLS_MAX - 2, METRICS_TOOLS_MAX);
    assert_int_equal(calls, 2 * METRICS_TOOLS_MAX + 2);
    assert_int_equal(metrics_tool(&metrics, STR_LIT(METRICS_UNKNOWN_TOOL))->calls, 2);
    assert_int_equal(metrics_tool(&metrics, STR_LIT("tool_0"))->calls, 1);
    assert_non_null(metrics_tool(&metrics, STR_LIT(METRICS_OTHER)));
}

/* A client that registers tools without end leaves room for those of the configuration. */
static void tools_of_clients_are_bounded_apart(void **state)
{
    char name[32];
    struct verdict pass = verdict_of(CLASS_OK, "");
    (void)state;
    for (unsigned i = 0; i < 2 * METRICS_CLIENT_TOOLS_MAX; i++) {
        snprintf(name, sizeof(name), "own_%u", i);
        struct metrics_call call = {
            .mode = CALL_CHECK, .tool = str_of(name), .of_client = true, .verdict = &pass};
        metrics_count_call(&metrics, &call);
    }
    ends("book", "a", pass);
    assert_int_equal(metrics.tool_count, METRICS_CLIENT_TOOLS_MAX + 2 /* other, book */);
    assert_int_equal(metrics_tool(&metrics, STR_LIT(METRICS_OTHER))->calls, METRICS_CLIENT_TOOLS_MAX);
    assert_int_equal(metrics_tool(&metrics, STR_LIT("book"))->calls, 1);
}

static void a_loop_begins_once_until_a_call_passes(void **state)
{
    (void)state;
    struct verdict refused = verdict_of(CLASS_LOOP, "loop"), pass = verdict_of(CLASS_OK, "");
    ends("book", "a", pass);
    for (int i = 0; i < 3; i++)
        ends("book", "a", refused);
    ends("book", "b", refused);
    ends("book", "b", pass);
    ends("book", "b", refused);
    assert_int_equal(metrics.saved, 5);
    assert_int_equal(metrics.loops, 3);
    assert_int_equal(metrics_tool(&metrics, STR_LIT("book"))->saved, 5);
    assert_int_equal(metrics_tool(&metrics, STR_LIT("book"))->loops, 3);
    assert_int_equal(metrics.looping_count, 2);
    ends("book", "a", pass);
    ends("book", "b", pass);
    assert_int_equal(metrics.looping_count, 0);
}

static void chains_end_by_tool_and_outcome(void **state)
{
    (void)state;
    ends("book", "a", verdict_of(CLASS_OK, ""));
    metrics_count_chain(&metrics, STR_LIT("book"), STR_LIT("success"));
    metrics_count_chain(&metrics, STR_LIT("book"), STR_LIT("no_retry"));
    metrics_count_chain(&metrics, STR_LIT("elsewhere"), STR_LIT("llm_gave_up"));
    assert_int_equal(metrics.chains_ended, 2);
    assert_int_equal(metrics_tool(&metrics, STR_LIT("book"))->chains[METRICS_CHAIN_SUCCESS], 1);
    assert_int_equal(metrics_tool(&metrics, STR_LIT(METRICS_OTHER))->chains[METRICS_CHAIN_GAVE_UP], 1);
    metrics_count_chain(NULL, STR_LIT("book"), STR_LIT("success"));
}

static void times_fall_into_their_buckets(void **state)
{
    struct call_timing timing = {.total_ns = 30000000,
                                 .part_ns = {[CALL_PART_SCHEMA] = 1000, [CALL_PART_UPSTREAM] = 20000000001}};
    struct verdict pass = verdict_of(CLASS_OK, "");
    struct metrics_call call = {
        .mode = CALL_RUN, .tool = STR_LIT("book"), .verdict = &pass, .timing = &timing};
    (void)state;
    metrics_count_call(&metrics, &call);
    const struct metrics_tool *row = metrics_tool(&metrics, STR_LIT("book"));
    assert_int_equal(metrics.parts[CALL_PART_SCHEMA].buckets[0], 1); /* the bound is inclusive */
    assert_int_equal(metrics.parts[CALL_PART_UPSTREAM].buckets[histogram_fine_bounds.count], 1);
    assert_int_equal(metrics.parts[CALL_PART_UPSTREAM].sum_ns, 20000000001);
    assert_int_equal(histogram_count(&metrics.parts[CALL_PART_LEDGER]), 0);
    assert_int_equal(row->passed.buckets[2], 1); /* 20 to 50 ms */
    assert_int_equal(histogram_count(&row->failed), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(counts_each_outcome_of_a_tool),      CASE(a_problem_of_a_group_counts_as_often_as_it_occurs),
        CASE(codes_are_bounded_and_identifiers),  CASE(tools_are_bounded),
        CASE(tools_of_clients_are_bounded_apart), CASE(a_loop_begins_once_until_a_call_passes),
        CASE(chains_end_by_tool_and_outcome),     CASE(times_fall_into_their_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

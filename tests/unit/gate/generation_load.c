/* The examples of a load share a time: past it the load fails, and says so. */

#include "folder.h"
#include "base/arena.h"
#include "policy/config.h"
#include "gate/generation_load.h"

static void set_up(void)
{
    make_folder();
    write_file("t.lua",
               "local list = {}\n"
               "for i = 1, 200 do list[i] = { 'e' .. i, args = { n = i }, gives = 'pass' } end\n"
               "return tool 't' { description = 'd', examples = list,\n"
               "  schema = json '{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}',\n"
               "  run = function(args) local x = 0 for i = 1, 1e5 do x = x + i end return x end }\n");
}

FIXTURE(set_up, remove_folder)

static enum err load(uint32_t examples_ms, struct generation_report *report)
{
    struct config_sources sources = {.policies = folder};
    struct generation_load_request request = {.sources = &sources, .number = 1, .examples_ms = examples_ms};
    struct generation *generation = NULL;
    struct generation_load *load = generation_load_begin(&request, report);
    while (generation_load_step(load))
        continue;
    enum err err = generation_load_end(load, &generation);
    assert_true(err != OK || generation != NULL);
    generation_unref(generation);
    return err;
}

TEST(examples_share_a_time)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    generation_report_init(&report, arena);
    assert_int_equal(load(1, &report), ERR_CONFIG);
    assert_true(report.example_count > 0 && report.example_count < 200);
    assert_int_equal(report.error_count, 1);
    assert_non_null(strstr(report.errors[0].at, "longer than 1 ms to run"));
    generation_report_init(&report, arena);
    assert_int_equal(load(0, &report), OK);
    assert_int_equal(report.example_count, 200);
    arena_free(arena);
}

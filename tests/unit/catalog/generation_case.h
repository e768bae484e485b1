/* A generation from strings: the files in policies/ and toolgate.lua of a temporary folder, built before each
 * use. */
#ifndef TOOLGATE_TESTS_GENERATION_CASE_H
#define TOOLGATE_TESTS_GENERATION_CASE_H

#include "folder.h"
#include "values.h"
#include "base/log.h"
#include "catalog/generation.h"
#include "policy/config.h"

#include <sys/stat.h>

static struct generation *generation;
static struct generation_report report;

static void begin_generation(void)
{
    log_open(LOG_OFF, LOG_FORMAT_TEXT, NULL, NULL);
    arena = arena_new();
    make_folder();
    assert_int_equal(mkdir(in_folder("policies"), 0700), 0);
}

static void end_generation(void)
{
    generation_unref(generation);
    generation = NULL;
    remove_folder();
    arena_free(arena);
}

USUAL_FIXTURE(begin_generation, end_generation)

static inline enum err build_with(struct config_sources sources,
                                  const struct generation_build_options *options)
{
    struct config config;
    struct why why;
    sources.policies = in_folder("policies");
    if (config_load(&sources, &config, &why) != OK)
        fail_msg("%s", why.text);
    generation_unref(generation);
    generation = NULL;
    generation_report_init(&report, arena);
    return generation_build(&config, 1, options, &generation, &report);
}

#endif

/* Loads a generation: the phases in their order, each in as many steps as it needs. */
#include "gate/generation_load.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "policy/config.h"
#include "gate/examples.h"
#include "policy/policy_set.h"

#include <stdlib.h>

struct generation_load {
    struct generation_load_request request;
    struct generation_report *report;
    size_t phase;
    struct config config; /* until the build takes it over */
    struct generation_build *build;
    struct examples *examples;
    int64_t examples_us; /* processor time that they used */
    struct generation *built;
    bool unchanged; /* it equals the serving generation */
    enum err err;
};

static bool read_config(struct generation_load *l)
{
    struct generation_build_options options = {.warns_of_rules = true};
    struct why why;
    l->err = config_load(l->request.sources, &l->config, &why);
    if (l->err) {
        generation_report_error(l->report, "%s", why.text);
        return false;
    }
    if (l->request.on_config)
        l->err = l->request.on_config(l->request.owner, &l->config, &options);
    if (l->err)
        return false;
    l->build = generation_build_begin(&l->config, l->request.number, &options, l->report);
    return false;
}

static bool build(struct generation_load *l)
{
    if (generation_build_step(l->build))
        return true;
    l->err = generation_build_end(l->build, &l->built);
    l->build = NULL;
    return false;
}

static bool compare_with_serving(struct generation_load *l)
{
    const struct generation *serving = l->request.serving;
    l->unchanged =
        serving && str_eq(l->built->hash, serving->hash) && l->built->list_hash == serving->list_hash;
    if (!l->unchanged)
        l->examples = examples_begin(l->built, l->report, &(struct examples_options){.only = NULL});
    return false;
}

static bool run_examples(struct generation_load *l)
{
    uint32_t max_ms = l->request.examples_ms ? l->request.examples_ms : GENERATION_EXAMPLES_MS;
    int64_t began_us = clock_cpu_us();
    bool more = examples_step(l->examples);
    l->examples_us += clock_cpu_us() - began_us;
    bool in_time = l->examples_us < (int64_t)max_ms * 1000;
    if (!in_time)
        generation_report_error(l->report,
                                "the examples of all policies take longer than %u ms to run (%zu ran): give "
                                "fewer, or keep the slow ones for toolgate test in a folder of their own",
                                max_ms, l->report->example_count);
    if (more && in_time)
        return true;
    size_t failed = examples_end(l->examples) + !in_time;
    l->examples = NULL;
    policy_set_reset_counters(l->built->policies); /* examples are no traffic */
    if (failed)
        l->err = ERR_CONFIG;
    return false;
}

static bool (*const phases[])(struct generation_load *) = {read_config, build, compare_with_serving,
                                                           run_examples};
#define PHASE_COUNT (sizeof(phases) / sizeof(phases[0]))

struct generation_load *generation_load_begin(const struct generation_load_request *request,
                                              struct generation_report *report)
{
    struct generation_load *l = alloc_zeroed(sizeof(*l));
    l->request = *request;
    l->report = report;
    return l;
}

bool generation_load_step(struct generation_load *l)
{
    if (l->phase == PHASE_COUNT)
        return false;
    if (phases[l->phase](l))
        return true;
    l->phase = l->err || l->unchanged ? PHASE_COUNT : l->phase + 1;
    return l->phase < PHASE_COUNT;
}

enum err generation_load_end(struct generation_load *l, struct generation **out)
{
    bool complete = l->phase == PHASE_COUNT && l->err == OK;
    enum err err = l->err ? l->err : complete ? OK : ERR_CLOSED;
    if (l->build)
        generation_build_end(l->build, &l->built);
    if (l->examples)
        examples_end(l->examples);
    if (l->config.arena)
        config_free(&l->config);
    if (!complete || l->unchanged) {
        generation_unref(l->built);
        l->built = NULL;
    }
    *out = l->built;
    free(l);
    return err;
}

enum err generation_load(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report)
{
    struct generation_load_request request = {.sources = sources, .number = number};
    struct generation_load *load = generation_load_begin(&request, report);
    while (generation_load_step(load))
        continue;
    return generation_load_end(load, out);
}

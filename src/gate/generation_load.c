/* Reading, building, trying: each phase for as many steps as it wants. */
#include "gate/generation_load.h"

#include "gate/examples.h"

#include <stdlib.h>

struct loading {
    struct generation_load_request request;
    struct generation_report *report;
    const struct policy_stall *stalls;
    size_t stall_count;
    const struct offers *offers;
    bool (*phase)(struct loading *); /* says whether it wants another step; NULL: all is done */
    struct config config;            /* until it is built into the generation */
    struct building *building;
    struct examples *examples;
    struct generation *built;
    enum err err;
};

static bool try_examples(struct loading *l)
{
    if (examples_step(l->examples))
        return true;
    size_t failed = examples_end(l->examples);
    l->examples = NULL;
    policy_set_reset_counters(generation_policies(l->built)); /* nobody's traffic */
    if (failed)
        l->err = ERR_CONFIG;
    return false;
}

static bool is_same(const struct generation *a, const struct generation *b)
{
    return str_eq(generation_hash(a), generation_hash(b)) &&
           generation_list_hash(a) == generation_list_hash(b);
}

static bool compare(struct loading *l)
{
    if (l->request.serving && is_same(l->built, l->request.serving)) {
        generation_unref(l->built);
        l->built = NULL;
        return false;
    }
    l->examples = examples_begin(l->built, l->report, l->report->example_seen, l->report->example_owner);
    l->phase = try_examples;
    return true;
}

static bool build(struct loading *l)
{
    if (generation_build_step(l->building))
        return true;
    l->err = generation_build_end(l->building, &l->built);
    l->building = NULL;
    l->phase = compare;
    return l->err == OK;
}

static bool read_config(struct loading *l)
{
    struct why why;
    l->err = config_load(l->request.sources, &l->config, &why);
    if (l->err)
        generation_report_error(l->report, "%s", why.text);
    l->phase = build;
    return l->err == OK;
}

struct loading *generation_load_begin(const struct generation_load_request *request,
                                      struct generation_report *report)
{
    struct loading *l = calloc(1, sizeof(*l));
    if (!l)
        abort();
    *l = (struct loading){.request = *request, .report = report, .phase = read_config};
    return l;
}

/* The configuration is handed over one step after it was read, so that who wants to see it first can. */
bool generation_load_step(struct loading *l)
{
    if (l->phase == build && !l->building)
        l->building = generation_build_begin(&l->config, l->request.number, l->stalls, l->stall_count,
                                             l->offers, l->report);
    if (l->phase && !l->phase(l))
        l->phase = NULL;
    return l->phase != NULL;
}

const struct config *generation_load_config(const struct loading *l)
{
    return l->phase == build && !l->building ? &l->config : NULL;
}

void generation_load_quarantine(struct loading *l, const struct policy_stall *stalls, size_t count)
{
    l->stalls = stalls;
    l->stall_count = count;
}

void generation_load_set_offers(struct loading *l, const struct offers *offers)
{
    l->offers = offers;
}

enum err generation_load_end(struct loading *l, struct generation **out)
{
    bool whole = !l->phase && l->err == OK;
    enum err err = l->err ? l->err : whole ? OK : ERR_CLOSED;
    if (l->building)
        generation_build_end(l->building, &l->built);
    if (l->examples)
        examples_end(l->examples);
    if (l->config.arena)
        config_free(&l->config);
    if (!whole)
        generation_unref(l->built);
    *out = whole ? l->built : NULL;
    free(l);
    return err;
}

enum err generation_load(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report)
{
    struct generation_load_request request = {.sources = sources, .number = number};
    struct loading *loading = generation_load_begin(&request, report);
    while (generation_load_step(loading))
        continue;
    return generation_load_end(loading, out);
}

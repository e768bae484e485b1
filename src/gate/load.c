/* Reading, building, trying. */
#include "gate/load.h"

#include "gate/examples.h"

static enum err build(const struct config_sources *sources, uint64_t number, struct generation **out,
                      struct generation_report *report)
{
    struct config config;
    struct why why;
    enum err err = config_load(sources, &config, &why);
    if (err)
        generation_report_error(report, "%s", why.text);
    else
        err = generation_build(&config, number, out, report);
    if (err)
        config_free(&config);
    return err;
}

enum err load_generation(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report)
{
    *out = NULL;
    enum err err = build(sources, number, out, report);
    if (err)
        return err;
    size_t failed = examples_run(*out, report, report->example_seen, report->example_owner);
    policies_forget_hits(generation_policies(*out)); /* nobody's traffic */
    if (!failed)
        return OK;
    generation_unref(*out);
    *out = NULL;
    return ERR_CONFIG;
}

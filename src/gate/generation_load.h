/*
 * Loads a generation from the operator's files until it may go live: reads the configuration, builds the
 * generation (catalog/generation.c), runs every example. The daemon does it at its start and for each
 * reload, commands that need no daemon do it once.
 */
#ifndef TOOLGATE_GATE_GENERATION_LOAD_H
#define TOOLGATE_GATE_GENERATION_LOAD_H

#include "catalog/generation.h"

#define GENERATION_EXAMPLES_MS 30000u /* of processor time, for all examples of a generation */

/* All at once, without upstreams. On failure `*out` is NULL and the report holds all errors. */
enum err generation_load(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report);

/* ---- in steps of one file, tool or example, for a daemon that serves between them ---- */

struct generation_load_request {
    const struct config_sources *sources;
    uint64_t number;
    /* an equal generation is given up before its examples run; NULL: none */
    const struct generation *serving;
    uint32_t examples_ms; /* that all examples may take; 0: GENERATION_EXAMPLES_MS */
    /* Called once the configuration is read, before it is used: fills in what must not run and the upstreams'
     * tool lists. An error, which it has reported, ends the load. May be NULL. */
    enum err (*on_config)(void *owner, const struct config *config, struct generation_build_options *options);
    void *owner;
};

/* Step until it returns false, then end, which frees the load; an end before the last step gives it up.
 * Arguments are borrowed until then. OK with `*out` NULL: the serving generation is equal. */
struct generation_load *generation_load_begin(const struct generation_load_request *request,
                                              struct generation_report *report);
bool generation_load_step(struct generation_load *load);
enum err generation_load_end(struct generation_load *load, struct generation **out);

#endif

/*
 * From the operator's files to a generation that may go live: configuration,
 * policies, tools, and every example passed. What the daemon does at start
 * and at each reload, and every command that needs no daemon.
 */
#ifndef TOOLGATE_GATE_GENERATION_LOAD_H
#define TOOLGATE_GATE_GENERATION_LOAD_H

#include "catalog/generation.h"

/* On failure `*out` is NULL and the report holds all errors, failed examples included. */
enum err generation_load(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report);

/* ---- the same in steps, for a loop that has others to serve meanwhile ------ */

struct generation_load_request {
    const struct config_sources *sources;
    uint64_t number;
    const struct offers *offers;      /* NULL: no upstream runs */
    const struct generation *serving; /* NULL: none. The same again is built, but not tried, and given up */
};

struct loading;

/* Everything given is borrowed until the end. */
struct loading *generation_load_begin(const struct generation_load_request *request,
                                      struct generation_report *report);

/* One file, tool or example; false: there is no more to do. */
bool generation_load_step(struct loading *loading);

/* After the step that has read it, and before the next one; NULL at any other time. */
const struct config *generation_load_config(const struct loading *loading);

/* Files that must not run (see policy_set_options); heeded where it is said while generation_load_config
 * gives the configuration, that is before the first policy. Borrowed until the end. */
void generation_load_quarantine(struct loading *loading, const struct policy_stall *stalls, size_t count);

/* What upstreams offer, heeded where it is said at that same time; not said: nothing. Borrowed likewise. */
void generation_load_set_offers(struct loading *loading, const struct offers *offers);

/* Frees it. OK with `*out` NULL: nothing has changed. An end before the last step gives it up. */
enum err generation_load_end(struct loading *loading, struct generation **out);

#endif

/*
 * From the operator's files to a generation that may go live: configuration,
 * policies, tools, and every example passed. What the daemon does at start
 * and at each reload, and every command that needs no daemon.
 */
#ifndef TOOLGATE_GATE_GENERATION_LOAD_H
#define TOOLGATE_GATE_GENERATION_LOAD_H

#include "catalog/generation.h"

/* On failure `*out` is NULL and the report holds all errors, failed examples included. */
enum err load_generation(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report);

/* ---- the same in steps, for a loop that has others to serve meanwhile ------ */

struct load_request {
    const struct config_sources *sources;
    uint64_t number;
    const struct offers *offers;      /* NULL: no upstream runs */
    const struct generation *serving; /* NULL: none. The same again is built, but not tried, and given up */
};

struct loading;

/* Everything given is borrowed until the end. */
struct loading *loading_begin(const struct load_request *request, struct generation_report *report);

/* One file, tool or example; false: there is no more to do. */
bool loading_step(struct loading *loading);

/* After the step that has read it, and before the next one; NULL at any other time. */
const struct config *loading_config(const struct loading *loading);

/* Files that must not run (see policies_options); heeded where it is said while loading_config gives the
 * configuration, that is before the first policy. Borrowed until the end. */
void loading_distrust(struct loading *loading, const struct policy_stall *stalls, size_t count);

/* What upstreams offer, heeded where it is said at that same time; not said: nothing. Borrowed likewise. */
void loading_offers(struct loading *loading, const struct offers *offers);

/* Frees it. OK with `*out` NULL: nothing has changed. An end before the last step gives it up. */
enum err loading_end(struct loading *loading, struct generation **out);

#endif

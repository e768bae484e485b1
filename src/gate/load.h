/*
 * From the operator's files to a generation that may go live: configuration,
 * policies, tools, and every example passed. What the daemon does at start
 * and at each reload, and every command that needs no daemon.
 */
#ifndef TOOLGATE_GATE_LOAD_H
#define TOOLGATE_GATE_LOAD_H

#include "gate/generation.h"

/* On failure `*out` is NULL and the report holds all errors, failed examples included. */
enum err load_generation(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report);

#endif

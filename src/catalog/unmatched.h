/*
 * Policies that guard no tool: their tool is not known, or no name in their `tools` matches one. A guard that
 * guards nothing must not look like one that does: a misspelled name is an error of the load; a policy whose
 * server has yet to list its tools waits; what its server no longer offers is a fault of the generation.
 */
#ifndef TOOLGATE_CATALOG_UNMATCHED_H
#define TOOLGATE_CATALOG_UNMATCHED_H

#include "catalog/generation.h"

struct unmatched;

/* After all tools are added. `tools_changed`: only an upstream's list has changed, and a load that the
 * operator has not asked for must not fail: misspelled names are faults, too. Everything is borrowed. */
struct unmatched *unmatched_begin(struct generation *generation, bool tools_changed,
                                  struct generation_report *report);

/* Whether an upstream has yet to list its tools. */
bool unmatched_waits(const struct unmatched *unmatched);

/* Reports on one policy, and adds it to generation->unmatched if it is waiting or at fault. */
void unmatched_check(struct unmatched *unmatched, const struct policy *policy);

#endif

/*
 * Sample calls for examples.c: made from the schema of a tool that runs in Lua, without expectations. A
 * policy may refuse, ask or fail; it must not break, and the result of `run` must fit the output schema.
 */
#ifndef TOOLGATE_GATE_EXAMPLES_SAMPLE_H
#define TOOLGATE_GATE_EXAMPLES_SAMPLE_H

#include "gate/call.h"
#include "gate/examples.h"
#include "schema/sample.h"

/* Writes the sample as an example; false: the schema yields no arguments. */
bool examples_sample_make(struct arena *arena, const struct tool *tool, enum sample_extent extent,
                          struct policy_example *out);

/* How often the policy has broken so far. */
uint64_t examples_sample_faults(const struct policy *policy);

/* Sets `passed`, and the mismatch if it failed. `faults`: examples_sample_faults before the call. */
void examples_sample_check(struct arena *arena, const struct call *call, uint64_t faults,
                           struct example_outcome *outcome);

#endif

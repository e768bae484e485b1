/* A call of a tool that toolgate runs, made from its schema alone. Part of gate/examples.c. */
#ifndef TOOLGATE_GATE_EXAMPLES_SAMPLE_H
#define TOOLGATE_GATE_EXAMPLES_SAMPLE_H

#include "gate/call.h"
#include "gate/examples.h"
#include "schema/sample.h"

/* The arguments as an example without expectations; false where none could be made from the schema. */
bool examples_sample_make(struct arena *arena, const struct tool *tool, enum sample_extent extent,
                          struct policy_example *out);

/* What may be said of a call nobody thought of: anything, but its policy must not break, and what `run` gave
 * must fit the output schema. `faults`: how often the policy had broken before. */
void examples_sample_check(struct arena *arena, const struct call *call, uint64_t faults,
                           struct example_outcome *outcome);
uint64_t examples_sample_faults(const struct policy *policy);

#endif

/*
 * A policy's examples, played through the one pipeline with a ledger and a
 * clock of their own before a generation goes live.
 */
#ifndef TOOLGATE_GATE_EXAMPLES_H
#define TOOLGATE_GATE_EXAMPLES_H

#include "gate/generation.h"

struct example_outcome {
    const struct policy *policy;
    const struct policy_example *example;
    bool passed;
    struct str expected, got; /* what a person compares, multi-line */
    int64_t us;
};

typedef void example_seen(void *owner, const struct example_outcome *outcome);

/* Runs all examples of a built generation; `seen` (may be NULL) hears of each. Returns how many failed;
 * failures also go into the report (may be NULL) as "file:line: example '…': expected …, got …". */
size_t examples_run(struct generation *generation, struct generation_report *report, example_seen *seen,
                    void *owner);

/* The same in steps, one example each, for a loop that has others to serve meanwhile: begin, step until it
 * says false, end. Everything given is borrowed until then. */
struct examples;
struct examples *examples_begin(struct generation *generation, struct generation_report *report,
                                example_seen *seen, void *owner);
bool examples_step(struct examples *examples);
size_t examples_end(struct examples *examples);

#endif

/*
 * A policy's examples, run through the pipeline before a generation goes live, each with a ledger and a clock
 * of its own; and sample calls of the tools that run in Lua, which need no example.
 */
#ifndef TOOLGATE_GATE_EXAMPLES_H
#define TOOLGATE_GATE_EXAMPLES_H

#include "catalog/generation.h"
#include "json/diff.h"

/* A field of an example that is not as expected. */
struct example_mismatch {
    /* "gives", "becomes", "shows", "says", "status", "again", "history", "next_args", "sample" */
    const char *field;
    struct str expected, got;
    const struct json_diff_result *changes; /* only for `becomes` and `shows`, else NULL */
};

#define EXAMPLE_MISMATCHES_MAX 8u

struct example_outcome {
    const struct policy *policy;
    const struct policy_example *example; /* of a sample: only name, line and arguments */
    bool sample;
    bool passed;
    bool schema_unknown; /* no schema for the tool: any arguments are accepted */
    bool open;           /* and its upstream has yet to list the tool: not passing decides nothing */
    struct example_mismatch mismatches[EXAMPLE_MISMATCHES_MAX];
    size_t mismatch_count;
    struct str verdict;           /* "repair invalid_arguments", in words that `gives` may use */
    struct str fault;             /* the policy error, with file and line; empty: none */
    struct str said;              /* what the model reads; empty: nothing */
    struct str status;            /* the coverage; empty: unknown */
    const char *stage;            /* the one that decided, e.g. "check"; NULL: none */
    const struct json *arguments; /* as the tool got them */
    const struct json *shown;     /* the result as the model gets it; NULL: none */
    int64_t us;
};

/* The outcome is valid during the call only. */
typedef void example_seen(void *owner, const struct example_outcome *outcome);

struct examples_options {
    const char *only;   /* a glob or a part of "tool: name"; NULL: all */
    bool samples;       /* run the samples instead of the examples */
    example_seen *seen; /* may be NULL */
    void *owner;
};

struct examples_count {
    size_t passed, failed, open;               /* examples */
    size_t samples, samples_failed, unsampled; /* unsampled: the schema yields no call */
};

/* Runs all. Failures also go to the report (may be NULL), a line each. */
struct examples_count examples_run(struct generation *generation, struct generation_report *report,
                                   const struct examples_options *options);

/* Runs the examples one by one, for a daemon that serves between the steps: step until it returns false, then
 * end, which frees it and returns how many failed. Arguments are borrowed until then. */
struct examples;
struct examples *examples_begin(struct generation *generation, struct generation_report *report,
                                const struct examples_options *options);
bool examples_step(struct examples *examples);
size_t examples_end(struct examples *examples);

#endif

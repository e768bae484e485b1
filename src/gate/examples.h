/*
 * A policy's examples, played through the one pipeline with a ledger and a
 * clock of their own before a generation goes live; and the same for a sample
 * call of each tool that toolgate runs, which nobody had to write.
 */
#ifndef TOOLGATE_GATE_EXAMPLES_H
#define TOOLGATE_GATE_EXAMPLES_H

#include "json/diff.h"
#include "catalog/generation.h"

struct buf;
struct verdict;

/* One thing that an example expects and did not get. */
struct example_mismatch {
    const char *field;                      /* "gives", "becomes", "shows", "says", "status", "history" */
    struct str expected, got;               /* as texts; `becomes`, `shows`: JSON */
    const struct json_diff_result *changes; /* `becomes` and `shows` only, else NULL */
};

#define EXAMPLE_MISMATCHES_MAX 6u

struct example_outcome {
    const struct policy *policy;
    const struct policy_example *example; /* of a sample: its name, line and arguments; it expects nothing */
    bool sample;
    bool passed;
    bool schema_unknown; /* the tool's schema is not known: any arguments will do */
    bool open;           /* and it is its upstream's to tell: that it did not pass says nothing yet */
    struct example_mismatch mismatches[EXAMPLE_MISMATCHES_MAX];
    size_t mismatch_count;
    struct str verdict;           /* "repair invalid_arguments", in words that `gives` could hold */
    struct str fault;             /* the line of the policy that broke and how; empty: none did */
    struct str said;              /* what the model reads; empty: nothing */
    struct str status;            /* the coverage; empty: not told */
    const char *stage;            /* the one that decided, "check"; NULL: none had to */
    const struct json *arguments; /* as the tool got them */
    const struct json *shown;     /* the result as the model gets it; NULL: none */
    int64_t us;
};

typedef void example_seen(void *owner, const struct example_outcome *outcome);

struct examples_options {
    const char *only;   /* NULL: all; else a glob or a part of "tool: name" */
    bool samples;       /* the sample calls, instead of the examples */
    example_seen *seen; /* NULL: nobody; the outcome lives for the call */
    void *owner;
};

struct examples_count {
    size_t passed, failed, open;               /* examples */
    size_t samples, samples_failed, unsampled; /* unsampled: no call could be made from the schema */
};

/* Runs the examples of a built generation. Failures also go into the report (may be NULL), each as the one
 * line that examples_write_line makes. */
struct examples_count examples_run(struct generation *generation, struct generation_report *report,
                                   const struct examples_options *options);

/* Without samples and in steps, one example each, for a loop that has others to serve meanwhile: begin, step
 * until it says false, end, which returns how many failed. Everything given is borrowed until then. */
struct examples;
struct examples *examples_begin(struct generation *generation, struct generation_report *report,
                                example_seen *seen, void *owner);
bool examples_step(struct examples *examples);
size_t examples_end(struct examples *examples);

/* ---- in words (examples_show.c) ---- */

struct example_colours {
    const char *expected, *got, *quiet, *plain; /* escape sequences, or "" */
};

/* What was expected and what was found, in aligned lines behind `indent` spaces; `all`: also where they
 * agree. */
void examples_write_text(struct buf *out, const struct example_outcome *outcome, int indent, bool all,
                         const struct example_colours *paint);

/* "policies/x.lua:12: example 'name': gives: expected pass, got …; becomes: - limit = 10, + limit = 50; the
 * model reads \"…\"": one line, for logs. */
void examples_write_line(struct buf *out, const struct example_outcome *outcome);

/* One object, {"kind":"example","tool":…}. */
void examples_write_json(struct buf *out, const struct example_outcome *outcome);

#endif

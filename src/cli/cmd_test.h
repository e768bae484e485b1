/* What the files test*.c share: what was asked for, and what came of it. */
#ifndef TOOLGATE_CLI_CMD_TEST_H
#define TOOLGATE_CLI_CMD_TEST_H

#include "cli/local_generation.h"
#include "gate/examples.h"
#include "policy/coverage.h"

struct test_options {
    struct local_options local;
    const char *const *places; /* folders and files */
    int place_count;
    const char *only;
    bool all, json; /* -v: also what holds; --json */
    bool watch, cover;
    unsigned coverage_min; /* percent */
};

struct test_tally {
    struct examples_count count;
    size_t broken;             /* complaints about what does not load */
    struct coverage *coverage; /* NULL: not asked for */
};

/* Everything once; the exit status. */
int test_all(const struct test_options *options);

/* The same again after every change; returns only where nothing can be watched. */
int test_watch(const struct test_options *options);

/* CLI_NO where it is less than --coverage-min. */
int test_print_coverage(const struct test_options *options, const struct coverage *coverage);

#endif

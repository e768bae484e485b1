/* What the files cmd_test*.c share: the options and the tally. */
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
    bool all, json; /* -v, --json */
    bool watch, cover;
    unsigned coverage_min; /* percent */
};

struct test_tally {
    struct examples_count count;
    size_t broken;             /* errors of files that do not load */
    struct coverage *coverage; /* NULL: not requested */
};

/* Calls `test` now and after each change; returns only if nothing can be watched. */
int test_watch(const struct test_options *options, int (*test)(const struct test_options *options));

/* CLI_NO if it is less than --coverage-min. */
int test_print_coverage(const struct test_options *options, const struct coverage *coverage);

#endif

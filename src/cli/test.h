/* What the files test*.c share: what was asked for, and what came of it. */
#ifndef TOOLGATE_CLI_TEST_H
#define TOOLGATE_CLI_TEST_H

#include "cli/local.h"
#include "gate/examples.h"

struct test_options {
    struct local_options local;
    const char *const *places; /* folders and files */
    int place_count;
    const char *only;
    bool all, json; /* -v: also what holds; --json */
};

struct test_tally {
    struct examples_count count;
    size_t broken; /* complaints about what does not load */
};

/* Everything once; the exit status. */
int test_all(const struct test_options *options);

#endif

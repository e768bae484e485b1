/* The benches: each measures, prints, and returns the command's exit code. */
#ifndef TOOLGATE_CLI_BENCH_H
#define TOOLGATE_CLI_BENCH_H

#include "cli/command.h"

#include <stdbool.h>

#define BENCH_POLICIES     10000u  /* --policies, where it is not given */
#define BENCH_POLICIES_MAX 100000u /* of one folder */

struct bench_options {
    unsigned connections, depth; /* socket; 0: not given */
    unsigned policies;           /* policy */
    unsigned seconds;            /* for each line of the socket's result; for all of the policy's */
    const char *redis;           /* socket: where the judging daemon's ledger is; NULL: its own */
    const char *workload;        /* schema: the file; NULL: not given */
    bool json;
};

int bench_socket(const struct command *command, const struct bench_options *options);
int bench_schema(const struct command *command, const struct bench_options *options);
int bench_policy(const struct command *command, const struct bench_options *options);

#endif

/*
 * Which rules and lines of policies were used: what examples leave untried.
 * Counting lines makes policies slow, so it is for `toolgate test` alone.
 */
#ifndef TOOLGATE_POLICY_COVERAGE_H
#define TOOLGATE_POLICY_COVERAGE_H

#include "policy/policy.h"
#include "policy/policy_hooks.h"

struct coverage_line {
    int line; /* of a function: lines of the file's own level run when it is loaded */
    uint64_t hits;
};

struct coverage_function {
    struct str name; /* "check", or "function at line 12" */
    int line;
    uint64_t hits;
};

struct coverage_rule {
    struct str words;
    uint64_t hits;
};

struct coverage_file {
    struct str file, tool; /* tool empty: the gateway */
    size_t examples;
    struct coverage_line *lines; /* in their order */
    size_t line_count;
    struct coverage_function *functions;
    size_t function_count;
    struct coverage_rule *rules;
    size_t rule_count;
};

struct coverage;
struct coverage *coverage_new(void);
void coverage_free(struct coverage *coverage); /* NULL is fine */

/* From now until coverage_end the lines that run in these policies are counted. Files that cannot be read any
 * more are left out. */
void coverage_begin(struct coverage *coverage, struct policy_set *policies);

/* Takes the rules' hits over; the policies may go then. */
void coverage_end(struct coverage *coverage, struct policy_set *policies);

/* Everything that was counted so far, also of several sets. */
const struct coverage_file *coverage_files(const struct coverage *coverage, size_t *count);

#endif

/*
 * Which rules and lines of policies ran: what examples leave untested.
 * Counting lines makes policies slow, so only `toolgate test` and lint do it.
 */
#ifndef TOOLGATE_POLICY_COVERAGE_H
#define TOOLGATE_POLICY_COVERAGE_H

#include "policy/policy.h"
#include "policy/policy_hooks.h"

struct coverage_line {
    int line; /* of a function; lines outside of functions run at load */
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
    const struct policy *policy; /* until coverage_end; NULL: a module, or the gateway */
};

struct coverage;
struct coverage *coverage_new(void);
void coverage_free(struct coverage *coverage); /* NULL is fine */

/* Counts lines of these policies until coverage_end; files that can no longer be read are left out. */
void coverage_begin(struct coverage *coverage, struct policy_set *policies);

/* Copies the hits of the rules; the policies may be freed afterwards. */
void coverage_end(struct coverage *coverage, struct policy_set *policies);

/* Everything counted so far, of all sets. */
const struct coverage_file *coverage_files(const struct coverage *coverage, size_t *count);

#endif

/*
 * `toolgate lint`: finds mistakes in policies and tools that the loader accepts. For people and their CI; the
 * daemon does not use it. Here are the checks that need a policy's source, its examples' runs or a
 * generation's structs; those that only read definitions are lua/cli/lint_checks.lua, as are the levels of
 * all.
 */
#ifndef TOOLGATE_CLI_LINT_H
#define TOOLGATE_CLI_LINT_H

#include "catalog/generation.h"
#include "policy/coverage.h"
#include "policy/source_location.h"

/* Its texts are borrowed. */
struct lint_finding {
    struct str file;
    int line; /* 0: unknown, or the file has no lines */
    const char *code;
    struct str sentence;
    bool theirs; /* about a definition that a server or a program published, not about a policy */
};

struct lint_example_run {
    const struct policy_example *example;
    bool was_judged; /* the call got as far as its result */
};

/* One tool, or (tool NULL) the whole generation. */
struct lint_context {
    const struct lint_visitor *visitor;
    struct arena *arena;
    const char *code; /* of the current check */
    bool of_tool; /* that check is about a tool: without a policy, its definition is somebody else's affair */
    bool only_policies; /* tools without one are left out, and what concerns the whole generation */
    struct generation *generation;
    const struct tool *tool;
    const struct policy *policy;          /* NULL: the tool has none */
    struct str source;                    /* of the policy; empty: it has none, or cannot be read */
    const struct token *tokens;           /* of the source */
    const struct json *shown;             /* the definition that models see; NULL: none */
    const struct coverage_file *coverage; /* by the examples; NULL: unknown */
    const struct lint_example_run *runs;
    size_t run_count;
};

struct lint_visitor {
    void (*found)(void *owner, const struct lint_finding *finding);
    /* Each generation that loads, then each of its tools. */
    void (*subject)(void *owner, const struct lint_context *context);
    void *owner;
};

/* Loads the sources and checks everything in them. Files that do not load become findings, and the others are
 * checked one by one. Returns false if nothing could be checked; the findings give the reason. */
bool lint_run(const struct config_sources *sources, const struct lint_visitor *visitor);

/* The line of the policy's `schema` field, or of its `tool`; 0 without a policy. */
int lint_schema_line(const struct lint_context *c);
int lint_tool_line(const struct lint_context *c);

/* ---- for the checks: lint_checks.c, lint_paths.c ---- */

/* The finding's file is the policy's, or the origin of the tool's definition if the finding is about that. */
void lint_report(struct lint_context *c, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef void lint_check(struct lint_context *c);

lint_check lint_rule_conflicts, lint_untried_rules, lint_untried_hooks, lint_no_examples, lint_unused_result,
    lint_duplicate_example, lint_mode_off, lint_contradictions, lint_todo, lint_no_hint, lint_no_effects,
    lint_hints, lint_retry_not_idempotent, lint_shadow_expired;
lint_check lint_argument_paths, lint_result_paths, lint_left_option;

#endif

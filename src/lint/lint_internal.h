/* What a check gets, and how it reports findings. Private to src/lint. */
#ifndef TOOLGATE_LINT_LINT_INTERNAL_H
#define TOOLGATE_LINT_LINT_INTERNAL_H

#include "catalog/generation.h"
#include "lint/lint.h"
#include "policy/coverage.h"
#include "policy/source_location.h"

struct lint_example_run {
    const struct policy_example *example;
    bool was_judged; /* the call got as far as its result */
};

/* What a check looks at: a published definition that a policy does not replace is its server's affair. */
enum lint_subject { LINT_OF_POLICY, LINT_OF_SCHEMA, LINT_OF_DESCRIPTION, LINT_OF_TOOL };

/* One tool, or (tool NULL) the whole generation. */
struct lint_context {
    struct lint *lint;
    struct arena *arena;
    const struct lint_code *code; /* of the current check */
    enum lint_subject subject;    /* likewise */
    struct generation *generation;
    const struct tool *tool;
    const struct policy *policy;          /* NULL: the tool has none */
    struct str source;                    /* of the policy; empty: it has none, or cannot be read */
    const struct token *tokens;           /* of the source */
    const struct json *shown;             /* the definition that models see; NULL: none */
    const struct coverage_file *coverage; /* by the examples; NULL: unknown */
    const struct lint_example_run *runs;
    size_t run_count;
    size_t enum_values; /* counted by lint_many_values */
};

/* The finding's file is the policy's, or the origin of the tool's definition if the finding is about that. */
void lint_report(struct lint_context *c, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef void lint_check(struct lint_context *c);

/* lint_examples.c */
lint_check lint_rule_conflicts, lint_untried_rules, lint_untried_hooks, lint_no_examples, lint_unused_result,
    lint_duplicate_example, lint_mode_off;
/* lint_paths.c */
lint_check lint_contradictions, lint_argument_paths, lint_result_paths, lint_left_option;
/* lint_descriptions.c */
lint_check lint_todo, lint_no_hint, lint_no_description, lint_undescribed_arguments, lint_no_effects,
    lint_hints, lint_retry_not_idempotent;
/* lint_orders.c */
lint_check lint_orders;
/* lint_overlays.c; all check the whole generation */
lint_check lint_overlay_tools, lint_overlay_examples, lint_shadow_expired;
/* lint_providers.c; the last one checks the whole generation */
lint_check lint_root_choice, lint_property_name, lint_list_items, lint_long_description, lint_many_values,
    lint_first_letter, lint_enum_type, lint_strict, lint_many_tools;

/* Calls `visit` for the schema of each property and item below `schema`, with its path, "items[].id". */
typedef void lint_visit(struct lint_context *c, struct str path, const struct json *schema);
void lint_walk(struct lint_context *c, const struct json *schema, lint_visit *visit);

/* The line of the policy's `schema` field, or of its `tool`; 0 without a policy. */
int lint_schema_line(const struct lint_context *c);
int lint_tool_line(const struct lint_context *c);

#endif

/*
 * What a check is given and how it says what it found. Only files of this
 * room include this header.
 */
#ifndef TOOLGATE_LINT_LINT_INTERNAL_H
#define TOOLGATE_LINT_LINT_INTERNAL_H

#include "catalog/generation.h"
#include "lint/lint.h"
#include "policy/coverage.h"
#include "policy/introspection.h"

/* How an example went. */
struct lint_example_run {
    const struct policy_example *example;
    bool was_judged; /* the call got as far as its result */
};

/* One tool, or (tool NULL) the generation as a whole. */
struct looking {
    struct lint *lint;
    struct arena *arena;
    const struct lint_code *code; /* of the check that looks */
    struct generation *generation;
    const struct tool *tool;
    const struct policy *policy;        /* NULL: the tool has none */
    struct policy_introspection survey; /* where there is a policy */
    const struct json *shown;           /* its definition as a model sees it; NULL: it sees none */
    const struct coverage_file *of;     /* what the examples reached; NULL: nothing is known */
    const struct lint_example_run *played;
    size_t played_count;
    size_t counted; /* by a check that walks */
};

/* The place is the policy's file, else where the tool's definition came from. */
void lint_report(struct looking *look, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef void lint_check(struct looking *look);

lint_check lint_rule_conflicts, lint_untried_rules, lint_untried_hooks,
    lint_no_examples; /* lint_rule_conflicts.c, lint_examples.c */
lint_check lint_unused_result, lint_duplicate_example, lint_mode_off; /* lint_examples.c */
lint_check lint_argument_paths, lint_result_paths;                    /* lint_paths.c */
lint_check lint_no_hint, lint_no_path, lint_no_description, lint_undescribed_arguments,
    lint_no_effects;                  /* texts.c */
lint_check lint_retry_not_idempotent; /* texts.c */
lint_check lint_root_choice, lint_property_name, lint_list_items, lint_long_description, lint_many_values,
    lint_first_letter, lint_enum_type, lint_strict; /* lint_providers.c */
lint_check lint_left_option;                        /* lint_commands.c */
lint_check lint_many_tools;                         /* the same, of the whole */

/* Calls `visit` for each schema of a property or item below `schema`, with its path, "items[].id". */
typedef void lint_visit(struct looking *look, struct str path, const struct json *schema);
void lint_walk(struct looking *look, const struct json *schema, lint_visit *visit);

/* The line of the field that holds the schema, for findings about it. */
int lint_schema_line(const struct looking *look);

#endif

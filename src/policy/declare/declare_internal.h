/* What the files declare*.c share: a reader and a table of fields for each part of a policy, and the checks
 * that need all parts. Only they and reference.c include this header. */
#ifndef TOOLGATE_POLICY_DECLARE_DECLARE_INTERNAL_H
#define TOOLGATE_POLICY_DECLARE_DECLARE_INTERNAL_H

#include "policy/declare/field_read.h"

/* A new table is also named in reference.c. */
extern const struct field_table declare_tool_table, declare_policy_table, declare_gateway_table,
    declare_coerce_table, declare_retry_table, declare_again_table, declare_loop_table, declare_poll_table,
    declare_limits_table, declare_rate_table, declare_exec_table, declare_exec_group_table,
    declare_exec_sandbox_table, declare_http_table, declare_compact_table, declare_example_table,
    declare_example_call_table;

/* Each in the file of its name; cost and rate are in declare_budgets.c, ids in declare_rules.c. */
field_reader declare_cost, declare_rate, declare_rules, declare_ids, declare_exec, declare_http,
    declare_compact, declare_examples;

/* All of a policy for several tools. */
void declare_several(struct declaration *d, int fields);

/* Before all fields: the schema and the description that annotations above `run` give; after all fields: an
 * annotated argument that the policy's own schema lacks is an error. */
void declare_annotations(struct declaration *d, int fields);
void declare_check_annotations(struct declaration *d);

/* After all fields. Each raises an error: */
void declare_check_rules(struct declaration *d);   /* rules that contradict each other or the schema */
void declare_check_runner(struct declaration *d);  /* more than one of run, exec, http and upstream */
void declare_check_formats(struct declaration *d); /* a time zone for what is refused */
void declare_check_exec(
    struct declaration *d); /* a word that the schema lacks, or that runs a model's program */
void declare_check_http(struct declaration *d); /* an address that needs what the schema does not require */

/* The properties of a schema that names all its arguments there; NULL: other keywords may name more. */
const struct json *declare_properties(const struct json *schema);

/* Raises: `field` takes an argument that is not among the properties. `otherwise` follows if no name is
 * close. */
void declare_unknown_argument(struct declaration *d, const char *field, const struct json *properties,
                              struct str name, const char *otherwise) __attribute__((noreturn));

#endif

/*
 * What the files declare*.c share: one for each part of a policy that has a
 * form of its own, and the helpers that all of them read with. Only they
 * include this header.
 */
#ifndef TOOLGATE_POLICY_DECLARE_DECLARE_INTERNAL_H
#define TOOLGATE_POLICY_DECLARE_DECLARE_INTERNAL_H

#include "policy/declare/field_read.h"

/* Readers of one field each; the value is at `at`. */
typedef void declare_part(struct declaration *d, const struct field *field, int at);
declare_part declare_retry, declare_loop, declare_limits, declare_cost; /* declare_budgets.c */
declare_part declare_compact;                                           /* declare_compact.c */
declare_part declare_ids;                                               /* declare_ids.c */
declare_part declare_exec;                                              /* declare_exec.c */
declare_part declare_http;                                              /* declare_http.c */
declare_part declare_examples;                                          /* declare_examples.c */

/* Their fields; a new one is also named in field_tables.c. */
extern const struct field_table declare_policy_table, declare_gateway_table,
    declare_coerce_table; /* declare.c */
extern const struct field_table declare_retry_table, declare_loop_table, declare_poll_table,
    declare_again_table, declare_limits_table;                                     /* declare_budgets.c */
extern const struct field_table declare_exec_table, declare_exec_group_table;      /* declare_exec.c */
extern const struct field_table declare_http_table;                                /* declare_http.c */
extern const struct field_table declare_compact_table;                             /* declare_compact.c */
extern const struct field_table declare_example_table, declare_example_call_table; /* declare_examples.c */

declare_part declare_rules; /* declare_rules.c */

/* Before all fields: the schema and the description from comments above `run`; after them: what a schema of
 * its own does not know is an error. declare_annotations.c */
void declare_annotations(struct declaration *d, int fields);
void declare_check_annotations(struct declaration *d);

/* After all fields: rules that contradict each other or the schema are errors. */
void declare_check_rules(struct declaration *d);

/* After all fields: a tool is run by one of run, exec, http and upstream. declare_runner.c */
void declare_check_runner(struct declaration *d);
/* The address of `http` can be made of what the schema requires. declare_http.c */
void declare_check_http(struct declaration *d);

/* The words of `exec` name what the schema has, and run no program of the model's. declare_exec_checks.c */
void declare_check_exec(struct declaration *d);

/* Where a schema names all its arguments in one list; NULL: it says so in ways that are not looked into.
 * declare_arguments.c */
const struct json *declare_properties(const struct json *schema);
/* Raises: `field` takes an argument that is not among them. `otherwise`: what else may have been meant, for
 * where no name is close. */
void declare_complain_stranger(struct declaration *d, const char *field, const struct json *properties,
                               struct str name, const char *otherwise) __attribute__((noreturn));

/* "5s", "PT5S", "200ms", or seconds; at least a millisecond, at most `most_s`. */
uint32_t declare_ms(struct declaration *d, const char *parent, const struct field *field, int at,
                    uint32_t most_s, const char *expected);

/* Raises an error that says what was expected where the value is no plain table. */
void declare_must_be_table(struct declaration *d, const char *parent, const char *name, int at,
                           const char *expected);

/* The value as JSON: the very text that json "…" read where it came from there. `what` begins error messages.
 */
const struct json *declare_json(struct declaration *d, const char *what, int at, const struct json *schema);

/* A text in a table of ours, past any metatable; STR_NONE where it is none. */
struct str declare_raw_text(struct declaration *d, int at, const char *name);

#endif

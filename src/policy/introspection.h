/*
 * What lint reads of a policy beyond its declaration: lines of fields, rule
 * conflicts, and calls of words that lack something. The source is read
 * again, so this is not for a serving daemon.
 */
#ifndef TOOLGATE_POLICY_INTROSPECTION_H
#define TOOLGATE_POLICY_INTROSPECTION_H

#include "policy/policy.h"

struct policy_introspection {
    const struct policy *policy;
    struct arena *arena;
    struct str text; /* empty: the file cannot be read */
};

struct policy_introspection policy_introspection(const struct policy *policy, struct arena *arena);

/* The line of tool "…" {; 1 if unknown. */
int introspection_tool_line(const struct policy_introspection *source);

typedef void introspection_callback(void *owner, int line, struct str sentence);

/* Conflicts of rules with each other or with the schema; NULL: the policy's own. */
void introspection_rules(const struct policy_introspection *source, const struct json *schema,
                         introspection_callback *found, void *owner);

/* The line of a rule, in the order of rule_words. */
int introspection_rule_line(const struct policy_introspection *source, size_t rule);

/* Lines with "TODO:", as toolgate new writes it; `sentence` is the rest of the line. */
void introspection_todos(const struct policy_introspection *source, introspection_callback *found,
                         void *owner);

/* Rules that refuse without a hint. */
void introspection_rules_without_hint(const struct policy_introspection *source,
                                      introspection_callback *found, void *owner);

#endif

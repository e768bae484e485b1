/*
 * What a policy's rules and text tell to who looks for mistakes in it
 * (lint/): where things stand, which rules are strange, and which calls of
 * its words lack something. The text is read anew, so this is not for a
 * daemon.
 */
#ifndef TOOLGATE_POLICY_INTROSPECTION_H
#define TOOLGATE_POLICY_INTROSPECTION_H

#include "policy/policy.h"

struct policy_introspection {
    const struct policy *policy;
    struct arena *arena;
    struct str text; /* empty where it cannot be read */
};

struct policy_introspection policy_introspection(const struct policy *policy, struct arena *arena);

/* The line of a field, in the table of `parent` where that is not NULL; 0 where it cannot be told. */
int introspection_line(const struct policy_introspection *survey, const char *parent, struct str name);

/* The line of tool "…" {; 1 where it cannot be told. */
int introspection_tool_line(const struct policy_introspection *survey);

typedef void introspection_callback(void *owner, int line, struct str sentence);

/* Rules that contradict each other or this schema, or can never matter. */
void introspection_rules(const struct policy_introspection *survey, const struct json *schema,
                         introspection_callback *found, void *owner);

/* Rules' own lines, in the order of rule_words. */
int introspection_rule_line(const struct policy_introspection *survey, size_t rule);

/* Rules that refuse without a hint. */
void introspection_rules_without_hint(const struct policy_introspection *survey,
                                      introspection_callback *found, void *owner);

/* Calls of refuse and garbage whose hint is left out, and problems in repair { … } without a path. Only what
 * is written out plainly is judged, so that nothing is said that is not so. `sentence` is the word. */
void introspection_calls_without_hint(const struct policy_introspection *survey,
                                      introspection_callback *found, void *owner);
void introspection_problems_without_path(const struct policy_introspection *survey,
                                         introspection_callback *found, void *owner);

#endif
